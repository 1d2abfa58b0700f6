#include "daemon/frame_line.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "daemon/base64.h"
#include "pipeline/timestamp.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

// Of pixels in a line: a multiple of 3, so that parts join, and in base64 well under 1 MiB.
constexpr std::size_t kPartBytes = std::size_t{720} << 10;

std::vector<std::uint8_t> packed(const ImageView& luma) {
  const std::size_t row = static_cast<std::size_t>(luma.width) * bytes_per_pixel(luma.format);
  std::vector<std::uint8_t> bytes(row * static_cast<std::size_t>(luma.height));
  for (int y = 0; y < luma.height; ++y)
    std::memcpy(bytes.data() + static_cast<std::size_t>(y) * row, luma.row_bytes(y), row);
  return bytes;
}

std::string utc_text(std::int64_t unix_ns) {
  std::array<char, kUtcTextLength> at{};
  return {at.data(), format_utc(unix_ns, at.data())};
}

tl::unexpected<Error> malformed(const std::string& what) {
  return fail(ErrorCode::kParse, "a frame line " + what + "; is the service of this version?");
}

}  // namespace

std::string frame_lines(const ImageView& luma, const FrameStamp& stamp, std::uint64_t dropped) {
  const std::vector<std::uint8_t> bytes = packed(luma);
  const std::size_t parts = std::max<std::size_t>((bytes.size() + kPartBytes - 1) / kPartBytes, 1);
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + parts * 400);
  for (std::size_t part = 0; part < parts; ++part) {
    const Json head = {{"type", "frame"},
                       {"seq", stamp.seq},
                       {"captured_at", utc_text(stamp.captured_unix_ns)},
                       {"captured_mono_ns", stamp.captured_mono_ns},
                       {"dropped", dropped},
                       {"width", luma.width},
                       {"height", luma.height},
                       {"format", name_of(luma.format)},
                       {"part", part},
                       {"parts", parts}};
    text += head.dump();
    text.back() = ',';
    text += "\"data\":\"";
    const std::size_t begin = part * kPartBytes;
    append_base64(bytes.data() + begin, std::min(kPartBytes, bytes.size() - begin), text);
    text += "\"}\n";
  }
  return text;
}

Result<std::optional<ReceivedFrame>> FrameAssembler::take(const Json& line) {
  try {
    auto frame = add(line);
    if (!frame || *frame) next_part_ = 0;
    return frame;
  } catch (const Json::exception& foreign) {
    next_part_ = 0;
    return malformed("lacks a key or has another type in it (" + printable(foreign.what()) + ")");
  }
}

Result<std::optional<ReceivedFrame>> FrameAssembler::add(const Json& line) {
  const auto part = line.at("part").get<std::int64_t>();
  const auto parts = line.at("parts").get<std::int64_t>();
  if (part == 0) {
    bytes_.clear();
    next_part_ = 0;
  }
  if (part != next_part_ || part >= parts)
    return malformed("is part " + std::to_string(part) + " of " + std::to_string(parts) +
                     " where part " + std::to_string(next_part_) + " must follow");
  ++next_part_;
  constexpr std::size_t kMostBytes = std::size_t{2} * kMaxImageSide * kMaxImageSide;
  if (bytes_.size() > kMostBytes) return malformed("brings more than a frame can have");
  if (!decode_base64(line.at("data").get_ref<const std::string&>(), bytes_))
    return malformed("has data that are no base64");
  if (next_part_ < parts) return std::optional<ReceivedFrame>();
  auto frame = finished(line);
  if (!frame) return tl::make_unexpected(frame.error());
  return std::optional<ReceivedFrame>(std::move(*frame));
}

Result<ReceivedFrame> FrameAssembler::finished(const Json& line) const {
  const auto width = line.at("width").get<std::int64_t>();
  const auto height = line.at("height").get<std::int64_t>();
  const auto format = line.at("format").get<std::string>();
  const auto unix_ns = parse_utc(line.at("captured_at").get<std::string>());
  const bool deep = format == name_of(PixelFormat::kGray16);
  if ((!deep && format != name_of(PixelFormat::kGray8)) || !unix_ns || width < 1 || height < 1 ||
      width > kMaxImageSide || height > kMaxImageSide ||
      bytes_.size() != static_cast<std::size_t>(width * height) * (deep ? 2 : 1)) {
    return malformed("says " + std::to_string(width) + "x" + std::to_string(height) + " " + format +
                     " and brings " + std::to_string(bytes_.size()) + " bytes");
  }
  auto luma = Image::create(static_cast<int>(width), static_cast<int>(height),
                            deep ? PixelFormat::kGray16 : PixelFormat::kGray8);
  if (!luma) return tl::make_unexpected(luma.error());
  const std::size_t row = bytes_.size() / static_cast<std::size_t>(height);
  for (int y = 0; y < luma->height(); ++y) {
    std::memcpy(luma->view().data + static_cast<std::size_t>(y) * luma->view().stride_bytes,
                bytes_.data() + static_cast<std::size_t>(y) * row, row);
  }
  ReceivedFrame frame;
  frame.luma = std::move(*luma);
  frame.stamp = {line.at("seq").get<std::uint64_t>(),
                 line.at("captured_mono_ns").get<std::int64_t>(), *unix_ns};
  frame.dropped = line.at("dropped").get<std::uint64_t>();
  return frame;
}

}  // namespace patternd
