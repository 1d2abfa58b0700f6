#include "pipeline/blob_stage.h"

#include <cstring>
#include <utility>

namespace patternd {
namespace {

void copy_pixels(const ImageView& from, MutableImageView to) {
  const std::size_t row = static_cast<std::size_t>(from.width) * bytes_per_pixel(from.format);
  for (int y = 0; y < from.height; ++y) std::memcpy(to.row_bytes(y), from.row_bytes(y), row);
}

// A block of constant length, which the compiler turns into a few saturating vector subtractions.
template <class Pixel>
void subtract_block(const Pixel* a, const Pixel* b, Pixel* out) {
  constexpr std::size_t kPixels = 64 / sizeof(Pixel);
  for (std::size_t i = 0; i < kPixels; ++i) {
    out[i] = static_cast<Pixel>(a[i] > b[i] ? a[i] - b[i] : 0);
  }
}

// Reads `picture` where it lies and the rest in padded rows.
template <class Pixel>
void subtract_rows(const ImageView& picture, const Image& reference, Image& out) {
  constexpr int kPixels = static_cast<int>(64 / sizeof(Pixel));
  for (int y = 0; y < picture.height; ++y) {
    const auto* a = picture.row<Pixel>(y);
    const auto* b = reference.row<Pixel>(y);
    auto* to = out.row<Pixel>(y);
    int x = 0;
    for (; x + kPixels <= picture.width; x += kPixels) subtract_block(a + x, b + x, to + x);
    for (; x < picture.width; ++x) to[x] = static_cast<Pixel>(a[x] > b[x] ? a[x] - b[x] : 0);
  }
}

}  // namespace

void subtract_saturated(const ImageView& picture, const Image& reference, Image& out) {
  if (picture.format == PixelFormat::kGray16) {
    subtract_rows<std::uint16_t>(picture, reference, out);
  } else {
    subtract_rows<std::uint8_t>(picture, reference, out);
  }
}

Result<void> check_dark_frame(const ImageView& dark, int width, int height, PixelFormat format) {
  if (!dark.empty() && dark.width == width && dark.height == height && dark.format == format)
    return {};
  const auto described = [](int w, int h, PixelFormat f) {
    return std::to_string(w) + "x" + std::to_string(h) + " " + name_of(f);
  };
  return fail(ErrorCode::kInvalidArgument,
              "the dark frame is " + described(dark.width, dark.height, dark.format) +
                  "; the frames are " + described(width, height, format));
}

Result<BlobStage> BlobStage::create(int width, int height, PixelFormat format,
                                    const BlobParams& params, const ImageView& dark,
                                    ThreadPool* pool) {
  LabelOptions options;
  options.pool = pool;
  auto labeller = ComponentLabeller::create(width, height, format, params, options);
  if (!labeller) return tl::make_unexpected(labeller.error());
  BlobStage stage(params, std::move(*labeller));
  if (params.reference == BlobParams::Reference::kOff) return stage;

  auto reference = Image::create(width, height, format);
  auto difference = Image::create(width, height, format);
  if (!reference || !difference) {
    return fail(ErrorCode::kExhausted, "no memory for the reference frame of blobs");
  }
  stage.reference_ = std::move(*reference);
  stage.difference_ = std::move(*difference);
  if (params.reference == BlobParams::Reference::kDark) {
    if (auto ok = check_dark_frame(dark, width, height, format); !ok)
      return tl::make_unexpected(ok.error());
    copy_pixels(dark, stage.reference_.view());
    stage.has_reference_ = true;
  }
  return stage;
}

Result<void> BlobStage::process(const ImageView& picture, std::vector<Blob>& blobs,
                                std::uint64_t& total) {
  blobs.clear();
  total = 0;
  ImageView searched = picture;
  if (params_.reference != BlobParams::Reference::kOff) {
    if (has_reference_) subtract_saturated(picture, reference_, difference_);
    if (params_.reference == BlobParams::Reference::kAlternate) {
      copy_pixels(picture, reference_.view());
      if (!std::exchange(has_reference_, true)) return {};
    }
    searched = std::as_const(difference_).view();
  }
  if (auto ok = labeller_.process(searched); !ok) return ok;
  labeller_.largest(blobs);
  total = static_cast<std::uint64_t>(labeller_.count());
  return {};
}

}  // namespace patternd
