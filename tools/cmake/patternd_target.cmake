# patternd_compile_options(TARGET): the warnings, arithmetic rules and sanitizers that every target of ours shares.
function(patternd_compile_options target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast>
    -Wcast-qual -Wdouble-promotion -Wformat=2 -Wundef -Wvla
    $<$<BOOL:${PATTERND_WARNINGS_AS_ERRORS}>:-Werror>
    # GCC's notes, on armhf, about how GCC 6 passed arguments.
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},arm>:-Wno-psabi>
    # One rounding a source operation, so that every backend and compiler computes the same.
    -ffp-contract=off)
  if(PATTERND_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PATTERND_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${PATTERND_SANITIZE})
  endif()
endfunction()

# patternd_library(NAME SOURCES...): a static library of the project, linked into programs and libpatternd.so.
function(patternd_library name)
  add_library(${name} STATIC ${ARGN})
  patternd_compile_options(${name})
endfunction()

# patternd_test(NAME [LIBRARIES...]): one GoogleTest program from NAME.cpp; each TEST is a ctest case of its own.
function(patternd_test name)
  add_executable(${name} ${name}.cpp)
  patternd_compile_options(${name})
  target_link_libraries(${name} PRIVATE patternd_test_support GTest::gmock GTest::gtest_main ${ARGN})
  if("patternd_service" IN_LIST ARGN)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/service_log.cpp)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()

# patternd_python_test(FILE): a unittest script; each of its test methods is a ctest case STEM.METHOD. A method that calls
# skipTest is counted as skipped. The script finds the programs in PATTERND_BIN and the sources in PATTERND_SOURCE.
find_package(Python3 COMPONENTS Interpreter)
function(patternd_python_test file)
  if(NOT Python3_Interpreter_FOUND)
    message(STATUS "python3 is not here: without ${file}")
    return()
  endif()
  get_filename_component(stem ${file} NAME_WE)
  file(STRINGS ${file} methods REGEX "^    def test_")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  foreach(line IN LISTS methods)
    string(REGEX REPLACE "^ *def (test_[a-z0-9A-Z_]*).*" "\\1" method "${line}")
    add_test(NAME ${stem}.${method}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${file} -k ${method} -v)
    set_tests_properties(${stem}.${method} PROPERTIES
      TIMEOUT 600
      SKIP_REGULAR_EXPRESSION "OK \\(skipped=1\\)"
      ENVIRONMENT "PATTERND_BIN=${CMAKE_BINARY_DIR}/bin;PATTERND_SOURCE=${CMAKE_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()
