# Device images: kernels/patternd_kernels.cu compiled ahead of time into every form that a driver may want, and embedded
# in the library by one generated C file. A compiler that is missing costs its images and a line that says so.

# Known to be worth native code; those that the toolkit at hand does not know are left out. Builds for sanitizers and
# debugging test the host's code: one architecture does, and each costs ten seconds of a core.
set(default_architectures "53;62;72;75;80;86;87;89;90;100;110;120")
if(PATTERND_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(default_architectures "75")
endif()
set(PATTERND_CUDA_ARCHITECTURES "${default_architectures}" CACHE STRING
    "Compute capabilities (without the dot) to compile native device code for")
set(PATTERND_KERNEL_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/patternd_kernels.cu)
set(PATTERND_IMAGE_DIR ${CMAKE_CURRENT_BINARY_DIR}/images)
file(MAKE_DIRECTORY ${PATTERND_IMAGE_DIR})

# patternd_add_image(NAME KIND ARCH COMMAND...): compiles FILE = NAME's image with COMMAND and puts it on the list to embed.
# KIND is cubin | ptx | universal. FILE and DEPS in COMMAND stand for the output and its make-style list of dependencies.
function(patternd_add_image name kind arch)
  set(file ${PATTERND_IMAGE_DIR}/${name}.${kind})
  string(REPLACE "@FILE@" "${file}" command "${ARGN}")
  add_custom_command(OUTPUT ${file} COMMAND ${command} DEPENDS ${PATTERND_KERNEL_SOURCE} DEPFILE ${file}.d
                     COMMENT "Device image ${name}" VERBATIM)
  list(LENGTH PATTERND_IMAGES index)
  string(APPEND PATTERND_IMAGE_DATA "PATTERND_IMAGE(${index}, \"${file}\")\n")
  string(APPEND PATTERND_IMAGE_ROWS
         "    {\"${name}\", PATTERND_IMAGE_${kind}, ${arch}, patternd_image_${index}, patternd_image_end_${index}},\n")
  foreach(variable PATTERND_IMAGE_DATA PATTERND_IMAGE_ROWS)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
  set(PATTERND_IMAGES ${PATTERND_IMAGES} ${file} PARENT_SCOPE)
endfunction()

# The universal image: PTX ISA 4.1 for sm_30, which every driver since CUDA 6.5 takes for every GPU since Kepler.
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

if(PATTERND_NVCC)
  execute_process(COMMAND ${PATTERND_NVCC} --list-gpu-arch OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  set(nvcc_flags -std=c++17 -O3 -fmad=false -Xcudafe --display_error_number -I ${CMAKE_SOURCE_DIR} -MD -MF @FILE@.d -o @FILE@)
  set(newest 0)
  foreach(arch IN LISTS PATTERND_CUDA_ARCHITECTURES)
    if(arch IN_LIST known)
      patternd_add_image(sm_${arch} cubin ${arch} ${PATTERND_NVCC} -cubin -arch=sm_${arch} ${nvcc_flags} ${PATTERND_KERNEL_SOURCE})
      set(newest ${arch})
    endif()
  endforeach()
  if(newest GREATER 0)
    patternd_add_image(compute_${newest} ptx ${newest} ${PATTERND_NVCC} -ptx -arch=compute_${newest} ${nvcc_flags}
                       ${PATTERND_KERNEL_SOURCE})
  endif()
else()
  message(STATUS "nvcc is not here: built without native device images (the universal one serves every GPU)")
endif()

if(PATTERND_DEVICE_CLANG)
  # In 32-bit builds (Tegra K1's armhf) device pointers have 32 bits, and the driver wants an image of that address size.
  if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    set(PATTERND_UNIVERSAL_BITS 32)
  else()
    set(PATTERND_UNIVERSAL_BITS 64)
  endif()
  foreach(bits 64 32)
    set(universal_flags -x cuda --cuda-device-only --cuda-gpu-arch=sm_30 -nocudainc -nocudalib -Wno-unknown-cuda-version
        -Xclang -target-feature -Xclang +ptx41 -std=c++17 -O3 -ffp-contract=off -Wall -Wextra -Werror -I ${CMAKE_SOURCE_DIR}
        -S -MD -MF @FILE@.d -o @FILE@)
    if(bits EQUAL 64)
      set(triple x86_64-linux-gnu)
    else()
      set(triple armv7a-linux-gnueabihf)
    endif()
    set(command ${PATTERND_DEVICE_CLANG} -target ${triple} ${universal_flags} ${PATTERND_KERNEL_SOURCE})
    if(bits EQUAL PATTERND_UNIVERSAL_BITS)
      patternd_add_image(universal universal 30 ${command})
    else()
      # Not embedded, but compiled and checked in every build.
      set(file ${PATTERND_IMAGE_DIR}/universal${bits}.ptx)
      string(REPLACE "@FILE@" "${file}" command "${command}")
      add_custom_command(OUTPUT ${file} COMMAND ${command} DEPENDS ${PATTERND_KERNEL_SOURCE} DEPFILE ${file}.d
                         COMMENT "Device image universal, ${bits} bits" VERBATIM)
      add_custom_target(patternd_universal${bits} ALL DEPENDS ${file})
    endif()
  endforeach()
else()
  message(STATUS "clang with the NVPTX back end is not here: built without the universal device image"
                 " (GPUs other than those compiled for cannot be used)")
endif()
if(NOT PATTERND_IMAGES)
  message(STATUS "No device image can be compiled: the GPU cannot be used by this build")
endif()

configure_file(${CMAKE_CURRENT_SOURCE_DIR}/embedded_images.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/embedded_images.cpp @ONLY)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/embedded_images.cpp PROPERTIES OBJECT_DEPENDS "${PATTERND_IMAGES}")
