# PATTERND_STATIC_DEPENDENCIES: the same targets as patternd_dependencies.cmake finds, made of archives, so that one
# package runs on Debian 12 and Ubuntu 22.04 and 24.04, whose spdlog, fmt and yaml-cpp have other names and ABIs. What
# stays shared has one ABI on all three: glibc, GLib, GStreamer (and for patternd-calibrate TBB, BLAS, LAPACK, libGL).
# tests/packaging/ reads what the programs came to need.

# patternd_archive(VARIABLE NAME): the full path of libNAME.a.
function(patternd_archive variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

# The standard library's code is in the programs; exceptions never leave them, as only C libraries are shared.
# What nothing calls is dropped, with what it would need (libstdc++'s random_device: glibc 2.36).
add_link_options($<$<LINK_LANGUAGE:CXX>:-static-libstdc++> -static-libgcc -Wl,--gc-sections)

# patternd_shared_standard_library(): for a folder whose programs use OpenCV, whose TBB is a shared C++ library itself: two
# copies of the standard library must not meet.
macro(patternd_shared_standard_library)
  set_property(DIRECTORY PROPERTY LINK_OPTIONS -Wl,--gc-sections)
endmacro()

# patternd_linked(TARGET MODULE ARCHIVES...): the imported target of pkg-config's MODULE, made of archives for programs. In
# libpatternd.so the shared library stays, as Debian compiles some archives for programs alone; these libraries have one
# soname everywhere, whatever their packages are called.
function(patternd_linked target module)
  pkg_check_modules(${module}_SHARED REQUIRED ${module})
  set(archives "")
  foreach(name ${ARGN})
    patternd_archive(PATTERND_${name}_ARCHIVE ${name})
    list(APPEND archives ${PATTERND_${name}_ARCHIVE})
  endforeach()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${${module}_SHARED_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES
      "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${${module}_SHARED_LINK_LIBRARIES},${archives}>;m")
endfunction()
patternd_linked(PNG::PNG libpng png16 z)
patternd_linked(PkgConfig::TURBOJPEG libturbojpeg turbojpeg)

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

if(PATTERND_V4L2)
  pkg_check_modules(V4L2 REQUIRED IMPORTED_TARGET libv4lconvert)
  patternd_archive(PATTERND_V4LCONVERT_ARCHIVE v4lconvert)
  patternd_archive(PATTERND_JPEG_ARCHIVE jpeg)
  set_target_properties(PkgConfig::V4L2 PROPERTIES
    INTERFACE_LINK_LIBRARIES "${PATTERND_V4LCONVERT_ARCHIVE};${PATTERND_JPEG_ARCHIVE};m")
endif()

# OpenCV, of which patternd-calibrate and patternd-bench need no more than this. What it calls in turn has had one ABI since
# before Ubuntu 22.04.
find_path(PATTERND_OPENCV_INCLUDE opencv2/calib3d.hpp PATH_SUFFIXES opencv4)
find_library(PATTERND_OPENCV_CALIB3D_ARCHIVE NAMES libopencv_calib3d.a)
set(OpenCV_FOUND OFF)
if(PATTERND_OPENCV_INCLUDE AND PATTERND_OPENCV_CALIB3D_ARCHIVE)
  set(OpenCV_FOUND ON)
  set(OpenCV_INCLUDE_DIRS ${PATTERND_OPENCV_INCLUDE})
  set(OpenCV_LIBS ${PATTERND_OPENCV_CALIB3D_ARCHIVE})
  # Contributed, and not everywhere.
  find_library(PATTERND_OPENCV_ARUCO_ARCHIVE NAMES libopencv_aruco.a)
  if(PATTERND_OPENCV_ARUCO_ARCHIVE)
    add_library(opencv_aruco STATIC IMPORTED)
    set_target_properties(opencv_aruco PROPERTIES IMPORTED_LOCATION ${PATTERND_OPENCV_ARUCO_ARCHIVE})
    list(PREPEND OpenCV_LIBS opencv_aruco)
  endif()
  foreach(module features2d flann imgproc core)
    patternd_archive(PATTERND_OPENCV_${module}_ARCHIVE opencv_${module})
    list(APPEND OpenCV_LIBS ${PATTERND_OPENCV_${module}_ARCHIVE})
  endforeach()
  list(APPEND OpenCV_LIBS tbb lapack blas GL ${PATTERND_z_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})
endif()
