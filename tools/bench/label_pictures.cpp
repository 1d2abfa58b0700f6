#include "tools/bench/label_pictures.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace patternd::bench {
namespace {

constexpr std::uint8_t kOn = 255;

template <class Inside>
void paint(Image& image, const Inside& inside) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) image.row<std::uint8_t>(y)[x] = inside(x, y) ? kOn : 0;
}

void paint_noise(Image& image, double density, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = static_cast<std::uint32_t>(density * 4294967295.0);
  paint(image, [&](int, int) { return random() < below; });
}

void paint_blocks(Image& image, std::uint32_t seed) {
  const int columns = (image.width() + 3) / 4;
  const int rows = (image.height() + 3) / 4;
  std::mt19937 random(seed);
  std::vector<bool> blocks(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = (random() & 1) != 0;
  paint(image, [&](int x, int y) {
    return blocks[static_cast<std::size_t>(y / 4) * static_cast<std::size_t>(columns) +
                  static_cast<std::size_t>(x / 4)];
  });
}

// Walks inwards: on along the current direction until the next cell but one is taken or outside,
// then turns.
void paint_spiral(Image& image) {
  const auto free = [&](int x, int y) {
    return x < 0 || y < 0 || x >= image.width() || y >= image.height() ||
           image.row<std::uint8_t>(y)[x] == 0;
  };
  const auto inside = [&](int x, int y) {
    return x >= 0 && y >= 0 && x < image.width() && y < image.height();
  };
  int x = 0;
  int y = 0;
  int dx = 1;
  int dy = 0;
  int turns = 0;
  while (turns < 2) {
    image.row<std::uint8_t>(y)[x] = kOn;
    if (inside(x + dx, y + dy) && free(x + dx, y + dy) && free(x + 2 * dx, y + 2 * dy)) {
      x += dx;
      y += dy;
      turns = 0;
    } else {
      std::swap(dx, dy);
      dx = -dx;
      ++turns;
    }
  }
}

void paint_spots(Image& image, std::uint32_t seed) {
  std::mt19937 random(seed);
  const double pixels = static_cast<double>(image.width()) * image.height();
  const int spots = std::max(1, static_cast<int>(pixels * 300 / (2048.0 * 2048.0)));
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(limit));
  };
  for (int i = 0; i < spots; ++i) {
    const int cx = below(image.width());
    const int cy = below(image.height());
    const int radius = 2 + below(5);
    for (int y = std::max(cy - radius, 0); y <= std::min(cy + radius, image.height() - 1); ++y)
      for (int x = std::max(cx - radius, 0); x <= std::min(cx + radius, image.width() - 1); ++x)
        if ((x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius)
          image.row<std::uint8_t>(y)[x] = kOn;
  }
}

}  // namespace

const std::vector<std::string>& label_picture_names() {
  static const std::vector<std::string> names = {
      "noise10", "noise30", "noise50",    "noise70",      "noise90", "dots",  "blocks4",
      "spiral",  "comb",    "serpentine", "checkerboard", "full",    "blank", "spots"};
  return names;
}

Image make_label_picture(const std::string& name, int width, int height, std::uint32_t seed) {
  auto made = Image::create(width, height, PixelFormat::kGray8);
  if (!made) return {};
  Image image = std::move(*made);
  image.fill_bytes(0);
  if (name.rfind("noise", 0) == 0) {
    paint_noise(image, std::atoi(name.c_str() + 5) / 100.0, seed);
  } else if (name == "dots") {
    paint(image, [](int x, int y) { return x % 2 == 0 && y % 2 == 0; });
  } else if (name == "blocks4") {
    paint_blocks(image, seed);
  } else if (name == "spiral") {
    paint_spiral(image);
  } else if (name == "comb") {
    paint(image, [&](int x, int y) { return x % 2 == 0 || y == height - 1; });
  } else if (name == "serpentine") {
    paint(image, [&](int x, int y) { return y % 2 == 0 || x == (y % 4 == 1 ? width - 1 : 0); });
  } else if (name == "checkerboard") {
    paint(image, [](int x, int y) { return (x + y) % 2 == 0; });
  } else if (name == "full") {
    image.fill_bytes(kOn);
  } else if (name == "spots") {
    paint_spots(image, seed);
  }
  return image;
}

}  // namespace patternd::bench
