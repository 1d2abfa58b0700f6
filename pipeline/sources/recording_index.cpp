#include "pipeline/sources/recording_index.h"

#include <algorithm>
#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "pipeline/input_file.h"
#include "pipeline/timestamp.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLineBytes = 65536;
constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 30;
constexpr const char* kExpected =
    "each line is an object with seq (a whole number from 0 to 9007199254740992), captured_mono_ns "
    "(a whole number from 0 to 9000000000000000000) and captured_at "
    "(\"2026-01-31T12:00:00.123456Z\", to the year 2254)";

// Takes the whole number `key`, at most `most`, off the line, or says what is wrong with it.
std::optional<std::string> take_number(const json& line, const char* key, std::uint64_t most,
                                       std::uint64_t& value) {
  const auto found = line.find(key);
  if (found == line.end()) return std::string(key) + " is missing";
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > most)
    return std::string(key) + " is " + std::string(utf8_prefix(found->dump(), 40));
  value = found->get<std::uint64_t>();
  return std::nullopt;
}

// Reads one line into `stamp`, or says what is wrong with it.
std::optional<std::string> parse_line(const std::string& text, FrameStamp& stamp) {
  if (text.size() > kMaxLineBytes) return "longer than 65536 bytes";
  const json line = json::parse(text, nullptr, false);
  if (line.is_discarded()) return "not valid JSON";
  if (!line.is_object()) return "not an object";
  std::uint64_t mono_ns = 0;
  if (auto wrong = take_number(line, "seq", kMostSeq, stamp.seq)) return wrong;
  if (auto wrong = take_number(line, "captured_mono_ns", kMostNs, mono_ns)) return wrong;
  stamp.captured_mono_ns = static_cast<std::int64_t>(mono_ns);
  const auto at = line.find("captured_at");
  if (at == line.end()) return "captured_at is missing";
  const auto unix_ns =
      at->is_string() ? parse_utc(at->get_ref<const std::string&>()) : std::nullopt;
  if (!unix_ns || *unix_ns > kMostNs) return "captured_at is no UTC time";
  stamp.captured_unix_ns = *unix_ns;
  return std::nullopt;
}

std::optional<std::string> check_rise(const FrameStamp& before, const FrameStamp& stamp) {
  if (stamp.seq <= before.seq) {
    return "seq " + std::to_string(stamp.seq) + " does not rise above " +
           std::to_string(before.seq) + " of the line before";
  }
  if (stamp.captured_mono_ns <= before.captured_mono_ns) {
    return "captured_mono_ns " + std::to_string(stamp.captured_mono_ns) + " does not rise above " +
           std::to_string(before.captured_mono_ns) + " of the line before";
  }
  return std::nullopt;
}

}  // namespace

Result<RecordingIndex> read_recording_index(const std::string& folder) {
  const std::string path = folder + "/" + kIndexName;
  const auto content = read_file(path, kMaxIndexBytes);
  if (!content) return tl::make_unexpected(content.error());
  RecordingIndex index;
  std::size_t number = 0;
  for (auto begin = content->begin(); begin != content->end();) {
    const auto end = std::find(begin, content->end(), '\n');
    if (end == content->end()) {
      index.cut = true;
      break;
    }
    ++number;
    FrameStamp stamp;
    auto wrong = parse_line(std::string(begin, end), stamp);
    begin = end + 1;
    if (!wrong && !index.stamps.empty()) wrong = check_rise(index.stamps.back(), stamp);
    if (wrong) {
      return fail(ErrorCode::kParse,
                  path + ":" + std::to_string(number) + ": " + *wrong + "; " + kExpected);
    }
    index.stamps.push_back(stamp);
  }
  if (index.stamps.empty())
    return fail(ErrorCode::kParse, path + ": holds no complete line; " + kExpected);
  return index;
}

std::string recording_index_line(const FrameStamp& stamp) {
  std::array<char, kUtcTextLength> at{};
  const std::size_t length = format_utc(stamp.captured_unix_ns, at.data());
  return "{\"seq\":" + std::to_string(stamp.seq) +
         ",\"captured_mono_ns\":" + std::to_string(stamp.captured_mono_ns) + ",\"captured_at\":\"" +
         std::string(at.data(), length) + "\"}\n";
}

}  // namespace patternd
