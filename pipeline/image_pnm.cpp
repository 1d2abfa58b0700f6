// The PNM family: P1 to P3 plain text, P4 to P6 binary.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "pipeline/image_codec.h"

namespace patternd {
namespace {

bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A cursor over the file: white space and comments are passed over between numbers.
class PnmText {
 public:
  PnmText(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  // The next whole number up to `limit`; nothing where there is none.
  std::optional<unsigned> number(unsigned limit) {
    skip_space();
    if (at_ >= size_ || data_[at_] < '0' || data_[at_] > '9') return std::nullopt;
    unsigned value = 0;
    for (; at_ < size_ && data_[at_] >= '0' && data_[at_] <= '9'; ++at_) {
      value = value * 10 + (data_[at_] - unsigned{'0'});
      if (value > limit) return std::nullopt;
    }
    return value;
  }
  // The next digit by itself: P1's pixels need no space between them.
  std::optional<unsigned> bit() {
    skip_space();
    if (at_ >= size_ || (data_[at_] != '0' && data_[at_] != '1')) return std::nullopt;
    return data_[at_++] - unsigned{'0'};
  }
  // Passes the one white space that stands before binary pixels.
  bool end_header() { return at_ < size_ && is_space(data_[at_++]); }
  void advance(std::size_t count) { at_ += count; }
  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] std::size_t left() const { return size_ - at_; }
  [[nodiscard]] const std::uint8_t* here() const { return data_ + at_; }

 private:
  void skip_space() {
    while (at_ < size_) {
      if (data_[at_] == '#') {
        while (at_ < size_ && data_[at_] != '\n') ++at_;
      } else if (is_space(data_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

struct Header {
  int kind = 0;  // 1..6
  int width = 0;
  int height = 0;
  unsigned maxval = 1;
  [[nodiscard]] bool plain() const { return kind <= 3; }
  [[nodiscard]] bool bitmap() const { return kind == 1 || kind == 4; }
  [[nodiscard]] int channels() const { return kind == 3 || kind == 6 ? 3 : 1; }
  // 16-bit colour is reduced to 8, as in PNG.
  [[nodiscard]] PixelFormat format() const {
    if (channels() == 3) return PixelFormat::kRgb8;
    return maxval > 255 ? PixelFormat::kGray16 : PixelFormat::kGray8;
  }
  [[nodiscard]] unsigned full_scale() const {
    return format() == PixelFormat::kGray16 ? 65535 : 255;
  }
  // A sample at full scale, rounded.
  [[nodiscard]] unsigned scaled(unsigned value) const {
    return maxval == full_scale() ? value : (value * full_scale() + maxval / 2) / maxval;
  }
};

void store(const Header& header, MutableImageView image, int y, std::size_t i, unsigned value) {
  if (header.format() == PixelFormat::kGray16) {
    image.row<std::uint16_t>(y)[i] = static_cast<std::uint16_t>(value);
  } else {
    image.row_bytes(y)[i] = static_cast<std::uint8_t>(value);
  }
}

Error parse_error(const std::string& name, std::size_t offset, const std::string& what) {
  return {ErrorCode::kParse, name + ": byte " + std::to_string(offset) + ": " + what};
}

std::optional<Error> read_plain(PnmText& text, const Header& header, MutableImageView image,
                                const std::string& name) {
  const auto samples =
      static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.channels());
  for (int y = 0; y < header.height; ++y) {
    for (std::size_t i = 0; i < samples; ++i) {
      const auto value = header.bitmap() ? text.bit() : text.number(header.maxval);
      if (!value) {
        return parse_error(name, text.offset(),
                           text.left() == 0
                               ? "the picture is cut short in row " + std::to_string(y)
                               : "a number from 0 to " + std::to_string(header.maxval) +
                                     " is expected in row " + std::to_string(y));
      }
      store(header, image, y, i,
            header.bitmap() ? (*value != 0 ? 0U : 255U) : header.scaled(*value));
    }
  }
  return std::nullopt;
}

std::optional<Error> read_binary(PnmText& text, const Header& header, MutableImageView image,
                                 const std::string& name) {
  const auto samples =
      static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.channels());
  const std::size_t sample_bytes = header.maxval > 255 ? 2 : 1;
  const std::size_t row_bytes = header.bitmap() ? (samples + 7) / 8 : samples * sample_bytes;
  for (int y = 0; y < header.height; ++y) {
    if (text.left() < row_bytes) {
      return parse_error(name, text.offset() + text.left(),
                         "the picture is cut short in row " + std::to_string(y) + " of " +
                             std::to_string(header.height));
    }
    const std::uint8_t* row = text.here();
    for (std::size_t i = 0; i < samples; ++i) {
      if (header.bitmap()) {
        const bool black = ((row[i / 8] >> (7 - i % 8)) & 1) != 0;
        store(header, image, y, i, black ? 0 : 255);
        continue;
      }
      const unsigned value =
          sample_bytes == 1 ? row[i] : (unsigned{row[2 * i]} << 8) + row[2 * i + 1];
      if (value > header.maxval) {
        return parse_error(name, text.offset() + i * sample_bytes,
                           "value " + std::to_string(value) + " is above the maximum " +
                               std::to_string(header.maxval) + " that the header gives");
      }
      store(header, image, y, i, header.scaled(value));
    }
    text.advance(row_bytes);
  }
  return std::nullopt;
}

Result<Header> read_header(PnmText& text, const std::string& name, int kind) {
  Header header;
  header.kind = kind;
  text.advance(2);
  const auto width = text.number(1U << 20);
  const auto height = text.number(1U << 20);
  if (!width || !height) {
    return tl::make_unexpected(
        parse_error(name, text.offset(), "width and height are expected here"));
  }
  header.width = static_cast<int>(*width);
  header.height = static_cast<int>(*height);
  if (!header.bitmap()) {
    const auto maxval = text.number(65535);
    if (!maxval || *maxval == 0) {
      return tl::make_unexpected(
          parse_error(name, text.offset(), "a maximum value from 1 to 65535 is expected here"));
    }
    header.maxval = *maxval;
  }
  if (!header.plain() && !text.end_header()) {
    return tl::make_unexpected(
        parse_error(name, text.offset(), "one white space is expected before the pixels"));
  }
  return header;
}

}  // namespace

bool is_pnm(const std::uint8_t* data, std::size_t size) {
  return size >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' &&
         (is_space(data[2]) || data[2] == '#');
}

Result<Image> decode_pnm(const std::uint8_t* data, std::size_t size, const std::string& name) {
  PnmText text(data, size);
  auto header = read_header(text, name, data[1] - '0');
  if (!header) return tl::make_unexpected(header.error());
  // A sample takes at least a bit (P4) or a character: so a short file cannot make us allocate
  // gigabytes.
  const auto pixels =
      static_cast<std::uint64_t>(header->width) * static_cast<std::uint64_t>(header->height);
  if (pixels / 8 > text.left()) {
    return tl::make_unexpected(
        parse_error(name, size,
                    "the picture is cut short: " + std::to_string(header->width) + "x" +
                        std::to_string(header->height) + " pixels do not fit what is left"));
  }
  auto image = Image::create(header->width, header->height, header->format());
  if (!image) return fail(image.error().code, name + ": " + image.error().message);
  const auto error = header->plain() ? read_plain(text, *header, image->view(), name)
                                     : read_binary(text, *header, image->view(), name);
  if (error) return tl::make_unexpected(*error);
  return image;
}

Result<std::vector<std::uint8_t>> encode_pnm(const ImageView& image) {
  const bool color = image.format == PixelFormat::kRgb8;
  const bool deep = image.format == PixelFormat::kGray16;
  if (!color && !deep && image.format != PixelFormat::kGray8) {
    return fail(ErrorCode::kUnsupported,
                std::string("a ") + name_of(image.format) + " picture does not fit PNM");
  }
  const std::string header = std::string(color ? "P6\n" : "P5\n") + std::to_string(image.width) +
                             " " + std::to_string(image.height) + (deep ? "\n65535\n" : "\n255\n");
  const std::size_t row = static_cast<std::size_t>(image.width) * bytes_per_pixel(image.format);
  std::vector<std::uint8_t> bytes(header.size() + row * static_cast<std::size_t>(image.height));
  std::uint8_t* out = std::copy(header.begin(), header.end(), bytes.data());
  for (int y = 0; y < image.height; ++y, out += row) {
    if (!deep) {
      std::memcpy(out, image.row_bytes(y), row);
      continue;
    }
    const auto* in = image.row<std::uint16_t>(y);
    for (std::size_t i = 0; i < row / 2; ++i) {
      out[2 * i] = static_cast<std::uint8_t>(in[i] >> 8);
      out[2 * i + 1] = static_cast<std::uint8_t>(in[i] & 0xFF);
    }
  }
  return bytes;
}

Result<std::string> encode_plain_pnm(const ImageView& image) {
  if (image.format == PixelFormat::kGrayF32) {
    return fail(ErrorCode::kUnsupported, "a gray_f32 picture does not fit PNM");
  }
  const std::size_t channels = image.format == PixelFormat::kRgb8 ? 3 : 1;
  const std::size_t samples = static_cast<std::size_t>(image.width) * channels;
  const auto value_at = [&](int y, std::size_t i) -> std::int64_t {
    switch (image.format) {
      case PixelFormat::kGray16:
        return image.row<std::uint16_t>(y)[i];
      case PixelFormat::kLabel32:
        return image.row<std::int32_t>(y)[i];
      default:
        return image.row_bytes(y)[i];
    }
  };
  std::int64_t maxval = image.format == PixelFormat::kGray16 ? 65535 : 255;
  if (image.format == PixelFormat::kLabel32) {
    maxval = 1;
    for (int y = 0; y < image.height; ++y) {
      for (std::size_t i = 0; i < samples; ++i) maxval = std::max(maxval, value_at(y, i));
    }
  }
  std::string text = std::string(channels == 3 ? "P3\n" : "P2\n") + std::to_string(image.width) +
                     " " + std::to_string(image.height) + "\n" + std::to_string(maxval) + "\n";
  char digits[24];
  for (int y = 0; y < image.height; ++y) {
    for (std::size_t i = 0; i < samples; ++i) {
      const auto end = std::to_chars(digits, digits + sizeof digits, value_at(y, i));
      text.append(digits, end.ptr);
      text += i + 1 == samples ? '\n' : ' ';
    }
  }
  return text;
}

Result<Image> rgb_to_gray(const ImageView& rgb) {
  auto gray = Image::create(rgb.width, rgb.height, PixelFormat::kGray8);
  if (!gray) return gray;
  for (int y = 0; y < rgb.height; ++y) {
    const std::uint8_t* in = rgb.row_bytes(y);
    std::uint8_t* out = gray->view().row_bytes(y);
    for (int x = 0; x < rgb.width; ++x, in += 3) {
      out[x] = static_cast<std::uint8_t>((77U * in[0] + 150U * in[1] + 29U * in[2] + 128U) >> 8);
    }
  }
  return gray;
}

}  // namespace patternd
