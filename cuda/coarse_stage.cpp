#include "cuda/coarse_stage.h"

#include <algorithm>

#include "cuda/arena.h"

namespace patternd::cuda {
namespace {

static_assert(kCoarseBlock == kBlock);
static_assert(kCoarseAllVisible == CoarseTables::kAllVisible);
static_assert(kCoarseSkip == CoarseTables::kSkip);
static_assert(sizeof(CoarseRun) == sizeof(MaskRun));
static_assert(sizeof(CoarseBorder) == sizeof(CoarseTables::Border));

// Bounds come from floats; this much lower they are safe.
constexpr float kBoundSafety = 0.99F;
constexpr int kMostScreenThreads = 128;
constexpr int kMostChunkRows = 8;
// Positions that may be scored exactly, at least; beyond the border's, which always are.
constexpr std::size_t kLeastPositions = 65536;

std::size_t positions_of(const CoarseTables& tables) {
  return static_cast<std::size_t>(tables.blocks) * kBlock * static_cast<std::size_t>(tables.rows);
}

// The template's rows interleaved for kCoarseBand rows of positions: see CoarsePlane::bands.
std::vector<float> interleave(const CoarseTables::Plane& plane) {
  const int rows = plane.height + kCoarseBand - 1;
  std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(plane.width) *
                         kCoarseBand);
  std::size_t at = 0;
  for (int j = 0; j < rows; ++j) {
    for (int t = 0; t < plane.width; ++t) {
      for (int k = 0; k < kCoarseBand; ++k, ++at) {
        const int row = j - k;
        if (row < 0 || row >= plane.height) continue;
        out[at] = static_cast<float>(
            plane.taps[static_cast<std::size_t>(row) * static_cast<std::size_t>(plane.width) +
                       static_cast<std::size_t>(t)]);
      }
    }
  }
  return out;
}

}  // namespace

// What the jobs come to, as the kernels see it.
struct CoarseStage::Layout {
  std::vector<CoarseImage> images;
  std::vector<CoarseGroup> groups;
  std::vector<CoarsePlane> planes;
  std::vector<int> neighbours;
  std::vector<CoarseLimits> limits;
  std::size_t positions = kLeastPositions;
  int widest_template = 1;
  int widest_positions = 1;
  int most_rows = 1;
  std::size_t most_group_positions = 1;
  int tallest_image = 1;

  void add_image(const DeviceView& view) {
    images.push_back({view.address, 0, view.stride_bytes, view.width, view.height,
                      view.format == PixelFormat::kGray16 ? 1 : 0});
    tallest_image = std::max(tallest_image, view.height);
  }
  [[nodiscard]] int image_of(const DeviceView& view) {
    const auto found = std::find_if(images.begin(), images.end(), [&](const CoarseImage& image) {
      return image.pixels == view.address;
    });
    if (found != images.end()) return static_cast<int>(found - images.begin());
    add_image(view);
    return static_cast<int>(images.size()) - 1;
  }
  void add(const CoarseJob& job, int search);
  void add_plane(const CoarseJob& job, const CoarseTables::Plane& plane, int search,
                 int first_plane, int first_group, int image);
};

void CoarseStage::Layout::add(const CoarseJob& job, int search) {
  const int image = image_of(job.level);
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
    out.factor = static_cast<float>(job.config.threshold) * kBoundSafety;
    groups.push_back(out);
  }
  for (const CoarseTables::Plane& plane : job.tables.planes)
    add_plane(job, plane, search, first_plane, first_group, image);
  limits.push_back({static_cast<int>(std::min<std::size_t>(
                        job.config.peaks_per_plane, static_cast<std::size_t>(kPeakCapacity))),
                    job.most_selected});
  most_group_positions = std::max(most_group_positions, positions_of(job.tables));
  widest_positions = std::max(widest_positions, job.tables.blocks * kBlock);
  most_rows = std::max(most_rows, job.tables.rows);
}

void CoarseStage::Layout::add_plane(const CoarseJob& job, const CoarseTables::Plane& plane,
                                    int search, int first_plane, int first_group, int image) {
  CoarsePlane out{};
  out.inverse_norm = plane.inverse_norm;
  out.threshold = job.config.threshold;
  out.angle_deg = plane.angle_deg;
  out.scale = plane.scale;
  out.spacing = static_cast<double>(1 << job.config.level);
  out.inverse_length = plane.inverse_length;
  out.phase_x = static_cast<float>(plane.phase_x);
  out.phase_y = static_cast<float>(plane.phase_y);
  out.any_polarity = job.config.any_polarity ? 1 : 0;
  out.search = search;
  out.group = first_group + static_cast<int>(plane.group);
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
  widest_template = std::max(widest_template, plane.width);
  // Blocks alike share an entry of the table.
  positions += kBlock * static_cast<std::size_t>(
                            std::count_if(plane.block_class.begin(), plane.block_class.end(),
                                          [](std::int32_t kind) { return kind >= 0; }));
}

Result<CoarseStage> CoarseStage::create(const std::shared_ptr<const Device>& device,
                                        const std::vector<CoarseJob>& jobs) {
  CoarseStage stage;
  Layout layout;
  for (std::size_t i = 0; i < jobs.size(); ++i) layout.add(jobs[i], static_cast<int>(i));
  CoarseParameters& p = stage.parameters_;
  p.image_count = static_cast<int>(layout.images.size());
  p.group_count = static_cast<int>(layout.groups.size());
  p.plane_count = static_cast<int>(layout.planes.size());
  p.search_count = static_cast<int>(jobs.size());
  p.position_capacity = static_cast<unsigned>(layout.positions);
  for (const CoarseJob& job : jobs) p.select_limit = std::max(p.select_limit, job.most_selected);

  const std::size_t searches = jobs.size();
  const std::size_t planes = layout.planes.size();
  auto scratch = allocate_scratch(device, [&](ScratchLayout& memory) {
    const Address first = memory.take(sizeof(CoarseCounters));
    p.counters = first;
    p.peak_counts = memory.take(planes * sizeof(unsigned));
    p.found_counts = memory.take(searches * sizeof(unsigned));
    p.selected_counts = memory.take(searches * sizeof(int));
    stage.counter_bytes_ = memory.size_bytes();
    for (CoarseImage& image : layout.images) {
      image.prefix = memory.take(8 * (static_cast<std::size_t>(image.width) + 1) *
                                 static_cast<std::size_t>(image.height));
    }
    for (CoarseGroup& group : layout.groups) {
      group.bounds = memory.take(sizeof(float) * static_cast<std::size_t>(group.blocks) * kBlock *
                                 static_cast<std::size_t>(group.rows));
    }
    for (CoarsePlane& plane : layout.planes) {
      plane.scores = memory.take(sizeof(float) * static_cast<std::size_t>(plane.blocks) * kBlock *
                                 static_cast<std::size_t>(plane.rows));
    }
    p.positions = memory.take(layout.positions * sizeof(CoarsePosition));
    p.peaks = memory.take(planes * kPeakCapacity * sizeof(CoarsePeak));
    p.found = memory.take(searches * kFoundCapacity * sizeof(CoarseFound));
    p.selected =
        memory.take(searches * static_cast<std::size_t>(p.select_limit) * sizeof(TracedCandidate));
  });
  if (!scratch) return tl::make_unexpected(scratch.error());
  stage.scratch_ = std::move(*scratch);

  auto tables = fill_arena(device, [&](Arena& arena) {
    std::size_t group = 0;
    std::size_t plane = 0;
    for (const CoarseJob& job : jobs) {
      for (const CoarseTables::Group& from : job.tables.groups)
        layout.groups[group++].runs = arena.put(from.common);
      for (const CoarseTables::Plane& from : job.tables.planes) {
        CoarsePlane& to = layout.planes[plane++];
        to.bands = arena.put(interleave(from));
        to.taps = arena.put(from.taps);
        to.runs = arena.put(from.runs);
        to.block_class = arena.put(from.block_class);
        to.border = arena.put(from.border);
      }
    }
    p.images = arena.put(layout.images);
    p.groups = arena.put(layout.groups);
    p.planes = arena.put(layout.planes);
    p.neighbours = arena.put(layout.neighbours);
    p.limits = arena.put(layout.limits);
  });
  if (!tables) return tl::make_unexpected(tables.error());
  stage.tables_ = std::move(*tables);
  if (auto ok = stage.find_kernels(*device); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.choose_shapes(*device, layout); !ok) return tl::make_unexpected(ok.error());
  return stage;
}

Result<void> CoarseStage::find_kernels(const Device& device) {
  const std::pair<Kernel*, const char*> wanted[] = {
      {&prepare_, "patternd_coarse_prepare"}, {&bound_, "patternd_coarse_bound"},
      {&screen_, "patternd_coarse_screen"},   {&score_, "patternd_coarse_score"},
      {&peaks_, "patternd_suppress_peaks"},   {&trim_, "patternd_suppress_trim"},
      {&across_, "patternd_suppress_across"}, {&select_, "patternd_suppress_select"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device.kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  return {};
}

Result<void> CoarseStage::choose_shapes(const Device& device, const Layout& layout) {
  CoarseParameters& p = parameters_;
  constexpr unsigned kRowsPerBlock = 4;
  prepare_shape_.block_x = kWarpSize;
  prepare_shape_.block_y = kRowsPerBlock;
  prepare_shape_.grid_x = (static_cast<unsigned>(layout.tallest_image) + 3) / kRowsPerBlock;
  prepare_shape_.grid_y = static_cast<unsigned>(p.image_count);

  bound_shape_.block_x = 256;
  bound_shape_.grid_x = static_cast<unsigned>(p.group_count);
  bound_shape_.grid_y =
      static_cast<unsigned>(std::min<std::size_t>(1024, (layout.most_group_positions + 255) / 256));

  const int columns = (layout.widest_positions + kCoarseColumns - 1) / kCoarseColumns;
  const int threads =
      std::clamp((columns + kWarpSize - 1) / kWarpSize * kWarpSize, kWarpSize, kMostScreenThreads);
  const int tile_width = threads * kCoarseColumns;
  const std::size_t row_bytes =
      sizeof(float) * (static_cast<std::size_t>(layout.widest_template) * kCoarseBand +
                       static_cast<std::size_t>(tile_width + layout.widest_template));
  const auto shared = static_cast<std::size_t>(device.properties().max_shared_bytes_per_block);
  // Two blocks a multiprocessor at least.
  p.chunk_rows = static_cast<int>(
      std::clamp<std::size_t>(shared / 2 / row_bytes, 1, static_cast<std::size_t>(kMostChunkRows)));
  if (static_cast<std::size_t>(p.chunk_rows) * row_bytes > shared) {
    return fail(ErrorCode::kUnsupported,
                "a pattern is " + std::to_string(layout.widest_template) +
                    " pixels wide at the coarsest level, more than this GPU's shared memory of " +
                    std::to_string(shared) + " bytes allows; search it with more levels");
  }
  const int across = (layout.widest_positions + tile_width - 1) / tile_width;
  const int down = (layout.most_rows + kCoarseBand - 1) / kCoarseBand;
  screen_shape_.block_x = static_cast<unsigned>(threads);
  screen_shape_.grid_x = static_cast<unsigned>(p.plane_count);
  screen_shape_.grid_y = static_cast<unsigned>(across * down);
  screen_shape_.shared_bytes =
      static_cast<unsigned>(p.chunk_rows) * static_cast<unsigned>(row_bytes);

  list_shape_.grid_x = static_cast<unsigned>(2 * device.properties().multiprocessors);
  list_shape_.block_x = 256;
  return {};
}

Result<void> CoarseStage::enqueue_search(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (auto ok = stream.fill(static_cast<DevicePointer>(p.counters), 0, counter_bytes_); !ok)
    return ok;
  if (auto ok = stream.launch(prepare_, prepare_shape_, p); !ok) return ok;
  if (auto ok = stream.launch(bound_, bound_shape_, p); !ok) return ok;
  if (auto ok = stream.launch(screen_, screen_shape_, p); !ok) return ok;
  Shape warps = list_shape_;
  warps.block_x = kWarpSize;
  warps.block_y = 8;
  return stream.launch(score_, warps, p);
}

Result<void> CoarseStage::enqueue_suppression(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (auto ok = stream.launch(peaks_, list_shape_, p); !ok) return ok;
  Shape planes;
  planes.block_x = 256;
  planes.grid_x = static_cast<unsigned>(p.plane_count);
  if (auto ok = stream.launch(trim_, planes, p); !ok) return ok;
  Shape warps;
  warps.block_x = kWarpSize;
  warps.block_y = 8;
  warps.grid_x = (static_cast<unsigned>(p.plane_count) + 7) / 8;
  if (auto ok = stream.launch(across_, warps, p); !ok) return ok;
  Shape searches;
  searches.block_x = 256;
  searches.grid_x = static_cast<unsigned>(p.search_count);
  return stream.launch(select_, searches, p);
}

}  // namespace patternd::cuda
