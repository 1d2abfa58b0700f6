#include "pipeline/components_selection.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

namespace patternd::components {
namespace {

// The pixels whose centres lie in [begin, begin + length), cut to [0, side).
std::pair<int, int> pixels_in(double begin, double length, int side) {
  const double first = std::clamp(std::ceil(begin), 0.0, static_cast<double>(side));
  const double end = std::clamp(std::ceil(begin + length), first, static_cast<double>(side));
  return {static_cast<int>(first), static_cast<int>(end - first)};
}

}  // namespace

Result<Region> region_of(const BlobParams& params, int width, int height) {
  if (!params.roi) return Region{0, 0, width, height};
  const Roi& roi = *params.roi;
  Region region;
  if (std::isfinite(roi.x + roi.y + roi.width + roi.height) && roi.width > 0 && roi.height > 0) {
    std::tie(region.x, region.width) = pixels_in(roi.x, roi.width, width);
    std::tie(region.y, region.height) = pixels_in(roi.y, roi.height, height);
  }
  if (region.width > 0 && region.height > 0) return region;
  return fail(ErrorCode::kInvalidArgument, "components: roi has no pixel of the picture of " +
                                               std::to_string(width) + "x" +
                                               std::to_string(height) + "; it must overlap it");
}

Blob blob_of(const Sums& sums, std::int64_t label) {
  const Geometry& g = sums.geometry[label];
  const Region& region = sums.region;
  const ComponentBox box = box_of(g, region);
  Blob b;
  b.id = label;
  b.area_px = box.area_px;
  b.x_px = box.x_px;
  b.y_px = box.y_px;
  b.left = box.left;
  b.top = box.top;
  b.width = box.width;
  b.height = box.height;
  b.touches_border =
      g.left() == 0 || g.top() == 0 || g.right == region.width - 1 || g.bottom == region.height - 1;
  if (sums.intensity != nullptr) {
    const Intensity& i = sums.intensity[label];
    b.mean = static_cast<double>(i.sum) / static_cast<double>(g.area);
    b.peak = i.peak;
    b.peak_x = region.x + i.peak_x;
    b.peak_y = region.y + i.peak_y;
  }
  if (sums.moments != nullptr) {
    const Axes axes = axes_of(g, sums.moments[label]);
    b.angle_deg = axes.angle_deg;
    b.major_px = axes.major_px;
    b.minor_px = axes.minor_px;
  }
  return b;
}

bool filters_by_axes(const BlobParams& p) {
  return p.min_elongation > 1 || std::isfinite(p.max_elongation);
}

bool filters_by_peak(const BlobParams& p) { return p.min_peak > 0; }

bool has_filters(const BlobParams& p) {
  return p.min_area > 1 || p.max_area != BlobParams{}.max_area || p.min_width > 1 ||
         p.max_width < kMaxImageSide || p.min_height > 1 || p.max_height < kMaxImageSide ||
         filters_by_axes(p) || filters_by_peak(p);
}

bool passes(const Blob& b, const BlobParams& p) {
  if (b.area_px < p.min_area || b.area_px > p.max_area) return false;
  if (b.width < p.min_width || b.width > p.max_width) return false;
  if (b.height < p.min_height || b.height > p.max_height) return false;
  if (filters_by_peak(p) && b.peak < p.min_peak) return false;
  if (!filters_by_axes(p)) return true;
  return b.major_px >= p.min_elongation * b.minor_px && b.major_px <= p.max_elongation * b.minor_px;
}

void select_largest(const Sums& sums, std::int64_t count, const BlobParams& params,
                    std::vector<std::int64_t>& order, std::vector<Blob>& blobs) {
  // A heap whose top is the least of those kept; most components lose against it at once.
  const auto before = [&sums](std::int64_t a, std::int64_t b) {
    const std::uint64_t area_a = sums.geometry[a].area;
    const std::uint64_t area_b = sums.geometry[b].area;
    return area_a > area_b || (area_a == area_b && a < b);
  };
  order.clear();
  const auto most = static_cast<std::size_t>(params.max_blobs);
  for (std::int64_t label = 1; label <= count && most > 0; ++label) {
    if (order.size() == most) {
      if (!before(label, order.front())) continue;
      std::pop_heap(order.begin(), order.end(), before);
      order.pop_back();
    }
    order.push_back(label);
    std::push_heap(order.begin(), order.end(), before);
  }
  std::sort_heap(order.begin(), order.end(), before);
  blobs.clear();
  for (const std::int64_t label : order) {
    blobs.push_back(blob_of(sums, label));
    blobs.back().id = static_cast<std::int64_t>(blobs.size());
  }
}

}  // namespace patternd::components
