# PATTERND_STATIC_DEPENDENCIES: the same targets as patternd_dependencies.cmake finds, made of archives, so that one
# package runs on Debian 12 and Ubuntu 22.04 and 24.04, whose spdlog, fmt and yaml-cpp have other names and ABIs. What
# stays shared has one ABI on all three: glibc, GLib, GStreamer (and for patternd-calibrate TBB, BLAS, LAPACK, libGL).
# tests/packaging/ reads what the programs came to need.

# patternd_archive(VARIABLE NAME): the full path of libNAME.a.
function(patternd_archive variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

# Standard headers' code is in the programs; exceptions never leave them (only C libraries are shared).
# What nothing calls is dropped, with what it would need (libstdc++'s random_device: glibc 2.36).
add_link_options($<$<LINK_LANGUAGE:CXX>:-static-libstdc++> -static-libgcc -Wl,--gc-sections)

set(PNG_FIND_SUFFIXES ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
find_package(PNG REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${PNG_FIND_SUFFIXES})

patternd_archive(PATTERND_YAML_CPP_ARCHIVE yaml-cpp)
find_path(PATTERND_YAML_CPP_INCLUDE yaml-cpp/yaml.h REQUIRED)
add_library(yaml-cpp::yaml-cpp STATIC IMPORTED)
set_target_properties(yaml-cpp::yaml-cpp PROPERTIES
  IMPORTED_LOCATION ${PATTERND_YAML_CPP_ARCHIVE} INTERFACE_INCLUDE_DIRECTORIES ${PATTERND_YAML_CPP_INCLUDE})

# Debian has no archives of these two; their headers hold everything.
find_package(fmt REQUIRED)
find_path(PATTERND_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
add_library(spdlog::spdlog INTERFACE IMPORTED)
set_target_properties(spdlog::spdlog PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL INTERFACE_INCLUDE_DIRECTORIES ${PATTERND_SPDLOG_INCLUDE}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")

pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
patternd_archive(PATTERND_TURBOJPEG_ARCHIVE turbojpeg)
set_target_properties(PkgConfig::TURBOJPEG PROPERTIES INTERFACE_LINK_LIBRARIES ${PATTERND_TURBOJPEG_ARCHIVE})

if(PATTERND_V4L2)
  pkg_check_modules(V4L2 REQUIRED IMPORTED_TARGET libv4lconvert)
  patternd_archive(PATTERND_V4LCONVERT_ARCHIVE v4lconvert)
  patternd_archive(PATTERND_JPEG_ARCHIVE jpeg)
  set_target_properties(PkgConfig::V4L2 PROPERTIES
    INTERFACE_LINK_LIBRARIES "${PATTERND_V4LCONVERT_ARCHIVE};${PATTERND_JPEG_ARCHIVE};m")
endif()
