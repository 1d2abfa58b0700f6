// What clients send, a line at a time.
#include <string_view>

#include "daemon/client_command.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  const auto read =
      parse_command(std::string_view(reinterpret_cast<const char*>(data), size), {"bolt", "nut"});
  if (!read) {
    fuzz::check_message(read.error().message);
    fuzz::check_message("command " + read.error().name);  // the reply repeats it
  }
  return 0;
}
