#include "daemon/result_line.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

// Room kept for what follows the matches and blobs: their totals, the latency and the brackets.
constexpr std::size_t kTailBytes = 640;
constexpr std::size_t kHeadBytes = 256;
// Longest match and blob without the pattern's name: the keys and numbers at their widest.
constexpr std::size_t kMatchBytes = 512;
constexpr std::size_t kBlobBytes = 384;

// An angle as printed, in [−half, half): rounding must not put 180.0 where −180.0 is meant.
double shown_angle(double angle_deg, int symmetry) {
  const double half = 180.0 / std::max(symmetry, 1);
  const double rounded = std::round(angle_deg * 1000) / 1000;
  return rounded >= half ? rounded - 2 * half : rounded;
}

// Greatest pictures' coordinates keep their digits; 1/1000 px is under the noise of any match.
constexpr int kPixelDecimals = 3;
constexpr int kAngleDecimals = 3;
constexpr int kRatioDecimals = 4;
constexpr int kDeviationDecimals = 4;
constexpr int kMillimetreDecimals = 4;

void key_real(LineWriter& line, std::string_view key, double value, int decimals) {
  line.raw(key);
  line.real(value, decimals);
}

void key_integer(LineWriter& line, std::string_view key, std::int64_t value) {
  line.raw(key);
  line.integer(value);
}

}  // namespace

ResultFormat result_format(const ProcessorConfig& config) {
  ResultFormat format;
  for (const PatternSearch& search : config.patterns) {
    format.patterns.push_back(
        {search.pattern->name, search.params.symmetry, search.params.max_matches});
  }
  format.has_blobs = config.blobs.has_value();
  format.max_blobs = config.blobs ? config.blobs->max_blobs : 0;
  return format;
}

std::size_t match_bound(const ResultFormat& format) {
  std::size_t count = 0;
  for (const auto& pattern : format.patterns)
    count += static_cast<std::size_t>(std::max(pattern.max_matches, 0));
  return std::min(count, kMaxLineBytes / 128);
}

std::size_t result_line_bound(const ResultFormat& format, std::size_t image_bytes) {
  std::size_t bytes = kHeadBytes + json_text_bound(image_bytes) + kTailBytes;
  for (const auto& pattern : format.patterns) {
    bytes += static_cast<std::size_t>(std::max(pattern.max_matches, 0)) *
             (kMatchBytes + json_text_bound(pattern.name.size()));
    if (bytes >= kMaxLineBytes) return kMaxLineBytes;
  }
  bytes += static_cast<std::size_t>(std::max(format.max_blobs, 0)) * kBlobBytes;
  return std::min(bytes, kMaxLineBytes);
}

ResultLineWriter::ResultLineWriter(char* memory, std::size_t size) : line_(memory, size) {}

void ResultLineWriter::begin(const ResultFormat& format, const FrameInfo& info,
                             const FrameResult& result, std::string_view image,
                             std::vector<MatchSpan>* spans) {
  line_.cut(0);
  line_.raw("{\"type\":\"result\"");
  if (!image.empty()) {
    line_.raw(",\"image\":");
    line_.text(image);
  }
  line_.raw(",\"seq\":");
  line_.integer(info.seq);
  line_.raw(",\"captured_at\":");
  write_utc(line_, info.captured_unix_ns);
  key_integer(line_, ",\"captured_mono_ns\":", info.captured_mono_ns);
  line_.raw(",\"dropped\":");
  line_.integer(info.dropped);
  write_matches(format, result, spans);
  if (format.has_blobs) write_blobs(result);
}

void ResultLineWriter::write_matches(const ResultFormat& format, const FrameResult& result,
                                     std::vector<MatchSpan>* spans) {
  if (spans != nullptr) spans->clear();
  line_.raw(",\"matches\":[");
  std::size_t printed = 0;
  for (const Match& match : result.matches) {
    const std::size_t before = line_.size();
    if (printed > 0) line_.raw(",");
    const std::size_t start = line_.size();
    write_match(line_, format, match);
    if (line_.overflowed() || line_.left() < kTailBytes) {
      line_.cut(before);
      break;
    }
    if (spans != nullptr) {
      spans->push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(line_.size()),
                        static_cast<std::uint32_t>(match.pattern)});
    }
    ++printed;
  }
  line_.raw("]");
  if (printed < result.matches.size())
    key_integer(line_, ",\"matches_total\":", static_cast<std::int64_t>(result.matches.size()));
}

void ResultLineWriter::write_blobs(const FrameResult& result) {
  line_.raw(",\"blobs\":[");
  std::size_t printed = 0;
  for (const Blob& blob : result.blobs) {
    const std::size_t before = line_.size();
    if (printed > 0) line_.raw(",");
    write_blob(line_, blob);
    if (line_.overflowed() || line_.left() < kTailBytes) {
      line_.cut(before);
      break;
    }
    ++printed;
  }
  line_.raw("]");
  const std::uint64_t total = std::max<std::uint64_t>(result.blobs_total, result.blobs.size());
  if (printed < total) {
    line_.raw(",\"blobs_total\":");
    line_.integer(total);
  }
}

std::string_view ResultLineWriter::finish(const StageTimes& times) {
  line_.raw(",\"latency_us\":{");
  for (std::size_t i = 0; i < kStageCount; ++i) {
    line_.raw(i == 0 ? "\"" : ",\"");
    line_.raw(kStageNames[i]);
    line_.raw("\":");
    line_.integer(std::max<std::int64_t>((times.ns[i] + 500) / 1000, 0));
  }
  line_.raw("}}\n");
  return line_.view();
}

void write_match(LineWriter& line, const ResultFormat& format, const Match& match) {
  const auto index = static_cast<std::size_t>(std::max(match.pattern, 0));
  const bool known = index < format.patterns.size();
  line.raw("{\"pattern\":");
  line.text(known ? std::string_view(format.patterns[index].name) : std::string_view());
  key_real(line, ",\"x_px\":", match.x_px, kPixelDecimals);
  key_real(line, ",\"y_px\":", match.y_px, kPixelDecimals);
  key_real(line, ",\"angle_deg\":",
           shown_angle(match.angle_deg, known ? format.patterns[index].symmetry : 1),
           kAngleDecimals);
  key_real(line, ",\"scale\":", match.scale, kRatioDecimals);
  key_real(line, ",\"score\":", match.score, kRatioDecimals);
  key_real(line, ",\"runner_up\":", match.runner_up, kRatioDecimals);
  key_real(line, ",\"visible\":", match.visible, kRatioDecimals);
  if (match.inverted) line.raw(",\"inverted\":true");
  key_real(line, ",\"x_std_px\":", match.x_std_px, kDeviationDecimals);
  key_real(line, ",\"y_std_px\":", match.y_std_px, kDeviationDecimals);
  key_real(line, ",\"angle_std_deg\":", match.angle_std_deg, kDeviationDecimals);
  if (match.has_mm) {
    key_real(line, ",\"x_mm\":", match.x_mm, kMillimetreDecimals);
    key_real(line, ",\"y_mm\":", match.y_mm, kMillimetreDecimals);
    key_real(line, ",\"x_std_mm\":", match.x_std_mm, kDeviationDecimals);
    key_real(line, ",\"y_std_mm\":", match.y_std_mm, kDeviationDecimals);
  }
  line.raw("}");
}

void write_blob(LineWriter& line, const Blob& blob) {
  key_integer(line, "{\"id\":", blob.id);
  key_integer(line, ",\"area_px\":", blob.area_px);
  key_real(line, ",\"x_px\":", blob.x_px, kPixelDecimals);
  key_real(line, ",\"y_px\":", blob.y_px, kPixelDecimals);
  key_integer(line, ",\"left\":", blob.left);
  key_integer(line, ",\"top\":", blob.top);
  key_integer(line, ",\"width\":", blob.width);
  key_integer(line, ",\"height\":", blob.height);
  key_real(line, ",\"mean\":", blob.mean, 2);
  // The brightest pixel's value: whole, whatever the depth.
  key_integer(line, ",\"peak\":", std::isfinite(blob.peak) ? std::llround(blob.peak) : 0);
  line.raw("}");
}

std::string result_line(const ResultFormat& format, const FrameInfo& info,
                        const FrameResult& result, std::string_view image) {
  std::string memory(result_line_bound(format, image.size()), '\0');
  ResultLineWriter writer(memory.data(), memory.size());
  writer.begin(format, info, result, image, nullptr);
  return std::string(writer.finish(result.times));
}

}  // namespace patternd
