// What a program prints has arrived, or it says so.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace patternd {

// `exit_code`, or 1 where standard output took not all that was printed (a full disk, say), with a
// message on standard error. A reader that went away (`| head`) is no fault: SIGPIPE ends those.
//   return checked_output("patternctl", run(argc, argv));
[[nodiscard]] inline int checked_output(const char* program, int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return exit_code;
  std::fprintf(stderr, "%s: standard output cannot be written: %s\n", program,
               std::strerror(errno));
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace patternd
