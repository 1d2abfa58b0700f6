// A search's tables as plain numbers, for the GPU.
#include "pipeline/coarse_search.h"

namespace patternd {
namespace {

// The template's integers, out of the bands that interleave its rows.
void take_taps(const BandWeights& band, CoarseTables::Plane& out) {
  out.taps.assign(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height), 0);
  const auto put = [&](int row, int column, std::int16_t value) {
    if (row < 0 || row >= out.height || column < 0 || column >= out.width) return;
    out.taps[static_cast<std::size_t>(row) * static_cast<std::size_t>(out.width) +
             static_cast<std::size_t>(column)] = value;
  };
  for (const BandPart& part : band.parts) {
    const std::int32_t* weights = part.weights.data();
    for (const BandPlace& place : part.places) {
      for (int k = part.first; k < part.first + part.rows; ++k, ++weights) {
        const int column = place.column - out.left;
        put(place.row - k - out.top, column, static_cast<std::int16_t>(*weights & 0xFFFF));
        put(place.row - k - out.top, column + 1, static_cast<std::int16_t>(*weights >> 16));
      }
    }
  }
}

}  // namespace

CoarseTables CoarseSearch::tables() const {
  CoarseTables out;
  out.first_x = layout_.grid.first_x;
  out.first_y = layout_.grid.first_y;
  out.blocks = layout_.grid.blocks;
  out.rows = layout_.grid.rows();
  for (std::size_t p = 0; p < layout_.planes.size(); ++p) {
    const CoarsePlane& plane = layout_.planes[p];
    CoarseTables::Plane to;
    to.angle_deg = plane.angle_deg;
    to.scale = plane.scale;
    to.phase_x = plane.phase_x;
    to.phase_y = plane.phase_y;
    to.pixels = plane.pixels;
    to.inverse_norm = plane.inverse_norm;
    to.least = plane.least;
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
        border.least[i] = block.least[i];
      }
      to.border.push_back(border);
    }
    to.neighbours = layout_.neighbours[p].planes;
    out.planes.push_back(std::move(to));
  }
  for (const CoarseGroup& group : layout_.groups) {
    for (std::size_t i = 0; i < group.count; ++i)
      out.planes[group.first + i].group = out.groups.size();
    out.groups.push_back({group.common, group.common_pixels, group.block_class, group.border});
  }
  return out;
}

}  // namespace patternd
