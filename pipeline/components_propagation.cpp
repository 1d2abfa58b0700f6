#include "pipeline/components_propagation.h"

#include <algorithm>
#include <cstdlib>

namespace patternd::components {
namespace {

struct Step {
  int x;
  int y;
};
constexpr Step kNeighbours[] = {{0, -1},  {-1, 0}, {1, 0},  {0, 1},
                                {-1, -1}, {1, -1}, {-1, 1}, {1, 1}};

void number_pixels(MutableImageView labels) {
  std::int32_t number = 0;
  for (int y = 0; y < labels.height; ++y) {
    auto* row = labels.row<std::int32_t>(y);
    for (int x = 0; x < labels.width; ++x) {
      ++number;
      row[x] = row[x] != 0 ? number : 0;
    }
  }
}

// One pass over the picture, left to right and down; returns whether a label moved.
template <class Connected>
bool pass(bool eight, MutableImageView labels, const Connected& connected) {
  const int neighbours = eight ? 8 : 4;
  bool moved = false;
  for (int y = 0; y < labels.height; ++y) {
    auto* row = labels.row<std::int32_t>(y);
    for (int x = 0; x < labels.width; ++x) {
      if (row[x] == 0) continue;
      std::int32_t smallest = row[x];
      for (int i = 0; i < neighbours; ++i) {
        const int nx = x + kNeighbours[i].x;
        const int ny = y + kNeighbours[i].y;
        if (nx < 0 || ny < 0 || nx >= labels.width || ny >= labels.height) continue;
        const std::int32_t label = labels.row<std::int32_t>(ny)[nx];
        if (label != 0 && label < smallest && connected(x, y, nx, ny)) smallest = label;
      }
      moved |= smallest != row[x];
      row[x] = smallest;
    }
  }
  return moved;
}

// A component's label is the number of its first pixel: counts them up in scan order. Done in
// place: first pixels get minus their new label, so that the others find it there.
std::int64_t make_consecutive(MutableImageView labels) {
  std::int32_t count = 0;
  for (int y = 0; y < labels.height; ++y) {
    auto* row = labels.row<std::int32_t>(y);
    for (int x = 0; x < labels.width; ++x) {
      if (row[x] <= 0) continue;
      const std::int32_t at = row[x] - 1;
      std::int32_t& first = labels.row<std::int32_t>(at / labels.width)[at % labels.width];
      if (&first == row + x)
        first = -++count;
      else
        row[x] = first;
    }
  }
  for (int y = 0; y < labels.height; ++y) {
    auto* row = labels.row<std::int32_t>(y);
    std::transform(row, row + labels.width, row, [](std::int32_t v) { return -v; });
  }
  return count;
}

template <class Connected>
std::int64_t propagate(bool eight, MutableImageView labels, const Connected& connected) {
  number_pixels(labels);
  while (pass(eight, labels, connected)) {
  }
  return make_consecutive(labels);
}

template <class T>
std::int64_t propagate_similar_as(const ImageView& image, int channels, double most_difference,
                                  bool eight, MutableImageView labels) {
  return propagate(eight, labels, [&](int x, int y, int nx, int ny) {
    const T* a = image.row<T>(y) + x * channels;
    const T* b = image.row<T>(ny) + nx * channels;
    for (int c = 0; c < channels; ++c)
      if (std::abs(a[c] - b[c]) > most_difference) return false;
    return true;
  });
}

}  // namespace

std::int64_t propagate_similar(const ImageView& image, double most_difference, bool eight,
                               MutableImageView labels) {
  for (int y = 0; y < labels.height; ++y) std::fill_n(labels.row<std::int32_t>(y), labels.width, 1);
  if (image.format == PixelFormat::kGray16)
    return propagate_similar_as<std::uint16_t>(image, 1, most_difference, eight, labels);
  const int channels = image.format == PixelFormat::kRgb8 ? 3 : 1;
  return propagate_similar_as<std::uint8_t>(image, channels, most_difference, eight, labels);
}

std::int64_t propagate_foreground(bool eight, MutableImageView labels) {
  return propagate(eight, labels, [](int, int, int, int) { return true; });
}

}  // namespace patternd::components
