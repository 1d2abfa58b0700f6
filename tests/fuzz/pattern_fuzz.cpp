// Pattern files; a plain picture is one too.
#include "pipeline/pattern.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  const auto read = load_pattern(fuzz::as_file(data, size, "pattern.yaml"), "fuzzed");
  if (!read) fuzz::check_message(read.error().message);
  return 0;
}
