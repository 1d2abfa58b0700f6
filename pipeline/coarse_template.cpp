#include "pipeline/coarse_template.h"

#include <algorithm>
#include <cmath>

#include "pipeline/row_major.h"

namespace patternd {
namespace {

// Rounds T to integers such that Σ|T|·max_sample stays below 2^31, and makes ΣT zero by moving the
// first pixels by one.
void quantise(CoarseTemplate& t, int max_sample) {
  double mean = 0;
  double largest = 0;
  double sum = 0;
  for (std::size_t i = 0; i < t.shape.value.size(); ++i)
    mean += static_cast<double>(t.shape.value[i]);  // 0 where the pixel doesn't count
  mean /= std::max(t.pixels, 1);
  for (std::size_t i = 0; i < t.shape.value.size(); ++i) {
    if (t.shape.counts[i] == 0) continue;
    const double deviation = std::abs(static_cast<double>(t.shape.value[i]) - mean);
    largest = std::max(largest, deviation);
    sum += deviation;
  }
  t.weights.assign(t.shape.value.size(), 0);
  if (!(largest > 0)) return;
  // Rounding and the levelling of ΣT may add 1 a pixel: leave room for it.
  const double most = 2147483647.0 / max_sample - 2.0 * t.pixels;
  const double scale = std::min(32000.0 / largest, most / sum);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < t.weights.size(); ++i) {
    if (t.shape.counts[i] == 0) continue;
    t.weights[i] = static_cast<std::int16_t>(
        std::lround((static_cast<double>(t.shape.value[i]) - mean) * scale));
    total += t.weights[i];
  }
  for (std::size_t i = 0; total != 0; i = (i + 1) % t.weights.size()) {
    if (t.shape.counts[i] == 0) continue;
    const int step = total > 0 ? -1 : 1;
    t.weights[i] = static_cast<std::int16_t>(t.weights[i] + step);
    total += step;
  }
}

void sum_up(CoarseTemplate& t) {
  const int per_row = t.shape.width + 1;
  t.before.assign(row_major(t.shape.height + 1, 0, per_row), {});
  for (int y = 0; y < t.shape.height; ++y) {
    TemplateSums row;
    for (int x = 0; x < t.shape.width; ++x) {
      const std::int64_t weight = t.weights[t.shape.index(x, y)];
      row.sum += weight;
      row.square += weight * weight;
      row.pixels += t.shape.counts[t.shape.index(x, y)];
      const TemplateSums& above = t.before[row_major(y, x + 1, per_row)];
      t.before[row_major(y + 1, x + 1, per_row)] = {above.sum + row.sum, above.square + row.square,
                                                    above.pixels + row.pixels};
    }
  }
  t.energy = t.before.back().square;
}

}  // namespace

TemplateSums CoarseTemplate::sums_of(int left, int right, int top, int bottom) const {
  const int per_row = shape.width + 1;
  const TemplateSums& a = before[row_major(top, left, per_row)];
  const TemplateSums& b = before[row_major(top, right, per_row)];
  const TemplateSums& c = before[row_major(bottom, left, per_row)];
  const TemplateSums& d = before[row_major(bottom, right, per_row)];
  return {d.sum - b.sum - c.sum + a.sum, d.square - b.square - c.square + a.square,
          d.pixels - b.pixels - c.pixels + a.pixels};
}

CoarseTemplate make_coarse_template(TurnedPattern shape, int max_sample) {
  CoarseTemplate t;
  t.shape = std::move(shape);
  t.pixels = t.shape.pixels();
  quantise(t, max_sample);
  sum_up(t);
  return t;
}

TurnedPattern render_best_phase(const std::vector<PatternLevel>& pyramid, int level,
                                TurnedPose& pose) {
  TurnedPattern best;
  int most = -1;
  TurnedPose tried = pose;
  for (int k = 0; k < 4; ++k) {
    tried.phase_x = (k & 1) * 0.5;
    tried.phase_y = (k >> 1) * 0.5;
    TurnedPattern turned = render_turned(pyramid, level, tried);
    const int pixels = turned.pixels();
    if (pixels <= most) continue;
    most = pixels;
    best = std::move(turned);
    pose = tried;
  }
  return best;
}

std::vector<MaskRun> runs_of(const TurnedPattern& shape) {
  std::vector<MaskRun> runs;
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width;) {
      if (shape.counts[shape.index(x, y)] == 0) {
        ++x;
        continue;
      }
      const int begin = x;
      while (x < shape.width && shape.counts[shape.index(x, y)] != 0) ++x;
      runs.push_back({shape.top + y, shape.left + begin, shape.left + x});
    }
  }
  return runs;
}

BandWeights band_weights(const CoarseTemplate& t) {
  const TurnedPattern& shape = t.shape;
  const auto weight = [&](int x, int y) {
    const bool inside = x >= 0 && y >= 0 && x < shape.width && y < shape.height;
    return inside ? static_cast<int>(t.weights[shape.index(x, y)]) : 0;
  };
  BandWeights out;
  for (int row = 0; row < shape.height + kBand - 1; ++row) {
    for (int x = 0; x < shape.width; x += 2) {
      std::int32_t pairs[kBand];
      for (int k = 0; k < kBand; ++k)
        pairs[k] = pair_of(weight(x, row - k), weight(x + 1, row - k));
      out.add({shape.top + row, shape.left + x}, pairs);
    }
  }
  return out;
}

TurnedPattern common_pixels(const std::vector<const TurnedPattern*>& shapes) {
  TurnedPattern common = *shapes.front();
  for (int y = 0; y < common.height; ++y) {
    for (int x = 0; x < common.width; ++x) {
      const bool in_all =
          std::all_of(shapes.begin(), shapes.end(), [&](const TurnedPattern* shape) {
            const int ox = common.left + x - shape->left;
            const int oy = common.top + y - shape->top;
            return ox >= 0 && oy >= 0 && ox < shape->width && oy < shape->height &&
                   shape->counts[shape->index(ox, oy)] != 0;
          });
      if (in_all) continue;
      common.counts[common.index(x, y)] = 0;
      common.value[common.index(x, y)] = 0;
    }
  }
  return common;
}

}  // namespace patternd
