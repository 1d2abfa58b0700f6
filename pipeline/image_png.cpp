#include <csetjmp>
#include <cstring>
#include <png.h>

#include "pipeline/image_codec.h"

namespace patternd {
namespace {

struct Reader {
  const std::uint8_t* data;
  std::size_t size;
  std::size_t offset;
};

// libpng's error text, kept for our message; libpng then jumps back to setjmp.
struct Fault {
  char text[128];
};

void on_error(png_structp png, png_const_charp message) {
  auto* fault = static_cast<Fault*>(png_get_error_ptr(png));
  std::strncpy(fault->text, message, sizeof fault->text - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, png_size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->size - reader->offset) png_error(png, "the file is cut short");
  std::memcpy(out, reader->data + reader->offset, count);
  reader->offset += count;
}

// Reads the header and sets the conversions: palette, low bit depths and transparency expanded,
// alpha dropped, 16-bit colour reduced to 8, 16-bit grey in the machine's order.
void read_header(png_structp png, png_infop info) {
  png_read_info(png, info);
  const int color = png_get_color_type(png, info);
  const int depth = png_get_bit_depth(png, info);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if ((color & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0) {
    png_set_strip_alpha(png);
  }
  if (depth == 16) {
    if ((color & PNG_COLOR_MASK_COLOR) != 0) {
      png_set_scale_16(png);
    } else if constexpr (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      png_set_swap(png);
    }
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

PixelFormat format_of(png_structp png, png_infop info) {
  if ((png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0) return PixelFormat::kRgb8;
  return png_get_bit_depth(png, info) == 16 ? PixelFormat::kGray16 : PixelFormat::kGray8;
}

// The two halves of decoding, each with its setjmp and nothing with a destructor in between.
bool guarded_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  read_header(png, info);
  return true;
}

bool guarded_rows(png_structp png, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

class PngReader {
 public:
  explicit PngReader(Reader* reader)
      : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault_, on_error, on_warning)),
        info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
    if (!good()) return;
    png_set_read_fn(png_, reader, read_bytes);
    png_set_user_limits(png_, kMaxImageSide, kMaxImageSide);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  [[nodiscard]] bool good() const { return png_ != nullptr && info_ != nullptr; }
  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }
  [[nodiscard]] std::string fault() const { return fault_.text; }

 private:
  Fault fault_{};
  png_structp png_;
  png_infop info_;
};

struct Writer {
  std::vector<std::uint8_t> bytes;
};

void write_bytes(png_structp png, png_bytep data, png_size_t count) {
  auto* writer = static_cast<Writer*>(png_get_io_ptr(png));
  writer->bytes.insert(writer->bytes.end(), data, data + count);
}

void flush_nothing(png_structp) {}

bool guarded_write(png_structp png, png_infop info, const ImageView& image, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height),
               image.format == PixelFormat::kGray16 ? 16 : 8,
               image.format == PixelFormat::kRgb8 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 3);
  png_write_info(png, info);
  if (image.format == PixelFormat::kGray16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
    png_set_swap(png);
  }
  png_write_image(png, rows);
  png_write_end(png, info);
  return true;
}

}  // namespace

bool is_png(const std::uint8_t* data, std::size_t size) {
  return size >= 8 && png_sig_cmp(data, 0, 8) == 0;
}

Result<Image> decode_png(const std::uint8_t* data, std::size_t size, const std::string& name) {
  Reader source{data, size, 0};
  const PngReader reader(&source);
  if (!reader.good()) return fail(ErrorCode::kExhausted, name + ": no memory to decode PNG");
  const auto malformed = [&] {
    return fail(ErrorCode::kParse, name + ": is no good PNG: " + reader.fault());
  };
  if (!guarded_header(reader.png(), reader.info())) return malformed();
  auto image = Image::create(static_cast<int>(png_get_image_width(reader.png(), reader.info())),
                             static_cast<int>(png_get_image_height(reader.png(), reader.info())),
                             format_of(reader.png(), reader.info()));
  if (!image) return fail(image.error().code, name + ": " + image.error().message);
  std::vector<png_bytep> rows(static_cast<std::size_t>(image->height()));
  for (int y = 0; y < image->height(); ++y) {
    rows[static_cast<std::size_t>(y)] = image->view().row_bytes(y);
  }
  if (!guarded_rows(reader.png(), rows.data())) return malformed();
  return image;
}

Result<std::vector<std::uint8_t>> encode_png(const ImageView& image) {
  if (image.format != PixelFormat::kGray8 && image.format != PixelFormat::kGray16 &&
      image.format != PixelFormat::kRgb8) {
    return fail(ErrorCode::kUnsupported,
                std::string("a ") + name_of(image.format) + " picture does not fit PNG");
  }
  Fault fault{};
  Writer writer;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &fault, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (info == nullptr) {
    png_destroy_write_struct(&png, nullptr);
    return fail(ErrorCode::kExhausted, "no memory to encode PNG");
  }
  png_set_write_fn(png, &writer, write_bytes, flush_nothing);
  std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    // libpng's interface lacks const; it does not write to rows that it encodes.
    rows[static_cast<std::size_t>(y)] = const_cast<png_bytep>(image.row_bytes(y));
  }
  const bool good = guarded_write(png, info, image, rows.data());
  png_destroy_write_struct(&png, &info);
  if (!good) return fail(ErrorCode::kInternal, std::string("PNG encoder: ") + fault.text);
  return std::move(writer.bytes);
}

}  // namespace patternd
