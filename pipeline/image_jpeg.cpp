#include <memory>
#include <turbojpeg.h>

#include "pipeline/image_codec.h"

namespace patternd {
namespace {

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Decoder = std::unique_ptr<void, Destroy>;

}  // namespace

bool is_jpeg(const std::uint8_t* data, std::size_t size) {
  return size >= 3 && data[0] == 0xFF && data[1] == 0xD8 && data[2] == 0xFF;
}

Result<Image> decode_jpeg(const std::uint8_t* data, std::size_t size, const std::string& name) {
  const Decoder decoder(tjInitDecompress());
  if (!decoder) return fail(ErrorCode::kExhausted, name + ": no memory to decode JPEG");
  const auto malformed = [&] {
    return fail(ErrorCode::kParse, name + ": is no good JPEG: " + tjGetErrorStr2(decoder.get()));
  };
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
  const auto length = static_cast<unsigned long>(size);
  if (tjDecompressHeader3(decoder.get(), data, length, &width, &height, &subsampling,
                          &colorspace) != 0) {
    return malformed();
  }
  // The library is content with a file that ends before it says its size.
  if (width < 1 || height < 1)
    return fail(ErrorCode::kParse, name + ": is no good JPEG: cut short");
  const bool gray = colorspace == TJCS_GRAY;
  auto image = Image::create(width, height, gray ? PixelFormat::kGray8 : PixelFormat::kRgb8);
  if (!image) return fail(image.error().code, name + ": " + image.error().message);
  // TJFLAG_STOPONWARNING: a picture that is cut short is an error, not grey filling.
  if (tjDecompress2(decoder.get(), data, length, image->view().data, width,
                    static_cast<int>(image->view().stride_bytes), height,
                    gray ? TJPF_GRAY : TJPF_RGB, TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT) != 0) {
    return malformed();
  }
  return image;
}

}  // namespace patternd
