#include "tools/patternctl/label_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "pipeline/image_file.h"

namespace patternd::tools {
namespace {

enum class LabelFile { kNpy, kPng, kPgm, kUnknown };

LabelFile kind_of(const std::string& path) {
  const auto ends = [&](const char* ending) {
    const std::string text = ending;
    return path.size() > text.size() &&
           path.compare(path.size() - text.size(), text.size(), text) == 0;
  };
  if (ends(".npy")) return LabelFile::kNpy;
  if (ends(".png")) return LabelFile::kPng;
  if (ends(".pgm")) return LabelFile::kPgm;
  return LabelFile::kUnknown;
}

std::int32_t largest_label(const ImageView& labels) {
  std::int32_t largest = 0;
  for (int y = 0; y < labels.height; ++y) {
    const auto* row = labels.row<std::int32_t>(y);
    largest = std::max(largest, *std::max_element(row, row + labels.width));
  }
  return largest;
}

// NumPy's format, version 1.0: magic, length of the header, a dictionary padded with spaces so that
// the data starts at a multiple of 64, int32 little-endian row by row.
std::string encode_npy(const ImageView& labels) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                       std::to_string(labels.height) + ", " + std::to_string(labels.width) + "), }";
  constexpr std::size_t kPreamble = 10;
  header.append(63 - (kPreamble + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.reserve(bytes.size() + 4 * static_cast<std::size_t>(labels.width) *
                                   static_cast<std::size_t>(labels.height));
  for (int y = 0; y < labels.height; ++y) {
    const auto* row = labels.row<std::int32_t>(y);
    for (int x = 0; x < labels.width; ++x)
      for (int shift = 0; shift < 32; shift += 8)
        bytes += static_cast<char>(static_cast<std::uint32_t>(row[x]) >> shift & 0xFF);
  }
  return bytes;
}

Result<void> write_label_png(const std::string& path, const ImageView& labels) {
  const std::int32_t largest = largest_label(labels);
  if (largest > 65535) {
    return fail(ErrorCode::kUnsupported,
                path + ": " + std::to_string(largest) +
                    " labels do not fit a 16-bit PNG (65535 at most); write .npy, or leave small "
                    "components out with --min-area");
  }
  auto deep = Image::create(labels.width, labels.height, PixelFormat::kGray16);
  if (!deep) return tl::make_unexpected(deep.error());
  for (int y = 0; y < labels.height; ++y) {
    const auto* row = labels.row<std::int32_t>(y);
    std::transform(row, row + labels.width, deep->row<std::uint16_t>(y),
                   [](std::int32_t label) { return static_cast<std::uint16_t>(label); });
  }
  return write_image(path, deep->view());
}

// ---- colours

using Rgb = std::array<std::uint8_t, 3>;
using Neighbours = std::vector<std::pair<std::int32_t, std::int32_t>>;

// Colour number n >= 1: hues a golden angle apart, so that neighbouring numbers differ much. Those
// of a round of 32 that come nearest (13 and 21 numbers apart) differ in brightness; rounds differ
// in saturation and brightness. Never dark.
Rgb palette_colour(std::uint32_t number) {
  const double turn = 0.618033988749895 * (number - 1);
  const double hue = 6 * (turn - std::floor(turn));
  const std::uint32_t round = (number - 1) / 32;
  const double brightness = (number % 2 == 1 ? 255 : 175) - 15 * (round % 4);
  const double saturation = 0.9 - 0.2 * (round / 4 % 3);
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue, 6);
    const double part = std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<std::uint8_t>(std::lround(brightness * (1 - saturation * part)));
  };
  return {channel(5), channel(3), channel(1)};
}

// The report's remainders. Its labels are places of pixels, not 1, 2, 3, …, whose colours would all
// be nearly black; what is dark still is lifted.
Rgb hash_colour(std::size_t place) {
  Rgb colour{static_cast<std::uint8_t>(place % 1027 % 256),
             static_cast<std::uint8_t>(place % 537 % 256),
             static_cast<std::uint8_t>(place % 3531 % 256)};
  constexpr std::uint8_t kDark = 96;
  if (*std::max_element(colour.begin(), colour.end()) >= kDark) return colour;
  for (std::uint8_t& channel : colour) channel = static_cast<std::uint8_t>(channel + 128);
  return colour;
}

void remove_repeats(Neighbours& pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

// All pairs (larger, smaller) of labels within two pixels of each other.
Neighbours find_neighbours(const ImageView& labels) {
  // So many pairs are gathered before repeats are removed.
  constexpr std::size_t kGathered = std::size_t{1} << 24;
  std::size_t limit = kGathered;
  Neighbours pairs;
  for (int y = 0; y < labels.height; ++y) {
    for (int x = 0; x < labels.width; ++x) {
      const std::int32_t label = labels.row<std::int32_t>(y)[x];
      if (label == 0) continue;
      for (int v = y; v <= std::min(y + 2, labels.height - 1); ++v) {
        const int first = v == y ? x + 1 : std::max(x - 2, 0);
        for (int u = first; u <= std::min(x + 2, labels.width - 1); ++u) {
          const std::int32_t other = labels.row<std::int32_t>(v)[u];
          if (other == 0 || other == label) continue;
          const std::pair pair{std::max(label, other), std::min(label, other)};
          if (pairs.empty() || pairs.back() != pair) pairs.push_back(pair);
        }
      }
    }
    if (pairs.size() > limit) {
      remove_repeats(pairs);
      limit = pairs.size() + kGathered;
    }
  }
  remove_repeats(pairs);
  return pairs;
}

// A colour number a label (index 0: the background, unused): starts at the label's own place in a
// round of 32, so that components differ far apart too, and goes on to the first number that no
// neighbour with a smaller label has.
std::vector<std::uint32_t> number_colours(const ImageView& labels) {
  constexpr std::uint32_t kRound = 32;
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(largest_label(labels)) + 1);
  for (std::size_t label = 1; label < numbers.size(); ++label)
    numbers[label] = 1 + static_cast<std::uint32_t>(label - 1) % kRound;
  const Neighbours pairs = find_neighbours(labels);
  std::vector<std::uint32_t> taken;
  for (auto pair = pairs.begin(); pair != pairs.end();) {
    const std::int32_t label = pair->first;
    taken.clear();
    for (; pair != pairs.end() && pair->first == label; ++pair)
      taken.push_back(numbers[static_cast<std::size_t>(pair->second)]);
    std::sort(taken.begin(), taken.end());
    std::uint32_t& number = numbers[static_cast<std::size_t>(label)];
    const auto first = std::lower_bound(taken.begin(), taken.end(), number);
    for (auto other = first; other != taken.end(); ++other)
      if (*other == number) ++number;
  }
  return numbers;
}

// A colour a label (index 0: black, the background).
std::vector<Rgb> choose_colours(const ImageView& labels, LabelColours colours) {
  std::vector<Rgb> chosen(static_cast<std::size_t>(largest_label(labels)) + 1);
  if (colours == LabelColours::kDistinct) {
    const std::vector<std::uint32_t> numbers = number_colours(labels);
    for (std::size_t i = 1; i < chosen.size(); ++i) chosen[i] = palette_colour(numbers[i]);
    return chosen;
  }
  std::size_t place = 0;
  std::size_t seen = 0;  // labels come in the order of their first pixels
  for (int y = 0; y < labels.height; ++y) {
    const auto* row = labels.row<std::int32_t>(y);
    for (int x = 0; x < labels.width; ++x, ++place) {
      if (static_cast<std::size_t>(row[x]) <= seen) continue;
      seen = static_cast<std::size_t>(row[x]);
      chosen[seen] = hash_colour(place);
    }
  }
  return chosen;
}

}  // namespace

Result<void> check_label_file_name(const std::string& path) {
  if (kind_of(path) != LabelFile::kUnknown) return {};
  return fail(ErrorCode::kInvalidArgument,
              path + ": labels are written as .npy, .png (16 bit) or .pgm (plain text)");
}

Result<void> write_label_file(const std::string& path, const ImageView& labels) {
  switch (kind_of(path)) {
    case LabelFile::kNpy:
      return write_file(path, encode_npy(labels));
    case LabelFile::kPng:
      return write_label_png(path, labels);
    case LabelFile::kPgm:
      return write_plain_pnm(path, labels);
    case LabelFile::kUnknown:
      break;
  }
  return check_label_file_name(path);
}

Result<Image> colour_labels(const ImageView& labels, LabelColours colours) {
  auto picture = Image::create(labels.width, labels.height, PixelFormat::kRgb8);
  if (!picture) return picture;
  const std::vector<Rgb> chosen = choose_colours(labels, colours);
  for (int y = 0; y < labels.height; ++y) {
    const auto* from = labels.row<std::int32_t>(y);
    auto* to = picture->row<std::uint8_t>(y);
    for (int x = 0; x < labels.width; ++x) {
      const Rgb& colour = chosen[static_cast<std::size_t>(from[x])];
      std::copy(colour.begin(), colour.end(), to + 3 * x);
    }
  }
  return picture;
}

}  // namespace patternd::tools
