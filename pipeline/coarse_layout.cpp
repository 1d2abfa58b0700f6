#include "pipeline/coarse_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "pipeline/coarse_view.h"
#include "pipeline/match_angles.h"
#include "pipeline/row_major.h"

namespace patternd {
namespace {

// Bounds come from floats; this much lower they are safe.
constexpr double kBoundSafety = 0.99;

// Positions of a plane at which the reference point may lie in the roi, with a pixel to spare.
struct Bounds {
  double low_x = -1e9;
  double high_x = 1e9;
  double low_y = -1e9;
  double high_y = 1e9;
  [[nodiscard]] bool has_column(int x) const { return x >= low_x && x <= high_x; }
  [[nodiscard]] bool has_row(int y) const { return y >= low_y && y <= high_y; }
  [[nodiscard]] bool contains(int x, int y) const { return has_column(x) && has_row(y); }
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
float least_of(const TemplateSums& seen, std::int32_t common, double threshold) {
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

void put_position(BorderBlock& block, int i, const TemplateSums& seen, double variance,
                  float least) {
  block.sum[i] = seen.sum;
  block.inverse_norm[i] = 1 / std::sqrt(variance);
  block.least[i] = least;
  block.terms.pixels[i] = static_cast<float>(seen.pixels);
  block.terms.sum[i] = static_cast<float>(seen.sum);
  block.terms.inverse_norm[i] = static_cast<float>(block.inverse_norm[i]);
}

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

// Puts a block on the list, unless the one above or the one to the left is the same: along the
// picture's edges it is, and what the search reads again and again stays in the first cache.
template <class Block>
void put_block(const Block& block, const CoarseGrid& grid, std::size_t at,
               std::vector<std::int32_t>& kinds, std::vector<Block>& list) {
  for (const std::size_t back : {static_cast<std::size_t>(grid.blocks), std::size_t{1}}) {
    const std::int32_t other = at < back ? kSkip : kinds[at - back];
    if (other < 0 || !same(list[static_cast<std::size_t>(other)], block)) continue;
    kinds[at] = other;
    return;
  }
  kinds[at] = static_cast<std::int32_t>(list.size());
  list.push_back(block);
}

// Sorts a plane's blocks into complete ones, those at a border, and those not searched.
class PlaneClasses {
 public:
  PlaneClasses(const PlaneShape& shape, const CoarseTemplate& common, const CoarseView& view,
               double threshold)
      : shape_(shape), common_(common), view_(view), threshold_(threshold) {}

  void put(const CoarseGrid& grid, CoarsePlane& plane) const {
    plane.block_class.assign(grid.block_count(), kSkip);
    plane.band_begin.assign(static_cast<std::size_t>(grid.bands), grid.blocks);
    plane.band_end.assign(static_cast<std::size_t>(grid.bands), 0);
    for (int row = 0; row < grid.rows(); ++row) {
      for (int block = 0; block < grid.blocks; ++block) {
        const std::size_t at = grid.block_at(row, block);
        put_block_at(grid.first_x + block * kBlock, grid.first_y + row, grid, at, plane);
        if (plane.block_class[at] == kSkip) continue;
        const auto band = static_cast<std::size_t>(row / kBand);
        plane.band_begin[band] = std::min(plane.band_begin[band], block);
        plane.band_end[band] = std::max(plane.band_end[band], block + 1);
      }
    }
  }

 private:
  // How much a position that is to be searched sees; nothing where it is not.
  [[nodiscard]] std::optional<TemplateSums> seen_at(int x, int y) const {
    if (!shape_.roi.contains(x, y)) return std::nullopt;
    const TemplateSums seen = view_.seen(shape_.made, x, y);
    if (seen.pixels < shape_.least_visible || !(variance_of(seen) > 0)) return std::nullopt;
    return seen;
  }
  // Times n².
  [[nodiscard]] static double variance_of(const TemplateSums& seen) {
    const double sum = static_cast<double>(seen.sum);
    return seen.pixels * static_cast<double>(seen.square) - sum * sum;
  }

  // How many blocks before that of the positions from (x, y) on one is that is surely the same:
  // above or to the left.
  [[nodiscard]] std::optional<std::size_t> same_as(int x, int y, const CoarseGrid& grid) const {
    const auto both = [&](auto see_as) {
      return (view_.*see_as)(shape_.made, x, y, kBlock) && (view_.*see_as)(common_, x, y, kBlock);
    };
    const Bounds& roi = shape_.roi;
    if (y > grid.first_y && roi.has_row(y - 1) == roi.has_row(y) && both(&CoarseView::see_as_above))
      return static_cast<std::size_t>(grid.blocks);
    if (x > grid.first_x && roi.has_column(x - kBlock) && roi.has_column(x + kBlock - 1) &&
        both(&CoarseView::see_as_left))
      return 1;
    return std::nullopt;
  }

  void put_block_at(int x, int y, const CoarseGrid& grid, std::size_t at,
                    CoarsePlane& plane) const {
    const CoarseTemplate& t = shape_.made;
    // All positions alike: both ends stand for them.
    if (view_.see_all(t, x, y, kBlock) && seen_at(x, y) && seen_at(x + kBlock - 1, y)) {
      plane.block_class[at] = kAllVisible;
      return;
    }
    if (const auto other = same_as(x, y, grid)) {
      plane.block_class[at] = plane.block_class[at - *other];
      return;
    }
    BorderBlock border{};
    std::fill_n(border.least, kBlock, std::numeric_limits<float>::max());
    int complete = 0;
    int searched = 0;
    for (int i = 0; i < kBlock; ++i) {
      const auto seen = seen_at(x + i, y);
      if (!seen) continue;
      ++searched;
      const bool all = seen->pixels == t.pixels;
      if (all) ++complete;
      const float least =
          all ? plane.least : least_of(*seen, view_.seen(common_, x + i, y).pixels, threshold_);
      put_position(border, i, *seen, variance_of(*seen), least);
    }
    if (complete == kBlock)
      plane.block_class[at] = kAllVisible;
    else if (searched > 0)
      put_block(border, grid, at, plane.block_class, plane.border);
  }

  const PlaneShape& shape_;
  const CoarseTemplate& common_;
  const CoarseView& view_;
  double threshold_;
};

// The kind of a group's block of positions from (x, y) on.
void classify(const CoarseTemplate& common, const CoarseView& view, const CoarseGrid& grid, int x,
              int y, std::size_t at, CoarseGroup& group) {
  if (common.pixels == group.common_pixels && view.see_all(common, x, y, kBlock)) return;
  if (y > grid.first_y && view.see_as_above(common, x, y, kBlock)) {
    group.block_class[at] = group.block_class[at - static_cast<std::size_t>(grid.blocks)];
    return;
  }
  if (x > grid.first_x && view.see_as_left(common, x, y, kBlock)) {
    group.block_class[at] = group.block_class[at - 1];
    return;
  }
  BlockCounts counts;
  bool complete = true;
  for (int i = 0; i < kBlock; ++i) {
    const std::int32_t seen = view.seen(common, x + i, y).pixels;
    complete = complete && seen == group.common_pixels;
    counts.per_pixel[i] = seen > 0 ? 1.0F / static_cast<float>(seen) : 0.0F;
  }
  if (!complete) put_block(counts, grid, at, group.block_class, group.border);
}

void classify(const CoarseTemplate& common, const CoarseView& view, const CoarseGrid& grid,
              CoarseGroup& group) {
  group.block_class.assign(grid.block_count(), kAllVisible);
  for (int row = 0; row < grid.rows(); ++row)
    for (int block = 0; block < grid.blocks; ++block)
      classify(common, view, grid, grid.first_x + block * kBlock, grid.first_y + row,
               grid.block_at(row, block), group);
}

void add_group(const std::vector<PlaneShape>& shapes, std::size_t first, std::size_t count,
               const CoarseConfig& config, const CoarseView& view, CoarseLayout& out) {
  std::vector<const TurnedPattern*> turned;
  for (std::size_t i = first; i < first + count; ++i) turned.push_back(&shapes[i].made.shape);
  const CoarseTemplate common = make_coarse_template(common_pixels(turned), config.max_sample);
  CoarseGroup group;
  group.first = first;
  group.count = count;
  group.common = runs_of(common.shape);
  group.common_pixels = std::max(1, common.pixels);
  classify(common, view, out.grid, group);
  for (std::size_t i = first; i < first + count; ++i) {
    CoarsePlane plane = plane_of(shapes[i], config);
    PlaneClasses(shapes[i], common, view, config.threshold).put(out.grid, plane);
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
  const CoarseView view(config.width, config.height, config.valid);
  const std::size_t per_scale =
      config.angles_deg.size() * static_cast<std::size_t>(phases_of(config));
  for (std::size_t scale = 0; scale < config.scales.size(); ++scale) {
    for (std::size_t first = 0; first < per_scale; first += kPlanesPerGroup)
      add_group(shapes, scale * per_scale + first, std::min(kPlanesPerGroup, per_scale - first),
                config, view, out);
  }
  for (std::size_t p = 0; p < out.planes.size(); ++p) {
    out.neighbours.push_back(
        {out.planes[p].phase_x, out.planes[p].phase_y, planes_beside(config, p)});
  }
  return out;
}

}  // namespace patternd
