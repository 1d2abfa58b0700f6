// The service's configuration: refused with messages, or good enough to be printed and read back to
// the same.
#include <cstdlib>

#include "daemon/configuration.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  const auto read = load_configuration(fuzz::as_file(data, size, "patternd.yaml"));
  if (!read) {
    fuzz::check_message(read.error().message);
    return 0;
  }
  const std::string text = to_yaml(*read);
  const auto again = load_configuration(
      fuzz::as_file(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), "again.yaml"));
  if (!again || to_yaml(*again) != text) std::abort();
  return 0;
}
