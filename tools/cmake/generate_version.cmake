# Writes generated_version.h with the version and the commit; run at every build, rewritten only when they change.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=7
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
file(WRITE ${OUTPUT}.new "#define PATTERND_VERSION \"${VERSION}\"\n#define PATTERND_COMMIT \"${commit}\"\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUTPUT}.new ${OUTPUT})
file(REMOVE ${OUTPUT}.new)
