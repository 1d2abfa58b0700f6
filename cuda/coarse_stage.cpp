#include "cuda/coarse_stage.h"

#include <algorithm>
#include <limits>

#include "cuda/arena.h"

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
constexpr std::size_t kPrefixBytes = 8;
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

}  // namespace

// What the jobs come to, as the kernels see it.
struct CoarseStage::Layout {
  // Pixels that the searches of an image read, counted from its pixel (0, 0).
  struct Reach {
    int left = 0;
    int top = 0;
    int right = 0;
    int bottom = 0;
  };
  std::vector<CoarseImage> images;
  std::vector<Reach> reach;  // an image each
  std::vector<CoarseGroup> groups;
  std::vector<PairTables> pairs;
  std::vector<CoarsePlane> planes;
  std::vector<int> neighbours;
  std::vector<CoarseLimits> limits;
  int widest_pair = 1;
  int most_pair_rows = 1;
  int widest_positions = 1;
  int most_rows = 1;
  std::size_t most_group_positions = 1;
  int tallest_image = 1;
  std::size_t looks = 0;  // room for them

  void add_image(const CoarseJob& job) {
    const DeviceView& view = job.level;
    CoarseImage image{};
    image.pixels = view.address;
    image.valid = job.valid.address;
    image.valid_stride = job.valid.stride_bytes;
    image.stride_bytes = view.stride_bytes;
    image.width = view.width;
    image.height = view.height;
    image.is_16_bit = view.format == PixelFormat::kGray16 ? 1 : 0;
    images.push_back(image);
    reach.push_back({0, 0, view.width, view.height});
    tallest_image = std::max(tallest_image, view.height);
  }
  [[nodiscard]] int image_of(const CoarseJob& job) {
    const auto found = std::find_if(images.begin(), images.end(), [&](const CoarseImage& image) {
      return image.pixels == job.level.address;
    });
    if (found != images.end()) return static_cast<int>(found - images.begin());
    add_image(job);
    return static_cast<int>(images.size()) - 1;
  }
  void add(const CoarseJob& job, int search);
  void add_plane(const CoarseJob& job, const CoarseTables::Plane& plane, int search,
                 int first_plane, int image);
  void add_pairs(const CoarseJob& job, int first_plane, int first_group, int image);
  // Widens the images' reaches to what blocks of `warps` warps read.
  void reach_out(int warps);
};

void CoarseStage::Layout::add(const CoarseJob& job, int search) {
  const int image = image_of(job);
  const int first_plane = static_cast<int>(planes.size());
  const int first_group = static_cast<int>(groups.size());
  for (const CoarseTables::Group& group : job.tables.groups) {
    CoarseGroup out{};
    out.run_count = static_cast<int>(group.common.size());
    out.image = image;
    out.first_x = job.tables.first_x;
    out.first_y = job.tables.first_y;
    out.blocks = job.tables.blocks;
    out.rows = job.tables.rows;
    out.per_pixel = 1.0F / static_cast<float>(group.common_pixels);
    groups.push_back(out);
  }
  for (const CoarseTables::Plane& plane : job.tables.planes)
    add_plane(job, plane, search, first_plane, image);
  add_pairs(job, first_plane, first_group, image);
  looks += std::max(kLeastLooks,
                    positions_of(job.tables) * job.tables.planes.size() / kPositionsPerLook);
  limits.push_back({static_cast<int>(std::min<std::size_t>(
                        job.config.peaks_per_plane, static_cast<std::size_t>(kPeakCapacity))),
                    job.most_selected});
  most_group_positions = std::max(most_group_positions, positions_of(job.tables));
  widest_positions = std::max(widest_positions, job.tables.blocks * kBlock);
  most_rows = std::max(most_rows, job.tables.rows);
}

void CoarseStage::Layout::add_plane(const CoarseJob& job, const CoarseTables::Plane& plane,
                                    int search, int first_plane, int image) {
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
  out.neighbour_begin = static_cast<int>(neighbours.size());
  for (const std::size_t other : plane.neighbours)
    neighbours.push_back(first_plane + static_cast<int>(other));
  out.neighbour_end = static_cast<int>(neighbours.size());
  planes.push_back(out);
  for (const std::int32_t kind : plane.block_class) looks += kind >= 0 ? std::size_t{kBlock} : 0;
}

void CoarseStage::Layout::add_pairs(const CoarseJob& job, int first_plane, int first_group,
                                    int image) {
  const CoarseTables& tables = job.tables;
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
    widest_pair = std::max(widest_pair, pair.width);
    most_pair_rows = std::max(most_pair_rows, pair.rows);
    pairs.push_back(std::move(made));
    i += two ? 2 : 1;
  }
}

void CoarseStage::Layout::reach_out(int warps) {
  for (const PairTables& made : pairs) {
    const CoarsePair& pair = made.pair;
    Reach& own = reach[static_cast<std::size_t>(pair.image)];
    const int tile_width = warps * kCoarseColumns;
    const int columns = blocks_of(pair.blocks * kCoarseBlock, tile_width) * tile_width;
    const int rows = blocks_of(pair.position_rows, kCoarseTileRows) * kCoarseTileRows;
    own.left = std::min(own.left, pair.first_x + pair.left);
    own.top = std::min(own.top, pair.first_y + pair.top);
    own.right = std::max(own.right, pair.first_x + pair.left + columns + pair.width);
    own.bottom = std::max(own.bottom, pair.first_y + pair.top + rows + pair.rows);
  }
}

Result<CoarseStage> CoarseStage::create(const std::shared_ptr<const Device>& device,
                                        const std::vector<CoarseJob>& jobs) {
  CoarseStage stage;
  Layout layout;
  for (std::size_t i = 0; i < jobs.size(); ++i) layout.add(jobs[i], static_cast<int>(i));
  CoarseParameters& p = stage.parameters_;
  p.image_count = static_cast<int>(layout.images.size());
  p.group_count = static_cast<int>(layout.groups.size());
  p.pair_count = static_cast<int>(layout.pairs.size());
  p.plane_count = static_cast<int>(layout.planes.size());
  p.search_count = static_cast<int>(jobs.size());
  p.look_capacity =
      static_cast<unsigned>(std::min<std::size_t>(layout.looks, std::numeric_limits<int>::max()));
  p.position_capacity = static_cast<unsigned>(jobs.size() * kPositionsPerPattern);
  for (const CoarseJob& job : jobs) p.select_limit = std::max(p.select_limit, job.most_selected);
  if (layout.widest_positions > kMostPositions || layout.most_rows > kMostPositions) {
    return fail(ErrorCode::kUnsupported,
                "the coarsest level is " + std::to_string(layout.widest_positions) + "x" +
                    std::to_string(layout.most_rows) + " positions; the GPU searches at most " +
                    std::to_string(kMostPositions) + " either way; search with more levels");
  }
  if (auto ok = stage.find_kernels(*device); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.choose_search_shape(*device, layout); !ok)
    return tl::make_unexpected(ok.error());
  stage.choose_other_shapes(*device, layout);
  if (auto ok = stage.allocate(device, layout); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.fill_tables(device, jobs, layout); !ok)
    return tl::make_unexpected(ok.error());
  return stage;
}

Result<void> CoarseStage::allocate(const std::shared_ptr<const Device>& device, Layout& layout) {
  CoarseParameters& p = parameters_;
  const auto searches = static_cast<std::size_t>(p.search_count);
  const std::size_t planes = layout.planes.size();
  auto scratch = allocate_scratch(device, [&](ScratchLayout& memory) {
    p.counters = memory.take(sizeof(CoarseCounters));
    p.peak_counts = memory.take(planes * sizeof(unsigned));
    p.found_counts = memory.take(searches * sizeof(unsigned));
    p.selected_counts = memory.take(searches * sizeof(int));
    p.loser_counts = memory.take(searches * sizeof(int));
    p.counter_words = static_cast<int>(memory.size_bytes() / sizeof(unsigned));
    for (std::size_t i = 0; i < layout.images.size(); ++i) {
      CoarseImage& image = layout.images[i];
      const Layout::Reach& reach = layout.reach[i];
      // One column more: a prefix sum has one entry more than its row has pixels.
      image.made_right = reach.right + 1;
      image.made_stride = reach.right + 1 - reach.left;
      const auto stride = static_cast<std::size_t>(image.made_stride);
      const std::size_t size = stride * static_cast<std::size_t>(reach.bottom - reach.top);
      const std::size_t origin =
          static_cast<std::size_t>(-reach.top) * stride + static_cast<std::size_t>(-reach.left);
      image.samples = memory.take(sizeof(float) * size) + sizeof(float) * origin;
      image.prefix = memory.take(kPrefixBytes * size) + kPrefixBytes * origin;
    }
    for (CoarseGroup& group : layout.groups) {
      group.bounds = memory.take(sizeof(CoarseBound) * static_cast<std::size_t>(group.blocks) *
                                 kBlock * static_cast<std::size_t>(group.rows));
    }
    for (CoarsePlane& plane : layout.planes) {
      plane.scores = memory.take(sizeof(float) * static_cast<std::size_t>(plane.blocks) * kBlock *
                                 static_cast<std::size_t>(plane.rows));
    }
    p.looks = memory.take(p.look_capacity * sizeof(CoarseLook));
    p.positions = memory.take(p.position_capacity * sizeof(CoarsePosition));
    p.peaks = memory.take(planes * kPeakCapacity * sizeof(CoarsePeak));
    p.found = memory.take(searches * kFoundCapacity * sizeof(CoarseFound));
    p.selected =
        memory.take(searches * static_cast<std::size_t>(p.select_limit) * sizeof(TracedCandidate));
  });
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  // The zeros around the pictures, and maps without a score.
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  if (auto ok = stream->fill(scratch_.pointer(), 0, scratch_.size_bytes()); !ok) return ok;
  return stream->wait();
}

Result<void> CoarseStage::fill_tables(const std::shared_ptr<const Device>& device,
                                      const std::vector<CoarseJob>& jobs, Layout& layout) {
  CoarseParameters& p = parameters_;
  auto tables = fill_arena(device, [&](Arena& arena) {
    std::size_t group = 0;
    std::size_t plane = 0;
    for (const CoarseJob& job : jobs) {
      for (const CoarseTables::Group& from : job.tables.groups) {
        CoarseGroup& to = layout.groups[group++];
        to.runs = arena.put(from.common);
        to.block_class = arena.put(from.block_class);
        to.border = arena.put(from.border);
      }
      for (const CoarseTables::Plane& from : job.tables.planes) {
        CoarsePlane& to = layout.planes[plane++];
        to.taps = arena.put(from.taps);
        to.runs = arena.put(from.runs);
        to.needs = arena.put(needs_of(from));
        to.block_class = arena.put(from.block_class);
        to.border = arena.put(border_of(from));
      }
    }
    std::vector<CoarsePair> pairs;
    for (const PairTables& made : layout.pairs) {
      pairs.push_back(made.pair);
      pairs.back().weights = arena.put(made.weights);
      pairs.back().spans = arena.put(made.spans);
    }
    p.pairs = arena.put(pairs);
    p.images = arena.put(layout.images);
    p.groups = arena.put(layout.groups);
    p.planes = arena.put(layout.planes);
    p.neighbours = arena.put(layout.neighbours);
    p.limits = arena.put(layout.limits);
  });
  if (!tables) return tl::make_unexpected(tables.error());
  tables_ = std::move(*tables);
  return {};
}

Result<void> CoarseStage::find_kernels(const Device& device) {
  const std::pair<Kernel*, const char*> wanted[] = {
      {&prepare_, "patternd_coarse_prepare"}, {&bound_, "patternd_coarse_bound"},
      {&search_, "patternd_coarse_search"},   {&judge_, "patternd_coarse_judge"},
      {&peaks_, "patternd_suppress_peaks"},   {&across_, "patternd_suppress_across"},
      {&select_, "patternd_suppress_select"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device.kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  return {};
}

// Lays out shared memory for blocks of `warps` warps in as few chunks as `limit` bytes allow;
// bytes, or 0 where it cannot be done.
std::size_t CoarseStage::lay_out_tile(const Layout& layout, int warps, std::size_t limit) {
  CoarseParameters& p = parameters_;
  // Odd, so that the lanes' rows lie in different banks; a pixel for spans that are rounded up, and
  // one that is read and not used.
  p.tile_pitch = (warps * kCoarseColumns + layout.widest_pair + 2) | 1;
  for (int chunks = 1; chunks <= layout.most_pair_rows; ++chunks) {
    p.chunk_rows = blocks_of(layout.most_pair_rows, chunks);
    p.chunk_taps = (most_taps(layout.pairs, p.chunk_rows) + 1) / 2 * 2;
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

Result<void> CoarseStage::choose_search_shape(const Device& device, Layout& layout) {
  const auto most = static_cast<std::size_t>(device.properties().max_shared_bytes_per_block);
  const auto tiles_for = [&](int warps) {
    return blocks_of(layout.widest_positions, warps * kCoarseColumns) *
           blocks_of(layout.most_rows, kCoarseTileRows);
  };
  // Wide tiles read fewer pixels twice; narrow ones, where all run at once, spread more evenly.
  const auto load = [&](int warps) {
    return warps * blocks_of(parameters_.pair_count * tiles_for(warps),
                             device.properties().multiprocessors);
  };
  int first = kCoarseMostWarps;
  if (10 * load(first / 2) <= 9 * load(first)) first /= 2;
  // Where a template is too large for a second block on a multiprocessor, as fits at all.
  for (const std::size_t limit : {most / 2, most}) {
    for (int warps = first; warps > 0; warps /= 2) {
      const std::size_t bytes = lay_out_tile(layout, warps, limit);
      if (bytes == 0) continue;
      layout.reach_out(warps);
      search_shape_.block_x = static_cast<unsigned>(warps * kWarpSize);
      search_shape_.grid_x = static_cast<unsigned>(parameters_.pair_count);
      search_shape_.grid_y = static_cast<unsigned>(tiles_for(warps));
      search_shape_.shared_bytes = static_cast<unsigned>(bytes);
      return {};
    }
  }
  return fail(ErrorCode::kUnsupported,
              "a pattern is " + std::to_string(layout.widest_pair) +
                  " pixels wide at the coarsest level, more than this GPU's shared memory of " +
                  std::to_string(most) + " bytes allows; search it with more levels");
}

void CoarseStage::choose_other_shapes(const Device& device, const Layout& layout) {
  const CoarseParameters& p = parameters_;
  constexpr int kRowsPerBlock = 4;
  prepare_shape_.block_x = kRowsPerBlock * kWarpSize;
  prepare_shape_.grid_x = static_cast<unsigned>(blocks_of(layout.tallest_image, kRowsPerBlock));
  prepare_shape_.grid_y = static_cast<unsigned>(p.image_count);

  bound_shape_.block_x = 256;
  bound_shape_.grid_x = static_cast<unsigned>(p.group_count);
  bound_shape_.grid_y =
      static_cast<unsigned>(std::min<std::size_t>(1024, (layout.most_group_positions + 255) / 256));

  judge_shape_.block_x = kCoarseJudgeThreads;
  judge_shape_.grid_x = static_cast<unsigned>(4 * device.properties().multiprocessors);
  list_shape_.block_x = 128;
  list_shape_.grid_x = static_cast<unsigned>(2 * device.properties().multiprocessors);

  planes_shape_.block_x = 256;
  planes_shape_.grid_x = static_cast<unsigned>(p.plane_count);

  select_shape_.block_x = kSelectThreads;
  select_shape_.grid_x = kFoundCapacity / kSelectThreads;
  select_shape_.grid_y = static_cast<unsigned>(p.search_count);
}

Result<void> CoarseStage::enqueue_search(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (auto ok = stream.launch(prepare_, prepare_shape_, p); !ok) return ok;
  if (auto ok = stream.launch(bound_, bound_shape_, p); !ok) return ok;
  if (auto ok = stream.launch(search_, search_shape_, p); !ok) return ok;
  return stream.launch(judge_, judge_shape_, p);
}

Result<void> CoarseStage::enqueue_suppression(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (auto ok = stream.launch(peaks_, list_shape_, p); !ok) return ok;
  if (auto ok = stream.launch(across_, planes_shape_, p); !ok) return ok;
  return stream.launch(select_, select_shape_, p);
}

}  // namespace patternd::cuda
