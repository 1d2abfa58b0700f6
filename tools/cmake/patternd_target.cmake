# patternd_compile_options(TARGET): the warnings, arithmetic rules and sanitizers that every target of ours shares.
function(patternd_compile_options target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
    -Wcast-qual -Wdouble-promotion -Wformat=2 -Wundef -Wvla
    $<$<BOOL:${PATTERND_WARNINGS_AS_ERRORS}>:-Werror>
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
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()
