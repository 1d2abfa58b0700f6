# Device images: a .cu file compiled ahead of time into every form that a driver may want, and embedded by one generated
# C++ file. A compiler that is missing costs its images and a line that says so.

# Known to be worth native code; those that the toolkit at hand does not know are left out. Builds for sanitizers and
# debugging test the host's code: one architecture does, and each costs ten seconds of a core.
set(default_architectures "53;62;72;75;80;86;87;89;90;100;110;120")
if(PATTERND_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(default_architectures "80")
endif()
set(PATTERND_CUDA_ARCHITECTURES "${default_architectures}" CACHE STRING
    "Compute capabilities (without the dot) to compile native device code for")

# The universal image has three forms, of which a GPU gets the newest that it can run: PTX ISA 4.1 for sm_30, which every
# driver since CUDA 6.5 takes for every GPU since Kepler; PTX ISA 6.0 for sm_70, since CUDA 9 and Volta, where a warp's lanes
# no longer run in step and exchanges among them have to wait for each; and PTX ISA 7.4 for sm_80, since CUDA 11.4 (JetPack 5)
# and Ampere, whose matrix units the coarse search works with. A driver that is older than a form gets the one before.
function(patternd_find_nvptx_clang)
  find_program(PATTERND_DEVICE_CLANG NAMES clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 clang
               DOC "clang with the NVPTX back end, for the universal device image")
  if(PATTERND_DEVICE_CLANG)
    execute_process(COMMAND ${PATTERND_DEVICE_CLANG} --print-targets OUTPUT_VARIABLE targets ERROR_QUIET)
    if(NOT targets MATCHES "nvptx64")
      set(PATTERND_DEVICE_CLANG PATTERND_DEVICE_CLANG-NOTFOUND CACHE FILEPATH "" FORCE)
    endif()
  endif()
endfunction()

find_program(PATTERND_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin
             DOC "NVIDIA's compiler, for native device images")
patternd_find_nvptx_clang()
find_program(PATTERND_PTXAS ptxas HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin
             DOC "NVIDIA's assembler, for tests")
# nvcc's machine code has pointers of 64 bits; a 32-bit build's only GPU, Tegra K1's, is older than any of it.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  message(STATUS "A 32-bit build: with the universal device image alone")
elseif(PATTERND_NVCC)
  execute_process(COMMAND ${PATTERND_NVCC} --list-gpu-arch OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCHALL "[0-9]+" PATTERND_KNOWN_ARCHITECTURES "${known}")
else()
  message(STATUS "nvcc is not here: built without native device images (the universal one serves every GPU)")
endif()
if(NOT PATTERND_DEVICE_CLANG)
  message(STATUS "clang with the NVPTX back end is not here: built without the universal device image"
                 " (GPUs other than those compiled for cannot be used)")
endif()
# In 32-bit builds (Tegra K1's armhf) device pointers have 32 bits, and the driver wants an image of that address size.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(PATTERND_UNIVERSAL_BITS 32)
else()
  set(PATTERND_UNIVERSAL_BITS 64)
endif()

# patternd_add_image(SET SOURCE NAME KIND ARCH COMMAND...): compiles SOURCE with COMMAND and puts the image NAME on the
# list to embed. KIND is cubin | ptx | universal. @FILE@ in COMMAND stands for the output.
function(patternd_add_image set source name kind arch)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${set}/${name}.${kind})
  string(REPLACE "@FILE@" "${file}" command "${ARGN}")
  add_custom_command(OUTPUT ${file} COMMAND ${command} DEPENDS ${source} DEPFILE ${file}.d
                     COMMENT "Device image ${set}/${name}" VERBATIM)
  if(kind STREQUAL "universal")
    set(name universal)  # all its forms
  endif()
  list(LENGTH PATTERND_IMAGES index)
  set(symbol ${set}_${index})
  string(APPEND PATTERND_IMAGE_DATA "PATTERND_IMAGE(${symbol}, \"${file}\")\n")
  string(APPEND PATTERND_IMAGE_ROWS
         "    {\"${name}\", PATTERND_IMAGE_${kind}, ${arch}, patternd_image_${symbol}, patternd_image_end_${symbol}},\n")
  foreach(variable PATTERND_IMAGE_DATA PATTERND_IMAGE_ROWS)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
  set(PATTERND_IMAGES ${PATTERND_IMAGES} ${file} PARENT_SCOPE)
endfunction()

option(PATTERND_RACECHECK "Native device images for compute-sanitizer's racecheck (cuda/README.md)" OFF)

macro(patternd_add_native_images set source)
  set(nvcc_flags -std=c++17 -O3 -fmad=false -Xcudafe --display_error_number -I ${CMAKE_SOURCE_DIR} -MD -MF @FILE@.d -o @FILE@)
  if(PATTERND_RACECHECK)
    list(APPEND nvcc_flags -DPATTERND_RACECHECK)
  endif()
  set(newest 0)
  foreach(arch IN LISTS PATTERND_CUDA_ARCHITECTURES)
    if(arch IN_LIST PATTERND_KNOWN_ARCHITECTURES)
      patternd_add_image(${set} ${source} sm_${arch} cubin ${arch}
                         ${PATTERND_NVCC} -cubin -arch=sm_${arch} ${nvcc_flags} ${source})
      set(newest ${arch})
    endif()
  endforeach()
  if(newest GREATER 0)
    patternd_add_image(${set} ${source} compute_${newest} ptx ${newest}
                       ${PATTERND_NVCC} -ptx -arch=compute_${newest} ${nvcc_flags} ${source})
  endif()
endmacro()

macro(patternd_add_universal_images set source)
  foreach(form 64:30:41 32:30:41 64:70:60 64:80:74)
    string(REPLACE ":" ";" form ${form})
    list(GET form 0 bits)
    list(GET form 1 arch)
    list(GET form 2 isa)
    if(bits EQUAL 64)
      set(triple x86_64-linux-gnu)
    else()
      set(triple armv7a-linux-gnueabihf)
    endif()
    set(command ${PATTERND_DEVICE_CLANG} -target ${triple} -x cuda --cuda-device-only --cuda-gpu-arch=sm_${arch} -nocudainc
        -nocudalib -Wno-unknown-cuda-version -Xclang -target-feature -Xclang +ptx${isa} -std=c++17 -O3 -ffp-contract=off -Wall
        -Wextra -Werror -I ${CMAKE_SOURCE_DIR} -S -MD -MF @FILE@.d -o @FILE@ ${source})
    if(bits EQUAL PATTERND_UNIVERSAL_BITS)
      patternd_add_image(${set} ${source} universal_${arch} universal ${arch} ${command})
    else()
      # Not embedded, but compiled and checked in every build.
      set(file ${CMAKE_CURRENT_BINARY_DIR}/${set}/universal${bits}_${arch}.ptx)
      string(REPLACE "@FILE@" "${file}" command "${command}")
      add_custom_command(OUTPUT ${file} COMMAND ${command} DEPENDS ${source} DEPFILE ${file}.d
                         COMMENT "Device image ${set}/universal for sm_${arch}, ${bits} bits" VERBATIM)
      add_custom_target(patternd_${set}_universal${bits}_${arch} ALL DEPENDS ${file})
    endif()
  endforeach()
endmacro()

# patternd_device_images(SET SOURCE): compiles SOURCE into folder SET of the build and writes embedded_SET.cpp, which
# defines the table patternd_SET_rows (embedded_images.h).
function(patternd_device_images set source)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${set})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(PATTERND_IMAGES)
  set(PATTERND_IMAGE_DATA)
  set(PATTERND_IMAGE_ROWS)
  set(PATTERND_IMAGE_SET ${set})
  if(PATTERND_NVCC)
    patternd_add_native_images(${set} ${source})
  endif()
  if(PATTERND_DEVICE_CLANG)
    patternd_add_universal_images(${set} ${source})
  endif()
  if(NOT PATTERND_IMAGES)
    message(STATUS "No device image of ${set} can be compiled: the GPU cannot be used by this build")
  endif()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/embedded_${set}.cpp)
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/embedded_images.cpp.in ${file} @ONLY)
  set_source_files_properties(${file} PROPERTIES OBJECT_DEPENDS "${PATTERND_IMAGES}")
endfunction()
