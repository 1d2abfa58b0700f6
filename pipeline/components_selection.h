// From sums to blobs: the filters, and the largest few.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/components.h"
#include "pipeline/components_statistics.h"

namespace patternd::components {

// The part of the picture that was labelled.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// That of a picture; kInvalidArgument where the roi has no pixel of it.
[[nodiscard]] Result<Region> region_of(const BlobParams& params, int width, int height);

// The sums of components 1 … count, indexed by label; null: not gathered.
struct Sums {
  const Geometry* geometry = nullptr;
  const Intensity* intensity = nullptr;
  const Moments* moments = nullptr;
  Region region;
};

[[nodiscard]] inline ComponentBox box_of(const Geometry& g, const Region& region) {
  const auto area = static_cast<double>(static_cast<std::int64_t>(g.area));
  return {static_cast<std::int64_t>(g.area),
          region.x + static_cast<double>(static_cast<std::int64_t>(g.sum_2x)) / (2 * area),
          region.y + static_cast<double>(static_cast<std::int64_t>(g.sum_y)) / area,
          region.x + g.left(),
          region.y + g.top(),
          g.right - g.left() + 1,
          g.bottom - g.top() + 1};
}
[[nodiscard]] Blob blob_of(const Sums& sums, std::int64_t label);

// Some filter can leave a component out.
[[nodiscard]] bool has_filters(const BlobParams& params);
// Filters that need moments (elongation) or intensity (peak).
[[nodiscard]] bool filters_by_axes(const BlobParams& params);
[[nodiscard]] bool filters_by_peak(const BlobParams& params);
[[nodiscard]] bool passes(const Blob& blob, const BlobParams& params);

// The `max_blobs` largest of labels 1 … count, as ComponentLabeller::largest. `order` is scratch;
// nothing is allocated where it and `blobs` have capacity for max_blobs.
void select_largest(const Sums& sums, std::int64_t count, const BlobParams& params,
                    std::vector<std::int64_t>& order, std::vector<Blob>& blobs);

}  // namespace patternd::components
