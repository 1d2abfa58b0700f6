// PNG, JPEG and PNM, in each way of reading them.
#include "pipeline/image_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  for (const ReadAs as : {ReadAs::kGray, ReadAs::kAsIs}) {
    const auto read = decode_image(data, size, "picture", as);
    if (!read) fuzz::check_message(read.error().message);
  }
  return 0;
}
