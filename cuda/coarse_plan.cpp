#include "cuda/coarse_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "cuda/arena.h"
#include "cuda/coarse_score_plan.h"

namespace patternd::cuda {
namespace {

static_assert(kCoarseBlock == kBlock);
static_assert(kCoarseAllVisible == CoarseTables::kAllVisible);
static_assert(kCoarseSkip == CoarseTables::kSkip);
static_assert(sizeof(CoarseRun) == sizeof(MaskRun));
static_assert(sizeof(BlockCounts) == sizeof(float) * kBlock);

// Positions that may be worth a look, and that may promise to score over the threshold, a pattern.
// Beyond those that see only a part of the pattern, which always are; at least, and as a share of
// all positions.
constexpr std::size_t kLeastLooks = 131072;
constexpr std::size_t kPositionsPerLook = 4;
constexpr std::size_t kPositionsPerPattern = 131072;
// Positions are counted in 16 bits.
constexpr int kMostPositions = 32767;

std::size_t positions_of(const CoarseTables& tables) {
  return static_cast<std::size_t>(tables.blocks) * kBlock * static_cast<std::size_t>(tables.rows);
}

int blocks_of(int size, int of_a_block) { return (size + of_a_block - 1) / of_a_block; }

// What it takes of each position of a plane's border blocks to be worth a look. What is not
// searched never is.
std::vector<CoarseNeed> needs_of(const CoarseTables::Plane& plane) {
  std::vector<CoarseNeed> out;
  for (const CoarseTables::Border& block : plane.border) {
    for (int i = 0; i < kBlock; ++i) {
      if (block.pixels[i] == 0)
        out.push_back({0, std::numeric_limits<float>::max()});
      else
        out.push_back({static_cast<float>(block.sum[i]), block.least[i]});
    }
  }
  return out;
}

std::vector<CoarseBorder> border_of(const CoarseTables::Plane& plane) {
  std::vector<CoarseBorder> out;
  for (const CoarseTables::Border& from : plane.border) {
    CoarseBorder to{};
    for (int i = 0; i < kBlock; ++i) {
      to.pixels[i] = from.pixels[i];
      to.sum[i] = from.sum[i];
      to.inverse_norm[i] = from.inverse_norm[i];
    }
    out.push_back(to);
  }
  return out;
}

// Two planes' templates in one box, their weights side by side; see CoarsePair.
struct PairTables {
  CoarsePair pair{};
  std::vector<CoarseSpan> spans;
  std::vector<float> weights;
};

// T at a place of the box; 0 outside the template.
int tap_at(const CoarseTables::Plane& plane, int x, int y) {
  const int column = x - plane.left;
  const int row = y - plane.top;
  if (column < 0 || row < 0 || column >= plane.width || row >= plane.height) return 0;
  return plane.taps[static_cast<std::size_t>(row) * static_cast<std::size_t>(plane.width) +
                    static_cast<std::size_t>(column)];
}

PairTables pair_of(const CoarseTables::Plane& a, const CoarseTables::Plane* b) {
  PairTables out;
  CoarsePair& box = out.pair;
  const CoarseTables::Plane& other = b == nullptr ? a : *b;
  box.left = std::min(a.left, other.left);
  box.top = std::min(a.top, other.top);
  box.width = std::max(a.left + a.width, other.left + other.width) - box.left;
  box.rows = std::max(a.top + a.height, other.top + other.height) - box.top;
  const auto weight = [&](int plane, int x, int y) {
    if (plane == 1 && b == nullptr) return 0;
    return tap_at(plane == 0 ? a : other, box.left + x, box.top + y);
  };
  const auto counts = [&](int x, int y) { return weight(0, x, y) != 0 || weight(1, x, y) != 0; };
  int taps = 0;
  for (int y = 0; y < box.rows; ++y) {
    int begin = 0;
    int end = box.width;
    while (begin < end && !counts(begin, y)) ++begin;
    while (end > begin && !counts(end - 1, y)) --end;
    end += (end - begin) % 2;
    out.spans.push_back({begin, end - begin, taps, 0});
    taps += end - begin;
    for (int x = begin; x < end; ++x)
      for (int plane = 0; plane < kCoarsePlanes; ++plane)
        out.weights.push_back(static_cast<float>(weight(plane, x, y)));
  }
  out.spans.push_back({0, 0, taps, 0});
  return out;
}

// Most taps of `rows` template rows that are in shared memory together.
int most_taps(const std::vector<PairTables>& pairs, int rows) {
  int most = 0;
  for (const PairTables& pair : pairs) {
    for (int first = 0; first < pair.pair.rows; first += rows) {
      const auto begin = static_cast<std::size_t>(first);
      const auto end = static_cast<std::size_t>(std::min(first + rows, pair.pair.rows));
      most = std::max(most, pair.spans[end].first - pair.spans[begin].first);
    }
  }
  return most;
}

// What the jobs come to, as the kernels see it.
class Planner {
 public:
  [[nodiscard]] Result<CoarsePlan> run(const std::shared_ptr<const Device>& device,
                                       const std::vector<CoarseJob>& jobs);

 private:
  void add(const CoarseJob& job, int search);
  [[nodiscard]] int image_of(const CoarseJob& job);
  void add_pairs_and_groups(const ScoredSearch& search);
  void add_groups(const CoarseTables& tables, int image);
  void add_plane(const CoarseJob& job, const CoarseTables::Plane& plane, int search,
                 int first_plane, int image);
  void add_pairs(const CoarseTables& tables, int first_plane, int first_group, int image);
  // Widens the images' reaches to what blocks of `warps` warps read.
  void reach_out(int warps);
  void set_counts(const std::vector<CoarseJob>& jobs);
  [[nodiscard]] Result<void> check_positions() const;
  [[nodiscard]] Result<unsigned> blocks_of_tiles(std::size_t parts, int tiles) const;
  // Whether the search goes by matrix units, and with what.
  void plan_scores(const Device& device, const std::vector<CoarseJob>& jobs);
  [[nodiscard]] Result<void> find_kernels(const Device& device);
  [[nodiscard]] std::size_t lay_out_tile(int warps, std::size_t limit);
  [[nodiscard]] Result<void> choose_search_shape(const Device& device);
  void choose_other_shapes(const Device& device);
  [[nodiscard]] Result<void> fill_tables(const std::shared_ptr<const Device>& device,
                                         const std::vector<CoarseJob>& jobs);
  void put_groups(Arena& arena, const std::vector<CoarseJob>& jobs);
  void put_planes(Arena& arena, const std::vector<CoarseJob>& jobs);
  void put_pairs(Arena& arena);
  void put_octets(Arena& arena);

  CoarsePlan plan_;
  std::vector<ScoredSearch> searches_;
  std::optional<ScorePlan> scores_;  // by matrix units
  std::vector<PairTables> pairs_;
  std::vector<int> neighbours_;
  std::vector<CoarseLimits> limits_;
  int widest_pair_ = 1;
  int most_pair_rows_ = 1;
  int widest_positions_ = 1;
  int most_rows_ = 1;
  std::size_t most_group_positions_ = 1;
  int tallest_image_ = 1;
  std::size_t looks_ = 0;  // room for them
};

int Planner::image_of(const CoarseJob& job) {
  const auto found = std::find(plan_.levels.begin(), plan_.levels.end(), job.config.level);
  if (found != plan_.levels.end()) return static_cast<int>(found - plan_.levels.begin());
  CoarseImage image{};
  image.valid = job.valid.address;
  image.valid_stride = job.valid.stride_bytes;
  image.width = job.config.width;
  image.height = job.config.height;
  image.is_16_bit = job.format == PixelFormat::kGray16 ? 1 : 0;
  plan_.levels.push_back(job.config.level);
  plan_.images.push_back(image);
  plan_.reaches.push_back({0, 0, image.width, image.height});
  tallest_image_ = std::max(tallest_image_, image.height);
  return static_cast<int>(plan_.images.size()) - 1;
}

void Planner::add(const CoarseJob& job, int search) {
  const int image = image_of(job);
  const int first_plane = static_cast<int>(plan_.planes.size());
  searches_.push_back(
      {&job.tables, {job.config.threshold, job.config.any_polarity}, first_plane, image});
  for (const CoarseTables::Plane& plane : job.tables.planes)
    add_plane(job, plane, search, first_plane, image);
  limits_.push_back({static_cast<int>(std::min<std::size_t>(
                         job.config.peaks_per_plane, static_cast<std::size_t>(kPeakCapacity))),
                     job.most_selected});
  widest_positions_ = std::max(widest_positions_, job.tables.blocks * kBlock);
  most_rows_ = std::max(most_rows_, job.tables.rows);
}

void Planner::plan_scores(const Device& device, const std::vector<CoarseJob>& jobs) {
  const bool all_gray8 = std::all_of(jobs.begin(), jobs.end(), [](const CoarseJob& job) {
    return job.format == PixelFormat::kGray8;
  });
  if (device.has_matrix_units() && all_gray8)
    scores_ =
        score_plan_of(searches_, device.properties().multiprocessors,
                      static_cast<std::size_t>(device.properties().max_shared_bytes_per_block));
  plan_.by_matrix_units = scores_.has_value();
}

// What the search in single precision works from.
void Planner::add_pairs_and_groups(const ScoredSearch& search) {
  const CoarseTables& tables = *search.tables;
  const int first_group = static_cast<int>(plan_.groups.size());
  add_groups(tables, search.image);
  add_pairs(tables, search.first_plane, first_group, search.image);
  looks_ += std::max(kLeastLooks, positions_of(tables) * tables.planes.size() / kPositionsPerLook);
  for (const CoarseTables::Plane& plane : tables.planes)
    for (const std::int32_t kind : plane.block_class) looks_ += kind >= 0 ? std::size_t{kBlock} : 0;
  most_group_positions_ = std::max(most_group_positions_, positions_of(tables));
}

void Planner::add_groups(const CoarseTables& tables, int image) {
  for (const CoarseTables::Group& group : tables.groups) {
    CoarseGroup out{};
    out.run_count = static_cast<int>(group.common.size());
    out.image = image;
    out.first_x = tables.first_x;
    out.first_y = tables.first_y;
    out.blocks = tables.blocks;
    out.rows = tables.rows;
    out.per_pixel = 1.0F / static_cast<float>(group.common_pixels);
    plan_.groups.push_back(out);
  }
}

void Planner::add_plane(const CoarseJob& job, const CoarseTables::Plane& plane, int search,
                        int first_plane, int image) {
  CoarsePlane out{};
  out.inverse_norm = plane.inverse_norm;
  out.threshold = job.config.threshold;
  out.angle_deg = plane.angle_deg;
  out.scale = plane.scale;
  out.spacing = static_cast<double>(1 << job.config.level);
  out.least = plane.least;
  out.phase_x = static_cast<float>(plane.phase_x);
  out.phase_y = static_cast<float>(plane.phase_y);
  out.any_polarity = job.config.any_polarity ? 1 : 0;
  out.search = search;
  out.image = image;
  out.left = plane.left;
  out.top = plane.top;
  out.width = plane.width;
  out.height = plane.height;
  out.run_count = static_cast<int>(plane.runs.size());
  out.pixels = plane.pixels;
  out.first_x = job.tables.first_x;
  out.first_y = job.tables.first_y;
  out.blocks = job.tables.blocks;
  out.rows = job.tables.rows;
  out.neighbour_begin = static_cast<int>(neighbours_.size());
  for (const std::size_t other : plane.neighbours)
    neighbours_.push_back(first_plane + static_cast<int>(other));
  out.neighbour_end = static_cast<int>(neighbours_.size());
  out.gain = static_cast<float>(estimate_gain(out.threshold));
  plan_.planes.push_back(out);
}

void Planner::add_pairs(const CoarseTables& tables, int first_plane, int first_group, int image) {
  for (std::size_t i = 0; i < tables.planes.size();) {
    const CoarseTables::Plane& plane = tables.planes[i];
    const bool two = i + 1 < tables.planes.size() && tables.planes[i + 1].group == plane.group;
    PairTables made = pair_of(plane, two ? &tables.planes[i + 1] : nullptr);
    CoarsePair& pair = made.pair;
    pair.planes[0] = first_plane + static_cast<int>(i);
    pair.planes[1] = two ? pair.planes[0] + 1 : -1;
    pair.group = first_group + static_cast<int>(plane.group);
    pair.image = image;
    pair.first_x = tables.first_x;
    pair.first_y = tables.first_y;
    pair.blocks = tables.blocks;
    pair.position_rows = tables.rows;
    widest_pair_ = std::max(widest_pair_, pair.width);
    most_pair_rows_ = std::max(most_pair_rows_, pair.rows);
    pairs_.push_back(std::move(made));
    i += two ? 2 : 1;
  }
}

void Planner::reach_out(int warps) {
  for (const PairTables& made : pairs_) {
    const CoarsePair& pair = made.pair;
    CoarsePlan::Reach& own = plan_.reaches[static_cast<std::size_t>(pair.image)];
    const int tile_width = warps * kCoarseColumns;
    const int columns = blocks_of(pair.blocks * kCoarseBlock, tile_width) * tile_width;
    const int rows = blocks_of(pair.position_rows, kCoarseTileRows) * kCoarseTileRows;
    own.left = std::min(own.left, pair.first_x + pair.left);
    own.top = std::min(own.top, pair.first_y + pair.top);
    own.right = std::max(own.right, pair.first_x + pair.left + columns + pair.width);
    own.bottom = std::max(own.bottom, pair.first_y + pair.top + rows + pair.rows);
  }
}

void Planner::set_counts(const std::vector<CoarseJob>& jobs) {
  CoarseParameters& p = plan_.parameters;
  p.image_count = static_cast<int>(plan_.images.size());
  p.group_count = static_cast<int>(plan_.groups.size());
  p.pair_count = static_cast<int>(pairs_.size());
  p.plane_count = static_cast<int>(plan_.planes.size());
  p.search_count = static_cast<int>(jobs.size());
  p.look_capacity =
      static_cast<unsigned>(std::min<std::size_t>(looks_, std::numeric_limits<int>::max()));
  p.position_capacity = static_cast<unsigned>(jobs.size() * kPositionsPerPattern);
  for (const CoarseJob& job : jobs) p.select_limit = std::max(p.select_limit, job.most_selected);
}

Result<void> Planner::check_positions() const {
  if (widest_positions_ <= kMostPositions && most_rows_ <= kMostPositions) return {};
  return fail(ErrorCode::kUnsupported,
              "the coarsest level is " + std::to_string(widest_positions_) + "x" +
                  std::to_string(most_rows_) + " positions; the GPU searches at most " +
                  std::to_string(kMostPositions) + " either way; search with more levels");
}

// Blocks of a launch, one for each part (slice or pair) of each tile. In one line, which is long
// enough for any picture: CUDA's other two dimensions end at 65,535.
Result<unsigned> Planner::blocks_of_tiles(std::size_t parts, int tiles) const {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (parts <= kMost / static_cast<std::size_t>(std::max(tiles, 1)))
    return static_cast<unsigned>(parts * static_cast<std::size_t>(tiles));
  return fail(ErrorCode::kUnsupported,
              "the coarsest level has " + std::to_string(widest_positions_) + "x" +
                  std::to_string(most_rows_) + " positions at " +
                  std::to_string(plan_.planes.size()) +
                  " angles and scales of all patterns, more than the GPU searches in one launch; "
                  "search with more levels");
}

Result<void> Planner::find_kernels(const Device& device) {
  const std::pair<Kernel*, const char*> wanted[] = {
      {&plan_.prepare, "patternd_coarse_prepare"}, {&plan_.bound, "patternd_coarse_bound"},
      {&plan_.search, "patternd_coarse_search"},   {&plan_.judge, "patternd_coarse_judge"},
      {&plan_.score, "patternd_coarse_score"},     {&plan_.peaks, "patternd_suppress_peaks"},
      {&plan_.across, "patternd_suppress_across"}, {&plan_.select, "patternd_suppress_select"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device.kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  return {};
}

// Lays out shared memory for blocks of `warps` warps in as few chunks as `limit` bytes allow;
// bytes, or 0 where it cannot be done.
std::size_t Planner::lay_out_tile(int warps, std::size_t limit) {
  CoarseParameters& p = plan_.parameters;
  // Odd, so that the lanes' rows lie in different banks; a pixel for spans that are rounded up, and
  // one that is read and not used.
  p.tile_pitch = (warps * kCoarseColumns + widest_pair_ + 2) | 1;
  for (int chunks = 1; chunks <= most_pair_rows_; ++chunks) {
    p.chunk_rows = blocks_of(most_pair_rows_, chunks);
    p.chunk_taps = (most_taps(pairs_, p.chunk_rows) + 1) / 2 * 2;
    const auto rows = static_cast<std::size_t>(p.chunk_rows);
    const std::size_t tile =
        static_cast<std::size_t>(p.chunk_taps) * kCoarsePlanes * sizeof(float) +
        rows * sizeof(CoarseSpan) +
        (rows + kCoarseTileRows) * static_cast<std::size_t>(p.tile_pitch) * sizeof(float);
    if (tile <= limit)
      return std::max(tile, static_cast<std::size_t>(coarse_places_bytes(warps * kCoarseColumns)));
  }
  return 0;
}

Result<void> Planner::choose_search_shape(const Device& device) {
  const auto most = static_cast<std::size_t>(device.properties().max_shared_bytes_per_block);
  const auto tiles_for = [&](int warps) {
    return blocks_of(widest_positions_, warps * kCoarseColumns) *
           blocks_of(most_rows_, kCoarseTileRows);
  };
  // Wide tiles read fewer pixels twice; narrow ones, where all run at once, spread more evenly.
  const auto load = [&](int warps) {
    const std::int64_t blocks =
        std::int64_t{plan_.parameters.pair_count} * std::int64_t{tiles_for(warps)};
    const int multiprocessors = device.properties().multiprocessors;
    return warps * ((blocks + multiprocessors - 1) / multiprocessors);
  };
  int first = kCoarseMostWarps;
  if (10 * load(first / 2) <= 9 * load(first)) first /= 2;
  // Where a template is too large for a second block on a multiprocessor, as fits at all.
  for (const std::size_t limit : {most / 2, most}) {
    for (int warps = first; warps > 0; warps /= 2) {
      const std::size_t bytes = lay_out_tile(warps, limit);
      if (bytes == 0) continue;
      reach_out(warps);
      plan_.search_shape.block_x = static_cast<unsigned>(warps * kWarpSize);
      const auto blocks = blocks_of_tiles(pairs_.size(), tiles_for(warps));
      if (!blocks) return tl::make_unexpected(blocks.error());
      plan_.search_shape.grid_x = *blocks;
      plan_.search_shape.shared_bytes = static_cast<unsigned>(bytes);
      return {};
    }
  }
  return fail(ErrorCode::kUnsupported,
              "a pattern is " + std::to_string(widest_pair_) +
                  " pixels wide at the coarsest level, more than this GPU's shared memory of " +
                  std::to_string(most) + " bytes allows; search it with more levels");
}

void Planner::choose_other_shapes(const Device& device) {
  const CoarseParameters& p = plan_.parameters;
  constexpr int kRowsPerBlock = 4;
  plan_.prepare_shape.block_x = kRowsPerBlock * kWarpSize;
  plan_.prepare_shape.grid_x = static_cast<unsigned>(blocks_of(tallest_image_, kRowsPerBlock));
  plan_.prepare_shape.grid_y = static_cast<unsigned>(p.image_count);

  plan_.bound_shape.block_x = 256;
  plan_.bound_shape.grid_x = static_cast<unsigned>(p.group_count);
  plan_.bound_shape.grid_y =
      static_cast<unsigned>(std::min<std::size_t>(1024, (most_group_positions_ + 255) / 256));

  plan_.judge_shape.block_x = kCoarseJudgeThreads;
  plan_.judge_shape.grid_x = static_cast<unsigned>(4 * device.properties().multiprocessors);
  plan_.list_shape.block_x = 128;
  plan_.list_shape.grid_x = static_cast<unsigned>(2 * device.properties().multiprocessors);

  plan_.planes_shape.block_x = 256;
  plan_.planes_shape.grid_x = static_cast<unsigned>(p.plane_count + kClearBlocks);

  plan_.select_shape.block_x = kSelectThreads;
  plan_.select_shape.grid_x = 32;
  plan_.select_shape.grid_y = static_cast<unsigned>(p.search_count);
}

void Planner::put_groups(Arena& arena, const std::vector<CoarseJob>& jobs) {
  std::size_t group = 0;
  for (const CoarseJob& job : jobs) {
    for (const CoarseTables::Group& from : job.tables.groups) {
      CoarseGroup& to = plan_.groups[group++];
      to.runs = arena.put(from.common);
      to.block_class = arena.put(from.block_class);
      to.border = arena.put(from.border);
    }
  }
}

void Planner::put_planes(Arena& arena, const std::vector<CoarseJob>& jobs) {
  std::size_t plane = 0;
  for (const CoarseJob& job : jobs) {
    for (const CoarseTables::Plane& from : job.tables.planes) {
      CoarsePlane& to = plan_.planes[plane++];
      if (!scores_) {
        to.taps = arena.put(from.taps);
        to.runs = arena.put(from.runs);
        to.needs = arena.put(needs_of(from));
      }
      to.block_class = arena.put(from.block_class);
      to.border = arena.put(border_of(from));
    }
  }
}

void Planner::put_pairs(Arena& arena) {
  std::vector<CoarsePair> pairs;
  for (const PairTables& made : pairs_) {
    pairs.push_back(made.pair);
    pairs.back().weights = arena.put(made.weights);
    pairs.back().spans = arena.put(made.spans);
  }
  plan_.parameters.pairs = arena.put(pairs);
}

void Planner::put_octets(Arena& arena) {
  std::vector<CoarseOctet> octets;
  for (const OctetTables& made : scores_->octets) {
    octets.push_back(made.octet);
    octets.back().strips = arena.put(made.strips);
    octets.back().factors = arena.put(made.factors);
    octets.back().masks = arena.put(made.masks);
    octets.back().terms = arena.put(made.terms);
    octets.back().tiles = arena.put(made.tiles);
    octets.back().tile_kinds = arena.put(made.tile_kinds);
    octets.back().parts = arena.put(made.parts);
  }
  plan_.parameters.octets = arena.put(octets);
  plan_.parameters.slices = arena.put(scores_->slices);
}

Result<void> Planner::fill_tables(const std::shared_ptr<const Device>& device,
                                  const std::vector<CoarseJob>& jobs) {
  CoarseParameters& p = plan_.parameters;
  auto tables = fill_arena(device, [&](Arena& arena) {
    put_planes(arena, jobs);
    if (scores_) {
      put_octets(arena);
    } else {
      put_groups(arena, jobs);
      put_pairs(arena);
    }
    p.neighbours = arena.put(neighbours_);
    p.limits = arena.put(limits_);
  });
  if (!tables) return tl::make_unexpected(tables.error());
  plan_.tables = std::move(*tables);
  return {};
}

Result<CoarsePlan> Planner::run(const std::shared_ptr<const Device>& device,
                                const std::vector<CoarseJob>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) add(jobs[i], static_cast<int>(i));
  plan_scores(*device, jobs);
  if (!scores_)
    for (const ScoredSearch& search : searches_) add_pairs_and_groups(search);
  set_counts(jobs);
  if (auto ok = check_positions(); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = find_kernels(*device); !ok) return tl::make_unexpected(ok.error());
  if (scores_) {
    plan_.score_shape.block_x = static_cast<unsigned>(scores_->warps * kWarpSize);
    const auto blocks = blocks_of_tiles(scores_->slices.size(), scores_->tiles);
    if (!blocks) return tl::make_unexpected(blocks.error());
    plan_.score_shape.grid_x = *blocks;
    plan_.parameters.slice_count = static_cast<int>(scores_->slices.size());
    plan_.score_shape.shared_bytes = static_cast<unsigned>(scores_->shared_bytes);
    plan_.parameters.tile_pitch = scores_->pitch;
    plan_.parameters.tile_words = scores_->tile_words;
  } else if (auto ok = choose_search_shape(*device); !ok) {
    return tl::make_unexpected(ok.error());
  }
  choose_other_shapes(*device);
  if (auto ok = fill_tables(device, jobs); !ok) return tl::make_unexpected(ok.error());
  return std::move(plan_);
}

}  // namespace

Result<CoarsePlan> CoarsePlan::create(const std::shared_ptr<const Device>& device,
                                      const std::vector<CoarseJob>& jobs) {
  return Planner().run(device, jobs);
}

}  // namespace patternd::cuda
