# `cmake --build BUILD --target package` makes the .debs, in BUILD/packages: patternd, patternd-calibrate (the only one with
# OpenCV) and libpatternd-dev. tools/package configures for it, builds, and checks what came out.
# Dependencies are stated by hand: dpkg-shlibdeps would ask for this machine's versions, where the oldest of the supported
# systems will do. tests/packaging/check_needs.py proves that it does.
set(PATTERND_MAINTAINER "patternd maintainers <maintainers@users.noreply.a-seed-7f037fa8.example>")

install(FILES ${CMAKE_BINARY_DIR}/systemd/patternd.service ${CMAKE_BINARY_DIR}/systemd/patternd@.service
              systemd/patternd.socket DESTINATION lib/systemd/system COMPONENT patternd)
install(FILES systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME patternd.conf COMPONENT patternd)
install(FILES systemd/70-patternd.rules DESTINATION lib/udev/rules.d COMPONENT patternd)
install(FILES tools/packaging/README.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/patternd RENAME README
        COMPONENT patternd)
install(FILES config/patternd.yaml systemd/wait-for-camera.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT patternd)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGE_NAME patternd)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_CONTACT ${PATTERND_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_SET_DESTDIR ON)  # files in /etc, outside the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(CMAKE_CROSSCOMPILING)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  else()
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
  endif()
endif()

execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE CHANGELOG_DATE
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  string(TIMESTAMP CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
set(CHANGELOG_VERSION ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

# patternd_package(COMPONENT SECTION DEPENDS SUMMARY DESCRIPTION): what every package has, its papers included.
macro(patternd_package component section depends summary description)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}")
  set(papers ${CMAKE_BINARY_DIR}/packaging/${component})
  set(CPACK_PACKAGE_NAME ${component})
  configure_file(tools/packaging/changelog.in ${papers}/changelog.Debian @ONLY)
  configure_file(tools/packaging/lintian-overrides.in ${papers}/overrides @ONLY)
  set(CPACK_PACKAGE_NAME patternd)
  execute_process(COMMAND gzip -9nf ${papers}/changelog.Debian)
  install(FILES ${papers}/changelog.Debian.gz tools/packaging/copyright
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${component} COMPONENT ${component})
  install(FILES ${papers}/overrides DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${component}
          COMPONENT ${component})
endmacro()

set(glibc "libc6 (>= 2.35)")
set(gstreamer "libglib2.0-0 (>= 2.72) | libglib2.0-0t64, libgstreamer1.0-0 (>= 1.20), libgstreamer-plugins-base1.0-0 (>= 1.20)")
if(NOT PATTERND_HAVE_GSTREAMER)
  set(gstreamer "")
endif()
string(REGEX REPLACE ", $" "" patternd_needs "${glibc}, ${gstreamer}")
patternd_package(patternd video "${patternd_needs}"
  "camera-pipeline daemon that finds taught patterns"
  "Captures frames from V4L2 or GStreamer, takes out the lens, finds taught
patterns at any rotation and connected components, and publishes JSON lines
over TCP with the latency of each stage. It runs on NVIDIA Jetson and on
plain PCs, with or without a GPU.")
set(CPACK_DEBIAN_PATTERND_PACKAGE_RECOMMENDS "gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-libav")
set(CPACK_DEBIAN_PATTERND_PACKAGE_SUGGESTS "patternd-calibrate")
set(CPACK_DEBIAN_PATTERND_PACKAGE_CONTROL_EXTRA
    "${CMAKE_SOURCE_DIR}/tools/packaging/postinst;${CMAKE_SOURCE_DIR}/tools/packaging/prerm;${CMAKE_SOURCE_DIR}/tools/packaging/postrm;${CMAKE_BINARY_DIR}/packaging/conffiles")
file(WRITE ${CMAKE_BINARY_DIR}/packaging/conffiles "${CMAKE_INSTALL_FULL_SYSCONFDIR}/patternd/README\n")

set(opencv_needs "${glibc}, libstdc++6 (>= 12), libgcc-s1, libtbb12, liblapack3 | liblapack.so.3, libblas3 | libblas.so.3, libgl1")
if(TARGET patternd-bench)
  patternd_package(patternd-bench video "${opencv_needs}"
    "benchmarks of patternd beside its peers"
    "Measures patternd's stages beside OpenCV's on this machine, for patternctl bench.")
endif()
if(TARGET patternd-calibrate)
  string(REGEX REPLACE ", $" "" calibrate_needs "${opencv_needs}, ${gstreamer}")
  patternd_package(patternd-calibrate video "${calibrate_needs}"
    "camera calibration for patternd"
    "Finds chessboards in pictures and fits lens and plane, for patternctl calibrate.")
endif()
if(TARGET patternd_shared)
  patternd_package(libpatternd-dev libdevel "${glibc}, libpng16-16 | libpng16-16t64, libturbojpeg0 | libturbojpeg"
    "patternd's matcher as a C library"
    "The header, libpatternd.so, its CMake configuration and pkg-config file.")
  file(WRITE ${CMAKE_BINARY_DIR}/packaging/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_LIBPATTERND-DEV_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/packaging/triggers)
endif()
include(CPack)
