#include "pipeline/coarse_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace patternd {
namespace {

// Planes of neighbouring angles that share a bound.
constexpr std::size_t kPlanesPerGroup = 8;
// Bounds come from floats; this much lower they are safe.
constexpr float kBoundSafety = 0.99F;
// So much lower an estimated score may be of a position that is scored exactly.
constexpr float kEstimateSafety = 0.98F;
constexpr std::int32_t kAllVisible = -1;
constexpr std::int32_t kSkip = -2;

// A turned pattern as integers: T with ΣT = 0 exactly, and for each row the running sums that give
// the count, ΣT and ΣT² of any stretch of it.
struct Template {
  TurnedPattern shape;
  std::vector<std::int16_t> weights;
  std::vector<std::int32_t> count_before;  // (width + 1) a row
  std::vector<std::int64_t> sum_before;
  std::vector<std::int64_t> square_before;
  int pixels = 0;
  std::int64_t energy = 0;  // ΣT²
};

// Of the four phases (pixel centre, or half-way between pixels along x, y or both) the one that
// keeps most pixels.
TurnedPattern render_best_phase(const std::vector<PatternLevel>& pyramid, int level,
                                TurnedPose pose, TurnedPose& used) {
  TurnedPattern best;
  int most = -1;
  for (int k = 0; k < 4; ++k) {
    pose.phase_x = (k & 1) * 0.5;
    pose.phase_y = (k >> 1) * 0.5;
    TurnedPattern turned = render_turned(pyramid, level, pose);
    const int pixels = turned.pixels();
    if (pixels <= most) continue;
    most = pixels;
    best = std::move(turned);
    used = pose;
  }
  return best;
}

// Rounds T to integers such that Σ|T|·max_sample stays below 2^31, and makes ΣT zero by moving the
// first pixels by one.
void quantise(Template& t, int max_sample) {
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

void sum_rows(Template& t) {
  const std::size_t per_row = static_cast<std::size_t>(t.shape.width) + 1;
  const std::size_t size = per_row * static_cast<std::size_t>(t.shape.height);
  t.count_before.assign(size, 0);
  t.sum_before.assign(size, 0);
  t.square_before.assign(size, 0);
  for (int y = 0; y < t.shape.height; ++y) {
    for (int x = 0; x < t.shape.width; ++x) {
      const std::size_t at = static_cast<std::size_t>(y) * per_row + static_cast<std::size_t>(x);
      const std::int64_t weight = t.weights[t.shape.index(x, y)];
      t.count_before[at + 1] = t.count_before[at] + t.shape.counts[t.shape.index(x, y)];
      t.sum_before[at + 1] = t.sum_before[at] + weight;
      t.square_before[at + 1] = t.square_before[at] + weight * weight;
      t.energy += weight * weight;
    }
  }
}

std::vector<MaskRun> runs_of(const TurnedPattern& shape, const std::vector<std::uint8_t>& counts) {
  std::vector<MaskRun> runs;
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width;) {
      if (counts[shape.index(x, y)] == 0) {
        ++x;
        continue;
      }
      const int begin = x;
      while (x < shape.width && counts[shape.index(x, y)] != 0) ++x;
      runs.push_back({shape.top + y, shape.left + begin, shape.left + x});
    }
  }
  return runs;
}

std::int32_t pair_of(int low, int high) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(low & 0xFFFF) |
                                   (static_cast<std::uint32_t>(high & 0xFFFF) << 16));
}

// Interleaves the template's rows for bands: see WeightSpan.
BandWeights band_weights(const Template& t) {
  const TurnedPattern& shape = t.shape;
  const auto weight = [&](int x, int y) {
    const bool inside = x >= 0 && y >= 0 && x < shape.width && y < shape.height;
    return inside ? static_cast<int>(t.weights[shape.index(x, y)]) : 0;
  };
  BandWeights out;
  for (int row = 0; row < shape.height + kBand - 1; ++row) {
    int begin = shape.width;
    int end = 0;
    for (int k = 0; k < kBand; ++k) {
      const int y = row - k;
      if (y < 0 || y >= shape.height) continue;
      for (int x = 0; x < shape.width; ++x) {
        if (shape.counts[shape.index(x, y)] == 0) continue;
        begin = std::min(begin, x);
        end = std::max(end, x + 1);
      }
    }
    if (begin >= end) continue;
    const int pairs = (end - begin + 1) / 2;
    out.spans.push_back({shape.top + row, shape.left + begin, pairs});
    for (int i = 0; i < pairs; ++i) {
      for (int k = 0; k < kBand; ++k)
        out.weights.push_back(
            pair_of(weight(begin + 2 * i, row - k), weight(begin + 2 * i + 1, row - k)));
    }
  }
  return out;
}

}  // namespace

// A block of positions of which some see only a part of the pattern, or may not be searched.
struct CoarseSearch::BorderBlock {
  BlockTerms terms;             // for the estimate; pixels: visible, 0: not searched
  std::int64_t sum[kBlock];     // ΣT over them
  double inverse_norm[kBlock];  // 1 / sqrt(n ΣT² − (ΣT)²)
};

struct CoarseSearch::Plane {
  double angle_deg = 0;
  double scale = 1;
  double phase_x = 0;
  double phase_y = 0;
  int pixels = 0;
  double inverse_norm = 0;   // 1 / sqrt(n ΣT²)
  float inverse_length = 0;  // 1 / sqrt(ΣT²)
  BlockTerms terms;          // of a block that sees all of it
  std::vector<MaskRun> runs;
  BandWeights band;
  std::vector<std::int32_t> block_class;  // a row of blocks_ for each position row
  std::vector<BorderBlock> border;
  std::vector<int> band_begin;  // first block of each band that is not skipped, and the last + 1
  std::vector<int> band_end;

  // The extents of what it reads around a position.
  int left = 0;
  int right = 0;
  int top = 0;
  int bottom = 0;
};

struct CoarseSearch::Group {
  std::size_t first = 0;
  std::size_t count = 0;
  std::vector<MaskRun> common;
  int common_pixels = 0;
};

namespace {

// How many of the template's pixels are inside and valid at a position, and their ΣT, ΣT².
struct Visible {
  std::int32_t pixels = 0;
  std::int64_t sum = 0;
  std::int64_t square = 0;
};

class Visibility {
 public:
  Visibility(const CoarseConfig& config) : config_(config) {}

  [[nodiscard]] Visible of(const Template& t, int x, int y) const {
    Visible out;
    const std::size_t per_row = static_cast<std::size_t>(t.shape.width) + 1;
    const int begin = std::max(0, -(x + t.shape.left));
    const int end = std::min(t.shape.width, config_.width - (x + t.shape.left));
    if (begin >= end) return out;
    for (int row = 0; row < t.shape.height; ++row) {
      const int image_y = y + t.shape.top + row;
      if (image_y < 0 || image_y >= config_.height) continue;
      const std::size_t at = static_cast<std::size_t>(row) * per_row;
      const auto add = [&](int from, int to) {
        const std::size_t a = at + static_cast<std::size_t>(from);
        const std::size_t b = at + static_cast<std::size_t>(to);
        out.pixels += t.count_before[b] - t.count_before[a];
        out.sum += t.sum_before[b] - t.sum_before[a];
        out.square += t.square_before[b] - t.square_before[a];
      };
      if (config_.valid.data == nullptr) {
        add(begin, end);
        continue;
      }
      const auto* valid = config_.valid.row<std::uint8_t>(image_y) + x + t.shape.left;
      for (int i = begin; i < end; ++i)
        if (valid[i] != 0) add(i, i + 1);
    }
    return out;
  }

 private:
  const CoarseConfig& config_;
};

// Positions of a plane at which the reference point may lie in the roi, with a pixel to spare.
struct Bounds {
  double low_x = -1e9;
  double high_x = 1e9;
  double low_y = -1e9;
  double high_y = 1e9;
  [[nodiscard]] bool contains(int x, int y) const {
    return x >= low_x && x <= high_x && y >= low_y && y <= high_y;
  }
};

Bounds roi_bounds(const CoarseConfig& config, const TurnedPose& pose) {
  Bounds out;
  if (!config.roi) return out;
  const double spacing = static_cast<double>(1 << config.level);
  const double c = std::cos(pose.angle_deg * kDegToRad) * pose.scale;
  const double s = std::sin(pose.angle_deg * kDegToRad) * pose.scale;
  const double dx = c * config.ref_dx - s * config.ref_dy;
  const double dy = s * config.ref_dx + c * config.ref_dy;
  const auto position = [&](double level0, double phase) {
    return (level0 + 0.5) / spacing - 0.5 - phase;
  };
  // The angle may be half a step off, which moves the reference point by about a pixel a radius.
  const double slack = 2 + std::hypot(config.ref_dx, config.ref_dy) / spacing * 0.1;
  out.low_x = position(config.roi->x - dx, pose.phase_x) - slack;
  out.high_x = position(config.roi->x + config.roi->width - dx, pose.phase_x) + slack;
  out.low_y = position(config.roi->y - dy, pose.phase_y) - slack;
  out.high_y = position(config.roi->y + config.roi->height - dy, pose.phase_y) + slack;
  return out;
}

Template make_template(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config,
                       TurnedPose& pose) {
  Template t;
  t.shape = config.quincunx ? render_turned(pyramid, config.level, pose)
                            : render_best_phase(pyramid, config.level, pose, pose);
  t.pixels = t.shape.pixels();
  quantise(t, config.max_sample);
  sum_rows(t);
  return t;
}

}  // namespace

// ------------------------------------------------------------------ CoarseImage

CoarseImage::CoarseImage(int width, int height, int margin)
    : width_(width), height_(height), margin_(margin) {
  stride_ = static_cast<std::ptrdiff_t>(width) + 2 * margin;
  const std::size_t size =
      static_cast<std::size_t>(stride_) *
      (static_cast<std::size_t>(height) + 2 * static_cast<std::size_t>(margin));
  pairs_.assign(size, 0);
  sums_.assign(size, 0);
  squares_.assign(size, 0);
}

CoarseRows CoarseImage::rows() const {
  const std::ptrdiff_t origin = margin_ * stride_ + margin_;
  return {pairs_.data() + origin, sums_.data() + origin, squares_.data() + origin, stride_};
}

std::size_t CoarseImage::memory_bytes() const { return pairs_.size() * 12; }

void CoarseImage::build(const ImageView& level) {
  for (int y = 0; y < height_; ++y) {
    const std::ptrdiff_t at = (margin_ + y) * stride_ + margin_;
    std::int32_t* pairs = pairs_.data() + at;
    std::uint32_t* sums = sums_.data() + at;
    std::uint32_t* squares = squares_.data() + at;
    const auto sample = [&](int x) -> int {
      if (level.format == PixelFormat::kGray8) return level.row<std::uint8_t>(y)[x] - 128;
      return (level.row<std::uint16_t>(y)[x] >> 6) - 512;
    };
    std::uint32_t sum = 0;
    std::uint32_t square = 0;
    int here = sample(0);
    pairs[-1] = pair_of(0, here);
    for (int x = 0; x < width_; ++x) {
      const int next = x + 1 < width_ ? sample(x + 1) : 0;
      pairs[x] = pair_of(here, next);
      sums[x] = sum;
      squares[x] = square;
      sum += static_cast<std::uint32_t>(here);
      square += static_cast<std::uint32_t>(here * here);
      here = next;
    }
    std::fill(sums + width_, sums + width_ + margin_, sum);
    std::fill(squares + width_, squares + width_ + margin_, square);
  }
}

// ------------------------------------------------------------------ CoarseSearch

CoarseSearch::Scratch::Scratch(const CoarseSearch& search) {
  const auto width = static_cast<std::size_t>(search.blocks_) * kBlock;
  numerators_.resize(width * kBand);
  bounds_.resize(width * kBand);
  passes_.resize(static_cast<std::size_t>(search.blocks_));
  for (std::size_t i = 0; i < kPlanesPerGroup; ++i) maxima_.emplace_back(width);
}

CoarseSearch::CoarseSearch(CoarseSearch&&) noexcept = default;
CoarseSearch& CoarseSearch::operator=(CoarseSearch&&) noexcept = default;
CoarseSearch::~CoarseSearch() = default;

namespace {

struct PlaneShape {
  Template made;
  TurnedPose pose;
  Bounds roi;
  std::int32_t least_visible = 0;
};

// Planes an angle: positions at pixel centres, or at those and half-way between four (a quincunx:
// no place is farther than half a pixel along one axis from a position, with two planes).
int phases_of(const CoarseConfig& config) { return config.quincunx ? 2 : 1; }

std::vector<PlaneShape> make_shapes(const std::vector<PatternLevel>& pyramid,
                                    const CoarseConfig& config) {
  std::vector<PlaneShape> shapes;
  for (double scale : config.scales) {
    for (double angle : config.angles_deg) {
      for (int phase = 0; phase < phases_of(config); ++phase) {
        PlaneShape shape;
        shape.pose = {angle, scale, phase * 0.5, phase * 0.5};
        shape.made = make_template(pyramid, config, shape.pose);
        shape.roi = roi_bounds(config, shape.pose);
        shape.least_visible = std::max(
            4, static_cast<std::int32_t>(std::ceil(config.least_visible * shape.made.pixels)));
        shapes.push_back(std::move(shape));
      }
    }
  }
  return shapes;
}

}  // namespace

CoarseSearch::CoarseSearch(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config)
    : config_(config) {
  const std::vector<PlaneShape> shapes = make_shapes(pyramid, config);
  int low_x = config.width;
  int low_y = config.height;
  int high_x = 0;
  int high_y = 0;
  // Along each axis a position sees least_visible of the pattern at most this far out.
  for (const PlaneShape& shape : shapes) {
    const TurnedPattern& turned = shape.made.shape;
    const int hidden_x = static_cast<int>(turned.width * (1 - config.least_visible)) + 1;
    const int hidden_y = static_cast<int>(turned.height * (1 - config.least_visible)) + 1;
    low_x = std::min(low_x, -turned.left - hidden_x);
    low_y = std::min(low_y, -turned.top - hidden_y);
    high_x = std::max(high_x, config.width - (turned.left + turned.width) + hidden_x + 1);
    high_y = std::max(high_y, config.height - (turned.top + turned.height) + hidden_y + 1);
  }
  first_x_ = low_x;
  first_y_ = low_y;
  blocks_ = std::max(0, high_x - low_x + kBlock - 1) / kBlock;
  bands_ = std::max(0, high_y - low_y + kBand - 1) / kBand;

  const Visibility visibility(config_);
  for (const PlaneShape& shape : shapes) {
    const Template& t = shape.made;
    Plane plane;
    plane.angle_deg = shape.pose.angle_deg;
    plane.scale = shape.pose.scale;
    plane.phase_x = shape.pose.phase_x;
    plane.phase_y = shape.pose.phase_y;
    plane.pixels = t.pixels;
    const double energy = static_cast<double>(t.energy);
    plane.inverse_norm = energy > 0 ? 1 / std::sqrt(energy * t.pixels) : 0;
    plane.inverse_length = energy > 0 ? static_cast<float>(1 / std::sqrt(energy)) : 0;
    std::fill_n(plane.terms.pixels, kBlock, static_cast<float>(t.pixels));
    std::fill_n(plane.terms.sum, kBlock, 0.0F);
    std::fill_n(plane.terms.inverse_norm, kBlock, static_cast<float>(plane.inverse_norm));
    plane.runs = runs_of(t.shape, t.shape.counts);
    plane.band = band_weights(t);
    plane.left = -t.shape.left;
    plane.right = t.shape.left + t.shape.width;
    plane.top = -t.shape.top;
    plane.bottom = t.shape.top + t.shape.height;
    plane.block_class.assign(
        static_cast<std::size_t>(blocks_) * static_cast<std::size_t>(bands_) * kBand, kSkip);
    plane.band_begin.assign(static_cast<std::size_t>(bands_), blocks_);
    plane.band_end.assign(static_cast<std::size_t>(bands_), 0);
    for (int row = 0; row < bands_ * kBand; ++row) {
      for (int block = 0; block < blocks_; ++block) {
        BorderBlock border{};
        int complete = 0;
        int searched = 0;
        for (int i = 0; i < kBlock; ++i) {
          const int x = first_x_ + block * kBlock + i;
          const int y = first_y_ + row;
          if (!shape.roi.contains(x, y)) continue;
          const Visible seen = visibility.of(t, x, y);
          const double variance =
              static_cast<double>(seen.pixels) * static_cast<double>(seen.square) -
              static_cast<double>(seen.sum) * static_cast<double>(seen.sum);
          if (seen.pixels < shape.least_visible || !(variance > 0)) continue;
          ++searched;
          if (seen.pixels == t.pixels) ++complete;
          border.sum[i] = seen.sum;
          border.inverse_norm[i] = 1 / std::sqrt(variance);
          border.terms.pixels[i] = static_cast<float>(seen.pixels);
          border.terms.sum[i] = static_cast<float>(seen.sum);
          border.terms.inverse_norm[i] = static_cast<float>(border.inverse_norm[i]);
        }
        if (searched == 0) continue;
        auto& kind = plane.block_class[static_cast<std::size_t>(row * blocks_ + block)];
        kind = kAllVisible;
        if (complete != kBlock) {
          kind = static_cast<std::int32_t>(plane.border.size());
          plane.border.push_back(border);
        }
        const auto band = static_cast<std::size_t>(row / kBand);
        plane.band_begin[band] = std::min(plane.band_begin[band], block);
        plane.band_end[band] = std::max(plane.band_end[band], block + 1);
      }
    }
    neighbours_.push_back({plane.phase_x, plane.phase_y, {}});
    lists_.emplace_back(config.peaks_per_plane);
    planes_.push_back(std::move(plane));
  }

  const std::size_t per_scale =
      config.angles_deg.size() * static_cast<std::size_t>(phases_of(config));
  for (std::size_t p = 0; p < planes_.size(); ++p) neighbours_[p].planes = planes_beside(p);

  for (std::size_t scale = 0; scale < config.scales.size(); ++scale) {
    for (std::size_t first = 0; first < per_scale; first += kPlanesPerGroup) {
      Group group;
      group.first = scale * per_scale + first;
      group.count = std::min(kPlanesPerGroup, per_scale - first);
      TurnedPattern common = shapes[group.first].made.shape;
      for (int y = 0; y < common.height; ++y) {
        for (int x = 0; x < common.width; ++x) {
          auto& counts = common.counts[common.index(x, y)];
          for (std::size_t i = 1; i < group.count; ++i) {
            const TurnedPattern& other = shapes[group.first + i].made.shape;
            const int ox = common.left + x - other.left;
            const int oy = common.top + y - other.top;
            if (ox < 0 || oy < 0 || ox >= other.width || oy >= other.height ||
                other.counts[other.index(ox, oy)] == 0)
              counts = 0;
          }
        }
      }
      group.common = runs_of(common, common.counts);
      group.common_pixels = std::max(1, common.pixels());
      groups_.push_back(std::move(group));
    }
  }
}

// The planes one angle step, one scale step or half a pixel away.
std::vector<std::size_t> CoarseSearch::planes_beside(std::size_t plane) const {
  const int phases = phases_of(config_);
  const int angles = static_cast<int>(config_.angles_deg.size());
  const int scales = static_cast<int>(config_.scales.size());
  const int scale = static_cast<int>(plane) / (angles * phases);
  const int angle = static_cast<int>(plane) / phases % angles;
  std::vector<std::size_t> out;
  for (int s = std::max(0, scale - 1); s <= std::min(scales - 1, scale + 1); ++s) {
    for (int step = -1; step <= 1; ++step) {
      int a = angle + step;
      if (config_.circular) a = (a + angles) % angles;
      if (a < 0 || a >= angles) continue;
      for (int phase = 0; phase < phases; ++phase) {
        const auto other = static_cast<std::size_t>((s * angles + a) * phases + phase);
        if (other != plane && std::find(out.begin(), out.end(), other) == out.end())
          out.push_back(other);
      }
    }
  }
  return out;
}

std::size_t CoarseSearch::planes() const { return planes_.size(); }

std::size_t CoarseSearch::groups() const { return groups_.size(); }

int CoarseSearch::margin() const {
  int reach = 0;
  for (const Plane& plane : planes_)
    reach = std::max({reach, plane.left, plane.right, plane.top, plane.bottom});
  // Blocks and bands round the searched positions up; a pair reads one pixel more.
  const int past_x = std::max(-first_x_, first_x_ + blocks_ * kBlock - config_.width);
  const int past_y = std::max(-first_y_, first_y_ + bands_ * kBand - config_.height);
  return reach + std::max({past_x, past_y, 0}) + kBlock + kBand + 2;
}

int CoarseSearch::largest_plane() const {
  int most = 0;
  for (const Plane& plane : planes_) most = std::max(most, plane.pixels);
  return most;
}

double CoarseSearch::operations() const {
  double sum = 0;
  for (const Plane& plane : planes_)
    sum += static_cast<double>(plane.pixels) * config_.width * config_.height;
  return sum;
}

std::size_t CoarseSearch::memory_bytes() const {
  std::size_t sum = 0;
  for (const Plane& plane : planes_) {
    sum += plane.block_class.size() * sizeof(std::int32_t) +
           plane.border.size() * sizeof(BorderBlock) +
           plane.band.weights.size() * sizeof(std::int32_t) + sizeof(Plane) +
           config_.peaks_per_plane * sizeof(Peak);
  }
  return sum;
}

void CoarseSearch::score_block(const Plane& plane, const CoarseRows& image, int x, int y,
                               int border, const std::int32_t* numerators,
                               RowMaxima& maxima) const {
  BlockSums sums;
  window_sums(plane.runs, image, x, y, sums);
  const BorderBlock* partial =
      border == kAllVisible ? nullptr : &plane.border[static_cast<std::size_t>(border)];
  const BlockTerms& terms = partial == nullptr ? plane.terms : partial->terms;
  float estimates[kBlock];
  estimate_scores(numerators, sums, terms, estimates);
  const float promising = static_cast<float>(config_.threshold) * kEstimateSafety;
  for (int i = 0; i < kBlock; ++i) {
    const float estimate = config_.any_polarity ? std::abs(estimates[i]) : estimates[i];
    if (estimate <= promising) continue;
    const auto n = static_cast<std::int64_t>(terms.pixels[i]);
    const std::int64_t pattern_sum = partial == nullptr ? 0 : partial->sum[i];
    const double inverse_norm = partial == nullptr ? plane.inverse_norm : partial->inverse_norm[i];
    const auto sum = static_cast<std::int64_t>(static_cast<std::int32_t>(sums.sum[i]));
    const auto square = static_cast<std::int64_t>(sums.square[i]);
    const std::int64_t energy = n * square - sum * sum;
    if (energy <= 0) continue;
    const std::int64_t numerator = n * numerators[i] - pattern_sum * sum;
    const double score =
        static_cast<double>(numerator) * inverse_norm / std::sqrt(static_cast<double>(energy));
    const double size = std::abs(score);
    if (size <= config_.threshold) continue;
    maxima.add({static_cast<float>(std::min(size, 1.0)), x + i, y, score < 0});
  }
}

void CoarseSearch::score_row(Plane& plane, const CoarseRows& image, int y,
                             const std::int32_t* numerators, Scratch& scratch, const float* bounds,
                             RowMaxima& maxima) const {
  const int row = y - first_y_;
  const auto band = static_cast<std::size_t>(row / kBand);
  const int begin = plane.band_begin[band];
  const int end = plane.band_end[band];
  if (begin < end) {
    find_passing(numerators, bounds + begin * kBlock, plane.inverse_length, config_.any_polarity,
                 end - begin, scratch.passes_.data());
  }
  for (int block = begin; block < end; ++block) {
    const int kind = plane.block_class[static_cast<std::size_t>(row * blocks_ + block)];
    if (kind == kSkip) continue;
    if (kind == kAllVisible && scratch.passes_[static_cast<std::size_t>(block - begin)] == 0)
      continue;
    score_block(plane, image, first_x_ + block * kBlock, y, kind,
                numerators + (block - begin) * kBlock, maxima);
  }
  maxima.finish_row();
}

void CoarseSearch::search_group(std::size_t group, const CoarseRows& image, Scratch& scratch) {
  const Group& own = groups_[group];
  const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(blocks_) * kBlock;
  for (std::size_t i = 0; i < own.count; ++i) {
    lists_[own.first + i].clear();
    scratch.maxima_[i].start(&lists_[own.first + i]);
  }
  const float factor = static_cast<float>(config_.threshold) * kBoundSafety;
  for (int band = 0; band < bands_; ++band) {
    const int y = first_y_ + band * kBand;
    int begin = blocks_;
    int end = 0;
    for (std::size_t i = 0; i < own.count; ++i) {
      begin = std::min(begin, planes_[own.first + i].band_begin[static_cast<std::size_t>(band)]);
      end = std::max(end, planes_[own.first + i].band_end[static_cast<std::size_t>(band)]);
    }
    for (int k = 0; k < kBand && begin < end; ++k) {
      energy_row(own.common, own.common_pixels, image, y + k, first_x_ + begin * kBlock,
                 first_x_ + end * kBlock, factor,
                 scratch.bounds_.data() + k * width + begin * kBlock);
    }
    for (std::size_t i = 0; i < own.count; ++i) {
      Plane& plane = planes_[own.first + i];
      const int from = plane.band_begin[static_cast<std::size_t>(band)];
      const int to = plane.band_end[static_cast<std::size_t>(band)];
      if (from < to) {
        correlate_band(plane.band, image, y, first_x_ + from * kBlock, first_x_ + to * kBlock,
                       scratch.numerators_.data(), width);
      }
      for (int k = 0; k < kBand; ++k)
        score_row(plane, image, y + k, scratch.numerators_.data() + k * width, scratch,
                  scratch.bounds_.data() + k * width, scratch.maxima_[i]);
    }
  }
  for (std::size_t i = 0; i < own.count; ++i) {
    scratch.maxima_[i].finish();
    lists_[own.first + i].sort_by_place();
  }
}

void CoarseSearch::suppress(std::vector<PlanePeak>& peaks) {
  peaks.clear();
  suppress_across_planes(lists_, neighbours_, peaks);
}

CoarseFind CoarseSearch::find(const PlanePeak& peak) const {
  const Plane& plane = planes_[static_cast<std::size_t>(peak.plane)];
  const double spacing = static_cast<double>(1 << config_.level);
  CoarseFind out;
  out.x = (peak.peak.x + plane.phase_x + 0.5) * spacing - 0.5;
  out.y = (peak.peak.y + plane.phase_y + 0.5) * spacing - 0.5;
  out.angle_deg = plane.angle_deg;
  out.scale = plane.scale;
  out.score = static_cast<double>(peak.peak.score);
  out.inverted = peak.peak.inverted;
  return out;
}

namespace {

// The template's integers, out of the bands that interleave its rows: the first weight of a span's
// pair belongs to the template row of the span itself.
void take_taps(const BandWeights& band, CoarseTables::Plane& out) {
  out.taps.assign(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height), 0);
  const auto put = [&](int row, int column, std::int16_t value) {
    if (row < 0 || row >= out.height || column < 0 || column >= out.width) return;
    out.taps[static_cast<std::size_t>(row) * static_cast<std::size_t>(out.width) +
             static_cast<std::size_t>(column)] = value;
  };
  const std::int32_t* weights = band.weights.data();
  for (const WeightSpan& span : band.spans) {
    for (int i = 0; i < span.pairs; ++i, weights += kBand) {
      const int column = span.column - out.left + 2 * i;
      put(span.row - out.top, column, static_cast<std::int16_t>(*weights & 0xFFFF));
      put(span.row - out.top, column + 1, static_cast<std::int16_t>(*weights >> 16));
    }
  }
}

}  // namespace

CoarseTables CoarseSearch::tables() const {
  CoarseTables out;
  out.first_x = first_x_;
  out.first_y = first_y_;
  out.blocks = blocks_;
  out.rows = bands_ * kBand;
  for (std::size_t p = 0; p < planes_.size(); ++p) {
    const Plane& plane = planes_[p];
    CoarseTables::Plane to;
    to.angle_deg = plane.angle_deg;
    to.scale = plane.scale;
    to.phase_x = plane.phase_x;
    to.phase_y = plane.phase_y;
    to.pixels = plane.pixels;
    to.inverse_norm = plane.inverse_norm;
    to.inverse_length = plane.inverse_length;
    to.left = -plane.left;
    to.top = -plane.top;
    to.width = plane.right + plane.left;
    to.height = plane.bottom + plane.top;
    take_taps(plane.band, to);
    to.runs = plane.runs;
    to.block_class = plane.block_class;
    for (const BorderBlock& block : plane.border) {
      CoarseTables::Border border{};
      for (int i = 0; i < kBlock; ++i) {
        border.pixels[i] = static_cast<std::int32_t>(block.terms.pixels[i]);
        border.sum[i] = block.sum[i];
        border.inverse_norm[i] = block.inverse_norm[i];
      }
      to.border.push_back(border);
    }
    to.neighbours = neighbours_[p].planes;
    out.planes.push_back(std::move(to));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    out.groups.push_back({groups_[g].common, groups_[g].common_pixels});
    for (std::size_t i = 0; i < groups_[g].count; ++i) out.planes[groups_[g].first + i].group = g;
  }
  return out;
}

}  // namespace patternd
