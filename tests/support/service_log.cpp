// The service's log is set up before a test begins, as the program does before its first thread.
// Otherwise whichever thread logs first makes spdlog's default logger, inside a library that the
// thread sanitizer doesn't see into: it then takes the next thread's use of it for a data race.
#include "daemon/log.h"

namespace patternd::test {
namespace {

[[maybe_unused]] const bool kIsSetUp = [] {
  set_up_log(LogLevel::kInfo);
  return true;
}();

}  // namespace
}  // namespace patternd::test
