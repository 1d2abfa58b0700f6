#include "tools/calibrate/point_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "pipeline/input_file.h"

namespace patternd::calibrate {
namespace {

constexpr std::size_t kFileLimit = 4U << 20;

// The numbers of a line; nothing where something else stands there.
std::optional<std::vector<double>> numbers_of(std::string_view text) {
  constexpr std::string_view kSeparators = " \t\r,;";
  std::vector<double> numbers;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos) {
    const std::size_t stop = std::min(text.find_first_of(kSeparators, at), text.size());
    double value = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + stop, value);
    if (read.ec != std::errc() || read.ptr != text.data() + stop || !std::isfinite(value))
      return std::nullopt;
    numbers.push_back(value);
    at = stop;
  }
  return numbers;
}

}  // namespace

Result<std::vector<PointPair>> read_pairs(const std::string& path) {
  const auto bytes = read_file(path, kFileLimit);
  if (!bytes) return tl::make_unexpected(bytes.error());
  const std::string all(bytes->begin(), bytes->end());
  std::vector<PointPair> pairs;
  std::size_t start = 0;
  for (int line = 1; start < all.size(); ++line) {
    const std::size_t end = std::min(all.find('\n', start), all.size());
    const std::size_t length = std::min(end, all.find('#', start)) - start;
    const auto numbers = numbers_of(std::string_view(all).substr(start, length));
    start = end + 1;
    if (numbers && numbers->empty()) continue;
    if (!numbers || numbers->size() != 4) {
      return fail(ErrorCode::kParse, path + ":" + std::to_string(line) +
                                         ": not four numbers; x_px y_px x_mm y_mm are expected");
    }
    const std::vector<double>& n = *numbers;
    pairs.push_back({{n[2], n[3]}, {n[0], n[1]}});
  }
  return pairs;
}

}  // namespace patternd::calibrate
