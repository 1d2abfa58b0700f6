// Pictures in memory: one view type, one owner. Pixel centres have integer coordinates, (0, 0) is
// the centre of the top-left pixel, x to the right, y down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "pipeline/result.h"

namespace patternd {

enum class PixelFormat : std::uint8_t {
  kGray8,   // one byte, 0..255
  kGray16,  // uint16_t in the machine's order, full scale 65535 (10- and 12-bit cameras are shifted
            // up to it)
  kGrayF32,  // float
  kRgb8,     // three bytes R, G, B
  kLabel32,  // int32_t
};

// Bytes a pixel takes: 1, 2, 4, 3, 4.
[[nodiscard]] std::size_t bytes_per_pixel(PixelFormat format);
// "gray8", "gray16", "gray_f32", "rgb8", "label32".
[[nodiscard]] const char* name_of(PixelFormat format);

// Largest width and height that patternd accepts, so that products of sizes and coordinates are
// safe in int64_t and a pixel coordinate in 16.16 fixed point.
inline constexpr int kMaxImageSide = 32767;

// Pixels owned by somebody else. Rows are `stride_bytes` apart (at least width * bytes_per_pixel; a
// multiple of the channel's size). `Byte` is `const std::uint8_t` or `std::uint8_t`.
template <class Byte>
struct BasicImageView {
  Byte* data = nullptr;
  int width = 0;
  int height = 0;
  std::size_t stride_bytes = 0;
  PixelFormat format = PixelFormat::kGray8;

  [[nodiscard]] bool empty() const { return data == nullptr || width <= 0 || height <= 0; }
  [[nodiscard]] Byte* row_bytes(int y) const {
    return data + static_cast<std::size_t>(y) * stride_bytes;
  }
  // Row y as pixels of type T; T must be what `format` says.
  template <class T>
  [[nodiscard]] auto* row(int y) const {
    using Pixel = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return reinterpret_cast<Pixel*>(row_bytes(y));
  }
  // The part that starts at (x, y) and is w by h pixels large; it must lie inside.
  [[nodiscard]] BasicImageView crop(int x, int y, int w, int h) const {
    return {row_bytes(y) + static_cast<std::size_t>(x) * bytes_per_pixel(format), w, h,
            stride_bytes, format};
  }
  operator BasicImageView<const std::uint8_t>() const {  // NOLINT(google-explicit-constructor)
    return {data, width, height, stride_bytes, format};
  }
};
using ImageView = BasicImageView<const std::uint8_t>;
using MutableImageView = BasicImageView<std::uint8_t>;

// A view is sound: sides 1..kMaxImageSide, stride long enough and aligned for the format, data not
// null. `what` names the picture in the message.
[[nodiscard]] Result<void> check_view(const ImageView& view, const std::string& what);

// An owner of pixels: move-only, rows 64-byte aligned and followed by at least 64 readable bytes,
// contents uninitialised unless said otherwise.
class Image {
 public:
  Image() = default;
  // Fails with kInvalidArgument (sides outside 1..kMaxImageSide) or kExhausted (no memory).
  [[nodiscard]] static Result<Image> create(int width, int height, PixelFormat format);
  [[nodiscard]] static Result<Image> copy_of(const ImageView& source);

  [[nodiscard]] MutableImageView view() { return view_; }
  [[nodiscard]] ImageView view() const { return view_; }
  [[nodiscard]] int width() const { return view_.width; }
  [[nodiscard]] int height() const { return view_.height; }
  [[nodiscard]] PixelFormat format() const { return view_.format; }
  [[nodiscard]] bool empty() const { return view_.empty(); }
  template <class T>
  [[nodiscard]] T* row(int y) {
    return view_.row<T>(y);
  }
  template <class T>
  [[nodiscard]] const T* row(int y) const {
    return ImageView(view_).row<T>(y);
  }
  // Sets every byte, padding included.
  void fill_bytes(std::uint8_t value);

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  std::unique_ptr<std::uint8_t[], Free> memory_;
  std::size_t size_bytes_ = 0;
  MutableImageView view_;
};

}  // namespace patternd
