#include "pipeline/coarse_search.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

// So much lower an estimated score may be of a position that is scored exactly.
constexpr float kEstimateSafety = 0.98F;

std::size_t memory_of(const BandWeights& band) {
  std::size_t sum = 0;
  for (const BandPart& part : band.parts)
    sum += part.places.size() * sizeof(BandPlace) + part.weights.size() * sizeof(std::int32_t);
  return sum;
}

}  // namespace

CoarseSearch::Scratch::Scratch(const CoarseSearch& search) {
  const auto blocks = static_cast<std::size_t>(search.layout_.grid.blocks);
  const std::size_t width = blocks * kBlock;
  numerators_.resize(width * kBand);
  means_.resize(width * kBand);
  roots_.resize(width * kBand);
  passes_.resize(blocks);
  for (std::size_t i = 0; i < kPlanesPerGroup; ++i) maxima_.emplace_back(width);
}

CoarseSearch::CoarseSearch(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config)
    : config_(config), layout_(lay_out(pyramid, config)) {
  config_.valid = {};  // the layout has taken from it what it needs
  for (std::size_t p = 0; p < layout_.planes.size(); ++p)
    lists_.emplace_back(config.peaks_per_plane);
}

std::size_t CoarseSearch::planes() const { return layout_.planes.size(); }

std::size_t CoarseSearch::groups() const { return layout_.groups.size(); }

int CoarseSearch::margin() const {
  int reach = 0;
  for (const CoarsePlane& plane : layout_.planes)
    reach = std::max({reach, plane.left, plane.right, plane.top, plane.bottom});
  // Blocks and bands round the searched positions up; a pair reads one pixel more.
  const CoarseGrid& grid = layout_.grid;
  const int past_x = std::max(-grid.first_x, grid.first_x + grid.blocks * kBlock - config_.width);
  const int past_y = std::max(-grid.first_y, grid.first_y + grid.rows() - config_.height);
  return reach + std::max({past_x, past_y, 0}) + kBlock + kBand + 2;
}

int CoarseSearch::largest_plane() const {
  int most = 0;
  for (const CoarsePlane& plane : layout_.planes) most = std::max(most, plane.pixels);
  return most;
}

double CoarseSearch::operations() const {
  double sum = 0;
  for (const CoarsePlane& plane : layout_.planes)
    sum += static_cast<double>(plane.pixels) * config_.width * config_.height;
  return sum;
}

std::size_t CoarseSearch::memory_bytes() const {
  std::size_t sum = 0;
  for (const CoarsePlane& plane : layout_.planes) {
    sum += plane.block_class.size() * sizeof(std::int32_t) +
           plane.border.size() * sizeof(BorderBlock) + memory_of(plane.band) + sizeof(CoarsePlane) +
           config_.peaks_per_plane * sizeof(Peak);
  }
  for (const CoarseGroup& group : layout_.groups) {
    sum +=
        group.block_class.size() * sizeof(std::int32_t) + group.border.size() * sizeof(BlockCounts);
  }
  return sum;
}

void CoarseSearch::score_block(const CoarsePlane& plane, const CoarseRows& image, int x, int y,
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

void CoarseSearch::score_row(const CoarsePlane& plane, const CoarseRows& image, int row,
                             const std::int32_t* numerators, Scratch& scratch,
                             RowMaxima& maxima) const {
  const CoarseGrid& grid = layout_.grid;
  const auto band = static_cast<std::size_t>(row / kBand);
  const int begin = plane.band_begin[band];
  const int blocks = std::max(0, plane.band_end[band] - begin);
  const BlockRow where{grid.first_x + begin * kBlock, grid.first_y + row, blocks,
                       plane.block_class.data() + row * grid.blocks + begin};
  const std::ptrdiff_t measured = (row % kBand * grid.blocks + begin) * kBlock;
  find_passing(numerators, scratch.means_.data() + measured, scratch.roots_.data() + measured,
               plane.least, plane.border.data(), config_.any_polarity, where,
               scratch.passes_.data());
  for (int block = 0; block < blocks; ++block) {
    if (scratch.passes_[static_cast<std::size_t>(block)] == 0) continue;
    score_block(plane, image, where.x + block * kBlock, where.y, where.kinds[block],
                numerators + block * kBlock, maxima);
  }
  maxima.finish_row();
}

// Means and energies of the group's common pixels at the positions that any of its planes searches.
void CoarseSearch::measure_band(const CoarseGroup& group, const CoarseRows& image, int band,
                                Scratch& scratch) const {
  const CoarseGrid& grid = layout_.grid;
  int begin = grid.blocks;
  int end = 0;
  for (std::size_t i = group.first; i < group.first + group.count; ++i) {
    begin = std::min(begin, layout_.planes[i].band_begin[static_cast<std::size_t>(band)]);
    end = std::max(end, layout_.planes[i].band_end[static_cast<std::size_t>(band)]);
  }
  BlockCounts complete;
  std::fill_n(complete.per_pixel, kBlock, 1.0F / static_cast<float>(group.common_pixels));
  for (int k = 0; k < kBand && begin < end; ++k) {
    const int row = band * kBand + k;
    const std::ptrdiff_t at = (k * grid.blocks + begin) * kBlock;
    energy_row(group.common, complete, group.border.data(), image,
               {grid.first_x + begin * kBlock, grid.first_y + row, end - begin,
                group.block_class.data() + row * grid.blocks + begin},
               scratch.means_.data() + at, scratch.roots_.data() + at);
  }
}

void CoarseSearch::search_band(const CoarsePlane& plane, const CoarseRows& image, int band,
                               Scratch& scratch, RowMaxima& maxima) const {
  const CoarseGrid& grid = layout_.grid;
  const int from = plane.band_begin[static_cast<std::size_t>(band)];
  const int to = plane.band_end[static_cast<std::size_t>(band)];
  const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(grid.blocks) * kBlock;
  if (from < to) {
    correlate_band(plane.band, image, grid.first_y + band * kBand, grid.first_x + from * kBlock,
                   grid.first_x + to * kBlock, scratch.numerators_.data(), width);
  }
  for (int k = 0; k < kBand; ++k) {
    score_row(plane, image, band * kBand + k, scratch.numerators_.data() + k * width, scratch,
              maxima);
  }
}

void CoarseSearch::search_group(std::size_t group, const CoarseRows& image, Scratch& scratch) {
  const CoarseGroup& own = layout_.groups[group];
  for (std::size_t i = 0; i < own.count; ++i) {
    lists_[own.first + i].clear();
    scratch.maxima_[i].start(&lists_[own.first + i]);
  }
  for (int band = 0; band < layout_.grid.bands; ++band) {
    measure_band(own, image, band, scratch);
    for (std::size_t i = 0; i < own.count; ++i)
      search_band(layout_.planes[own.first + i], image, band, scratch, scratch.maxima_[i]);
  }
  for (std::size_t i = 0; i < own.count; ++i) {
    scratch.maxima_[i].finish();
    lists_[own.first + i].sort_by_place();
  }
}

void CoarseSearch::suppress(std::vector<PlanePeak>& peaks) {
  peaks.clear();
  suppress_across_planes(lists_, layout_.neighbours, peaks);
}

CoarseFind CoarseSearch::find(const PlanePeak& peak) const {
  const CoarsePlane& plane = layout_.planes[static_cast<std::size_t>(peak.plane)];
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

}  // namespace patternd
