#include "pipeline/coarse_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "pipeline/match_angles.h"
#include "pipeline/row_major.h"

namespace patternd {
namespace {

// Bounds come from floats; this much lower they are safe.
constexpr double kBoundSafety = 0.99;

// How many of a template's pixels are inside and valid at a position, and their ΣT, ΣT².
struct Visible {
  std::int32_t pixels = 0;
  std::int64_t sum = 0;
  std::int64_t square = 0;
};

Visible visible_at(const CoarseConfig& config, const CoarseTemplate& t, int x, int y) {
  const int left = x + t.shape.left;
  const int top = y + t.shape.top;
  const int begin = std::max(0, -left);
  const int end = std::min(t.shape.width, config.width - left);
  const bool masked = config.valid.data != nullptr;
  if (!masked && begin == 0 && end == t.shape.width && top >= 0 &&
      top + t.shape.height <= config.height)
    return {t.pixels, 0, t.energy};
  Visible out;
  const std::size_t per_row = static_cast<std::size_t>(t.shape.width) + 1;
  for (int row = 0; row < t.shape.height && begin < end; ++row) {
    if (top + row < 0 || top + row >= config.height) continue;
    const std::size_t at = static_cast<std::size_t>(row) * per_row;
    const auto add = [&](int from, int to) {
      const std::size_t a = at + static_cast<std::size_t>(from);
      const std::size_t b = at + static_cast<std::size_t>(to);
      out.pixels += t.count_before[b] - t.count_before[a];
      out.sum += t.sum_before[b] - t.sum_before[a];
      out.square += t.square_before[b] - t.square_before[a];
    };
    if (!masked) {
      add(begin, end);
      continue;
    }
    const auto* valid = config.valid.row<std::uint8_t>(top + row) + left;
    for (int i = begin; i < end; ++i)
      if (valid[i] != 0) add(i, i + 1);
  }
  return out;
}

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

struct PlaneShape {
  CoarseTemplate made;
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
        shape.made = make_coarse_template(
            config.quincunx ? render_turned(pyramid, config.level, shape.pose)
                            : render_best_phase(pyramid, config.level, shape.pose),
            config.max_sample);
        shape.roi = roi_bounds(config, shape.pose);
        shape.least_visible = std::max(
            4, static_cast<std::int32_t>(std::ceil(config.least_visible * shape.made.pixels)));
        shapes.push_back(std::move(shape));
      }
    }
  }
  return shapes;
}

// All positions from which some plane sees enough of its pattern.
CoarseGrid grid_of(const std::vector<PlaneShape>& shapes, const CoarseConfig& config) {
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
  return {low_x, low_y, std::max(0, high_x - low_x + kBlock - 1) / kBlock,
          std::max(0, high_y - low_y + kBand - 1) / kBand};
}

CoarsePlane plane_of(const PlaneShape& shape, const CoarseConfig& config) {
  const CoarseTemplate& t = shape.made;
  CoarsePlane plane;
  plane.angle_deg = shape.pose.angle_deg;
  plane.scale = shape.pose.scale;
  plane.phase_x = shape.pose.phase_x;
  plane.phase_y = shape.pose.phase_y;
  plane.pixels = t.pixels;
  const double energy = static_cast<double>(t.energy);
  plane.inverse_norm = energy > 0 ? 1 / std::sqrt(energy * t.pixels) : 0;
  plane.least = static_cast<float>(kBoundSafety * config.threshold * std::sqrt(energy));
  std::fill_n(plane.terms.pixels, kBlock, static_cast<float>(t.pixels));
  std::fill_n(plane.terms.sum, kBlock, 0.0F);
  std::fill_n(plane.terms.inverse_norm, kBlock, static_cast<float>(plane.inverse_norm));
  plane.runs = runs_of(t.shape);
  plane.band = band_weights(t);
  plane.left = -t.shape.left;
  plane.right = t.shape.left + t.shape.width;
  plane.top = -t.shape.top;
  plane.bottom = t.shape.top + t.shape.height;
  return plane;
}

// The least |ΣTS − a·ΣT| / √E of a position that may score over the threshold, where a and E are
// the mean and the energy of the window over the visible pixels that the group has in common.
//
// With n visible pixels, r of them not common, T' = T less its mean T̄ there, and d = S̄ − a: the
// numerator is (ΣTS − a·ΣT) − n·T̄·d, and the window's energy at least E + n·d²·(n−r)/r, since the
// r pixels alone make up d. By Cauchy and Schwarz the squared score is at most
// ((ΣTS − a·ΣT)²/E + n·T̄²·r/(n−r)) / ΣT'².
float least_of(const Visible& seen, std::int32_t common, double threshold) {
  const double n = seen.pixels;
  const double sum = static_cast<double>(seen.sum);
  const double energy = static_cast<double>(seen.square) - sum * sum / n;
  const double uncommon = n - common;
  const double unknown = uncommon <= 0 ? 0
                         : common > 0  ? sum * sum / n * uncommon / common
                                       : std::numeric_limits<double>::max();
  const double least = threshold * threshold * energy - unknown;
  return least > 0 ? static_cast<float>(kBoundSafety * std::sqrt(least))
                   : std::numeric_limits<float>::lowest();
}

void put_position(BorderBlock& block, int i, const Visible& seen, double variance, float least) {
  block.sum[i] = seen.sum;
  block.inverse_norm[i] = 1 / std::sqrt(variance);
  block.least[i] = least;
  block.terms.pixels[i] = static_cast<float>(seen.pixels);
  block.terms.sum[i] = static_cast<float>(seen.sum);
  block.terms.inverse_norm[i] = static_cast<float>(block.inverse_norm[i]);
}

// How many of a group's common pixels each position sees.
class CommonCounts {
 public:
  CommonCounts(const CoarseConfig& config, const CoarseTemplate& common)
      : config_(config), common_(common) {}
  [[nodiscard]] std::int32_t at(int x, int y) const {
    return visible_at(config_, common_, x, y).pixels;
  }

 private:
  const CoarseConfig& config_;
  const CoarseTemplate& common_;
};

template <class T>
bool same(const T (&a)[kBlock], const T (&b)[kBlock]) {
  return std::equal(std::begin(a), std::end(a), std::begin(b));
}
bool same(const BlockCounts& a, const BlockCounts& b) { return same(a.per_pixel, b.per_pixel); }
bool same(const BorderBlock& a, const BorderBlock& b) {
  return same(a.terms.pixels, b.terms.pixels) && same(a.terms.sum, b.terms.sum) &&
         same(a.terms.inverse_norm, b.terms.inverse_norm) && same(a.least, b.least) &&
         same(a.sum, b.sum) && same(a.inverse_norm, b.inverse_norm);
}

// Puts a block on the list, unless the row above has the same at its place: along the picture's
// left and right edges it has, and what the search reads again and again stays in the first cache.
template <class Block>
void put_block(const Block& block, const CoarseGrid& grid, std::size_t at,
               std::vector<std::int32_t>& kinds, std::vector<Block>& list) {
  const auto across = static_cast<std::size_t>(grid.blocks);
  const std::int32_t above = at < across ? kSkip : kinds[at - across];
  if (above >= 0 && same(list[static_cast<std::size_t>(above)], block)) {
    kinds[at] = above;
    return;
  }
  kinds[at] = static_cast<std::int32_t>(list.size());
  list.push_back(block);
}

// Sorts a plane's blocks into complete ones, those at a border, and those not searched.
void classify(const PlaneShape& shape, const CoarseConfig& config, const CoarseGrid& grid,
              const CommonCounts& common, CoarsePlane& plane) {
  const CoarseTemplate& t = shape.made;
  plane.block_class.assign(grid.block_count(), kSkip);
  plane.band_begin.assign(static_cast<std::size_t>(grid.bands), grid.blocks);
  plane.band_end.assign(static_cast<std::size_t>(grid.bands), 0);
  for (int row = 0; row < grid.rows(); ++row) {
    for (int block = 0; block < grid.blocks; ++block) {
      BorderBlock border{};
      std::fill_n(border.least, kBlock, std::numeric_limits<float>::max());
      int complete = 0;
      int searched = 0;
      for (int i = 0; i < kBlock; ++i) {
        const int x = grid.first_x + block * kBlock + i;
        const int y = grid.first_y + row;
        if (!shape.roi.contains(x, y)) continue;
        const Visible seen = visible_at(config, t, x, y);
        const double sum = static_cast<double>(seen.sum);
        const double variance = seen.pixels * static_cast<double>(seen.square) - sum * sum;
        if (seen.pixels < shape.least_visible || !(variance > 0)) continue;
        ++searched;
        const bool all = seen.pixels == t.pixels;
        if (all) ++complete;
        put_position(border, i, seen, variance,
                     all ? plane.least : least_of(seen, common.at(x, y), config.threshold));
      }
      if (searched == 0) continue;
      const std::size_t at = grid.block_at(row, block);
      if (complete == kBlock)
        plane.block_class[at] = kAllVisible;
      else
        put_block(border, grid, at, plane.block_class, plane.border);
      const auto band = static_cast<std::size_t>(row / kBand);
      plane.band_begin[band] = std::min(plane.band_begin[band], block);
      plane.band_end[band] = std::max(plane.band_end[band], block + 1);
    }
  }
}

void classify(const CommonCounts& common, const CoarseGrid& grid, CoarseGroup& group) {
  group.block_class.assign(grid.block_count(), kAllVisible);
  for (int row = 0; row < grid.rows(); ++row) {
    for (int block = 0; block < grid.blocks; ++block) {
      BlockCounts counts;
      bool complete = true;
      for (int i = 0; i < kBlock; ++i) {
        const std::int32_t seen = common.at(grid.first_x + block * kBlock + i, grid.first_y + row);
        complete = complete && seen == group.common_pixels;
        counts.per_pixel[i] = seen > 0 ? 1.0F / static_cast<float>(seen) : 0.0F;
      }
      const std::size_t at = grid.block_at(row, block);
      if (!complete) put_block(counts, grid, at, group.block_class, group.border);
    }
  }
}

void add_group(const std::vector<PlaneShape>& shapes, std::size_t first, std::size_t count,
               const CoarseConfig& config, CoarseLayout& out) {
  std::vector<const TurnedPattern*> turned;
  for (std::size_t i = first; i < first + count; ++i) turned.push_back(&shapes[i].made.shape);
  const CoarseTemplate common = make_coarse_template(common_pixels(turned), config.max_sample);
  const CommonCounts counts(config, common);
  CoarseGroup group;
  group.first = first;
  group.count = count;
  group.common = runs_of(common.shape);
  group.common_pixels = std::max(1, common.pixels);
  classify(counts, out.grid, group);
  for (std::size_t i = first; i < first + count; ++i) {
    CoarsePlane plane = plane_of(shapes[i], config);
    classify(shapes[i], config, out.grid, counts, plane);
    out.planes.push_back(std::move(plane));
  }
  out.groups.push_back(std::move(group));
}

// The planes one angle step, one scale step or half a pixel away.
std::vector<std::size_t> planes_beside(const CoarseConfig& config, std::size_t plane) {
  const int phases = phases_of(config);
  const int angles = static_cast<int>(config.angles_deg.size());
  const int scales = static_cast<int>(config.scales.size());
  const int scale = static_cast<int>(plane) / (angles * phases);
  const int angle = static_cast<int>(plane) / phases % angles;
  std::vector<std::size_t> out;
  for (int s = std::max(0, scale - 1); s <= std::min(scales - 1, scale + 1); ++s) {
    for (int step = -1; step <= 1; ++step) {
      int a = angle + step;
      if (config.circular) a = (a + angles) % angles;
      if (a < 0 || a >= angles) continue;
      for (int phase = 0; phase < phases; ++phase) {
        const std::size_t other = row_major(s * angles + a, phase, phases);
        if (other != plane && std::find(out.begin(), out.end(), other) == out.end())
          out.push_back(other);
      }
    }
  }
  return out;
}

}  // namespace

CoarseLayout lay_out(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config) {
  const std::vector<PlaneShape> shapes = make_shapes(pyramid, config);
  CoarseLayout out;
  out.grid = grid_of(shapes, config);
  const std::size_t per_scale =
      config.angles_deg.size() * static_cast<std::size_t>(phases_of(config));
  for (std::size_t scale = 0; scale < config.scales.size(); ++scale) {
    for (std::size_t first = 0; first < per_scale; first += kPlanesPerGroup)
      add_group(shapes, scale * per_scale + first, std::min(kPlanesPerGroup, per_scale - first),
                config, out);
  }
  for (std::size_t p = 0; p < out.planes.size(); ++p) {
    out.neighbours.push_back(
        {out.planes[p].phase_x, out.planes[p].phase_y, planes_beside(config, p)});
  }
  return out;
}

}  // namespace patternd
