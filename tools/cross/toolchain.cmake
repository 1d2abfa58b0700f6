# Cross-builds with a Debian cross compiler against an unpacked sysroot (tools/cross/sysroot makes one):
#   cmake -DCMAKE_TOOLCHAIN_FILE=tools/cross/toolchain.cmake -DPATTERND_TRIPLET=aarch64-linux-gnu -DPATTERND_SYSROOT=DIR …
# tools/cross/build says all of it. Test programs run under qemu-user, so ctest works as at home.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PATTERND_TRIPLET PATTERND_SYSROOT)
foreach(variable PATTERND_TRIPLET PATTERND_SYSROOT)
  if(NOT ${variable})
    message(FATAL_ERROR "tools/cross/toolchain.cmake needs -D${variable}=…; tools/cross/build sets both")
  endif()
endforeach()

string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${PATTERND_TRIPLET})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${PATTERND_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${PATTERND_TRIPLET}-g++)
set(CMAKE_SYSROOT ${PATTERND_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${PATTERND_TRIPLET})

set(CMAKE_FIND_ROOT_PATH ${PATTERND_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${PATTERND_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${PATTERND_SYSROOT}/usr/lib/${PATTERND_TRIPLET}/pkgconfig:${PATTERND_SYSROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static;-L;${PATTERND_SYSROOT})
