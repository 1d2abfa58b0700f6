// PNG, JPEG and PNM, in each way of reading them.
#include <algorithm>
#include <array>

#include "pipeline/image_file.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkFrameBytes = 12;  // length and type before the data, checksum after it

// As PNG has it: polynomial 0xEDB88320, all bits inverted before and after.
std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

std::uint32_t read_u32(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

// Gives every whole chunk the checksum of what it holds now.
void repair_png(std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::uint8_t, kSignatureBytes> kSignature = {0x89, 'P',  'N',  'G',
                                                                    '\r', '\n', 0x1A, '\n'};
  if (size < kSignatureBytes || !std::equal(kSignature.begin(), kSignature.end(), data)) return;
  std::size_t at = kSignatureBytes;
  while (size - at >= kChunkFrameBytes) {
    const std::size_t length = read_u32(data + at);
    if (length > size - at - kChunkFrameBytes) return;
    const std::uint32_t crc = crc32(data + at + 4, length + 4);
    for (std::size_t i = 0; i < 4; ++i)
      data[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    at += kChunkFrameBytes + length;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Without its checksums a changed PNG would be refused before anything of it is read.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned /*seed*/) {
  size = LLVMFuzzerMutate(data, size, most);
  repair_png(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  for (const ReadAs as : {ReadAs::kGray, ReadAs::kAsIs}) {
    const auto read = decode_image(data, size, "picture", as);
    if (!read) fuzz::check_message(read.error().message);
  }
  return 0;
}
