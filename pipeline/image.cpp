#include "pipeline/image.h"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace patternd {
namespace {

constexpr std::size_t kRowAlignment = 64;
// Vector code may read this far past the last pixel of the last row.
constexpr std::size_t kTailBytes = 64;

std::size_t channel_bytes(PixelFormat format) {
  return format == PixelFormat::kRgb8 ? 1 : bytes_per_pixel(format);
}

}  // namespace

std::size_t bytes_per_pixel(PixelFormat format) {
  switch (format) {
    case PixelFormat::kGray8:
      return 1;
    case PixelFormat::kGray16:
      return 2;
    case PixelFormat::kGrayF32:
      return 4;
    case PixelFormat::kRgb8:
      return 3;
    case PixelFormat::kLabel32:
      return 4;
  }
  return 0;
}

const char* name_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::kGray8:
      return "gray8";
    case PixelFormat::kGray16:
      return "gray16";
    case PixelFormat::kGrayF32:
      return "gray_f32";
    case PixelFormat::kRgb8:
      return "rgb8";
    case PixelFormat::kLabel32:
      return "label32";
  }
  return "unknown";
}

Result<void> check_view(const ImageView& view, const std::string& what) {
  if (view.data == nullptr)
    return fail(ErrorCode::kInvalidArgument, what + ": no pixel data (null pointer)");
  if (view.width < 1 || view.height < 1 || view.width > kMaxImageSide ||
      view.height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument, what + ": size is " + std::to_string(view.width) +
                                                 "x" + std::to_string(view.height) +
                                                 "; both must be 1 to " +
                                                 std::to_string(kMaxImageSide));
  }
  const std::size_t needed = static_cast<std::size_t>(view.width) * bytes_per_pixel(view.format);
  // Else rows would lie beyond what a pointer can reach.
  const auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
                    static_cast<std::size_t>(view.height);
  if (view.stride_bytes > most) {
    return fail(ErrorCode::kInvalidArgument,
                what + ": stride is " + std::to_string(view.stride_bytes) + " bytes; " +
                    std::to_string(view.height) + " rows can be at most " + std::to_string(most) +
                    " apart");
  }
  if (reinterpret_cast<std::uintptr_t>(view.data) % channel_bytes(view.format) != 0) {
    return fail(ErrorCode::kInvalidArgument,
                what + ": " + name_of(view.format) + " pixels must start at a multiple of " +
                    std::to_string(channel_bytes(view.format)) + " bytes");
  }
  if (view.stride_bytes < needed || view.stride_bytes % channel_bytes(view.format) != 0) {
    return fail(ErrorCode::kInvalidArgument,
                what + ": stride is " + std::to_string(view.stride_bytes) + " bytes; a " +
                    name_of(view.format) + " row of " + std::to_string(view.width) +
                    " pixels needs at least " + std::to_string(needed) + " and a multiple of " +
                    std::to_string(channel_bytes(view.format)));
  }
  return {};
}

void Image::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

Result<Image> Image::create(int width, int height, PixelFormat format) {
  if (width < 1 || height < 1 || width > kMaxImageSide || height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument,
                "picture of " + std::to_string(width) + "x" + std::to_string(height) +
                    " pixels; both must be 1 to " + std::to_string(kMaxImageSide));
  }
  const std::size_t row = static_cast<std::size_t>(width) * bytes_per_pixel(format);
  const std::size_t stride = (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  const std::size_t size = stride * static_cast<std::size_t>(height) + kTailBytes;
  auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(kRowAlignment, size));
  if (memory == nullptr) {
    return fail(ErrorCode::kExhausted,
                "no memory for a picture of " + std::to_string(size) + " bytes");
  }
  Image image;
  image.memory_.reset(memory);
  image.size_bytes_ = size;
  image.view_ = {memory, width, height, stride, format};
  return image;
}

Result<Image> Image::copy_of(const ImageView& source) {
  if (auto ok = check_view(source, "picture to copy"); !ok) return tl::make_unexpected(ok.error());
  auto image = create(source.width, source.height, source.format);
  if (!image) return image;
  const std::size_t row = static_cast<std::size_t>(source.width) * bytes_per_pixel(source.format);
  for (int y = 0; y < source.height; ++y)
    std::memcpy(image->view_.row_bytes(y), source.row_bytes(y), row);
  return image;
}

void Image::fill_bytes(std::uint8_t value) {
  if (memory_) std::memset(memory_.get(), value, size_bytes_);
}

}  // namespace patternd
