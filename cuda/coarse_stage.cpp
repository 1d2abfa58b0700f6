#include "cuda/coarse_stage.h"

#include <utility>

namespace patternd::cuda {
namespace {

constexpr std::size_t kPrefixBytes = 8;

// Of a group or a plane, with the rounding to whole blocks.
template <class Searched>
std::size_t positions_of(const Searched& searched) {
  return static_cast<std::size_t>(searched.blocks) * kCoarseBlock *
         static_cast<std::size_t>(searched.rows);
}

void lay_out_image(ScratchLayout& memory, const CoarsePlan::Reach& reach, CoarseImage& image) {
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

}  // namespace

Result<CoarseStage> CoarseStage::create(const std::shared_ptr<const Device>& device,
                                        std::shared_ptr<const CoarsePlan> plan,
                                        const std::vector<DeviceView>& levels,
                                        const StageClock& clock) {
  CoarseStage stage;
  stage.plan_ = std::move(plan);
  stage.parameters_ = stage.plan_->parameters;
  stage.parameters_.search_moment = clock.address_of(StageClock::kSearch);
  stage.parameters_.suppression_moment = clock.address_of(StageClock::kSuppression);
  Places places{stage.plan_->images, stage.plan_->groups, stage.plan_->planes};
  for (std::size_t i = 0; i < places.images.size(); ++i) {
    const DeviceView& level = levels[static_cast<std::size_t>(stage.plan_->levels[i])];
    places.images[i].pixels = level.address;
    places.images[i].stride_bytes = level.stride_bytes;
  }
  if (auto ok = stage.allocate(device, places); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.fill_places(device, places); !ok) return tl::make_unexpected(ok.error());
  return stage;
}

void CoarseStage::lay_out(ScratchLayout& memory, Places& places) {
  CoarseParameters& p = parameters_;
  const auto searches = static_cast<std::size_t>(p.search_count);
  const std::size_t planes = places.planes.size();
  p.counters = memory.take(sizeof(CoarseCounters));
  p.peak_counts = memory.take(planes * sizeof(unsigned));
  p.found_counts = memory.take(searches * sizeof(unsigned));
  p.selected_counts = memory.take(searches * sizeof(int));
  p.loser_counts = memory.take(searches * sizeof(int));
  p.counter_words = static_cast<int>(memory.size_bytes() / sizeof(unsigned));
  for (std::size_t i = 0; i < places.images.size() && !plan_->by_matrix_units; ++i)
    lay_out_image(memory, plan_->reaches[i], places.images[i]);
  for (CoarseGroup& group : places.groups)
    group.bounds = memory.take(sizeof(CoarseBound) * positions_of(group));
  for (CoarsePlane& plane : places.planes)
    plane.scores = memory.take(sizeof(float) * positions_of(plane));
  p.looks = memory.take(p.look_capacity * sizeof(CoarseLook));
  p.positions = memory.take(p.position_capacity * sizeof(CoarsePosition));
  p.peaks = memory.take(planes * kPeakCapacity * sizeof(CoarsePeak));
  p.found = memory.take(searches * kFoundCapacity * sizeof(CoarseFound));
  p.selected =
      memory.take(searches * static_cast<std::size_t>(p.select_limit) * sizeof(TracedCandidate));
}

// Zeros are what is around the pictures, and maps without a score.
Result<void> CoarseStage::allocate(const std::shared_ptr<const Device>& device, Places& places) {
  auto scratch = allocate_scratch(device, [&](ScratchLayout& memory) { lay_out(memory, places); });
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  return {};
}

Result<void> CoarseStage::fill_places(const std::shared_ptr<const Device>& device,
                                      const Places& places) {
  auto filled = fill_arena(device, [&](Arena& arena) {
    parameters_.images = arena.put(places.images);
    parameters_.groups = arena.put(places.groups);
    parameters_.planes = arena.put(places.planes);
  });
  if (!filled) return tl::make_unexpected(filled.error());
  places_ = std::move(*filled);
  return {};
}

Result<void> CoarseStage::enqueue_search(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (plan_->by_matrix_units) return stream.launch(plan_->score, plan_->score_shape, p);
  if (auto ok = stream.launch(plan_->prepare, plan_->prepare_shape, p); !ok) return ok;
  if (auto ok = stream.launch(plan_->bound, plan_->bound_shape, p); !ok) return ok;
  if (auto ok = stream.launch(plan_->search, plan_->search_shape, p); !ok) return ok;
  return stream.launch(plan_->judge, plan_->judge_shape, p);
}

Result<void> CoarseStage::enqueue_suppression(const Stream& stream) const {
  const CoarseParameters& p = parameters_;
  if (auto ok = stream.launch_early(plan_->peaks, plan_->list_shape, p); !ok) return ok;
  if (auto ok = stream.launch_early(plan_->across, plan_->planes_shape, p); !ok) return ok;
  return stream.launch_early(plan_->select, plan_->select_shape, p);
}

}  // namespace patternd::cuda
