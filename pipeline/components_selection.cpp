#include "pipeline/components_selection.h"

#include <algorithm>
#include <cmath>

namespace patternd::components {

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
