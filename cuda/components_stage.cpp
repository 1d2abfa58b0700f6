#include "cuda/components_stage.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cuda/components_sums.h"
#include "pipeline/components_threshold.h"

namespace patternd::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
// Enough blocks of the merge kernel to fill a GPU; each takes several turns where there is more.
constexpr unsigned kMergeBlocks = 1024;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

unsigned blocks_for(std::int64_t items, int of_a_block) {
  return static_cast<unsigned>((items + of_a_block - 1) / of_a_block);
}

// What the CPU checks, and what it alone does.
Result<void> check(int width, int height, PixelFormat format, const BlobParams& params) {
  LabelOptions options;
  options.intensity = options.moments = false;
  auto cpu = ComponentLabeller::create(width, height, format, params, options);
  if (!cpu) return tl::make_unexpected(cpu.error());
  if (params.mode != BlobParams::Mode::kThreshold)
    return fail(ErrorCode::kUnsupported,
                "components: the GPU labels by a fixed threshold; Otsu's, the adaptive one and "
                "similarity run on the CPU");
  if (params.roi) return fail(ErrorCode::kUnsupported, "components: an roi is labelled on the CPU");
  return {};
}

template <class T>
Result<void> reserve(components::ReservedArray<T>& array, std::uint64_t count) {
  auto made = components::ReservedArray<T>::create(count);
  if (!made) return tl::make_unexpected(made.error());
  array = std::move(*made);
  return {};
}

}  // namespace

Result<ComponentsStage> ComponentsStage::create(const std::shared_ptr<const Device>& device,
                                                int width, int height, PixelFormat format,
                                                const BlobParams& params,
                                                const ComponentsOptions& options) {
  if (auto ok = check(width, height, format, params); !ok) return tl::make_unexpected(ok.error());
  if (options.labels && components::has_filters(params))
    return fail(ErrorCode::kUnsupported,
                "components: labels without the filtered components are made on the CPU");
  ComponentsStage stage;
  stage.device_ = device;
  stage.params_ = params;
  stage.region_ = {0, 0, width, height};
  stage.format_ = format;
  stage.write_labels_ = options.labels;
  if (auto ok = stage.find_kernels(); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.allocate(options); !ok) return tl::make_unexpected(ok.error());
  return stage;
}

Result<void> ComponentsStage::find_kernels() {
  constexpr std::array<const char*, kSteps> kNames = {
      "patternd_components_tiles",  "patternd_components_seams", "patternd_components_count",
      "patternd_components_number", "patternd_components_merge", "patternd_components_write"};
  for (std::size_t i = 0; i < kSteps; ++i) {
    auto kernel = device_->kernel(kNames[i]);
    if (!kernel) return tl::make_unexpected(kernel.error());
    kernels_[i] = *kernel;
  }
  const int words = (region_.width + 31) / 32;
  const std::int64_t count = static_cast<std::int64_t>(words) * region_.height;
  const auto line = [](unsigned blocks, int threads) {
    Shape shape;
    shape.grid_x = blocks;
    shape.block_x = static_cast<unsigned>(threads);
    return shape;
  };
  shapes_[kTiles] = line(blocks_for(words, kTileWords), kTileThreads);
  shapes_[kTiles].grid_y = blocks_for(region_.height, kTileRows);
  shapes_[kSeams] = line(blocks_for(count, kScanThreads), kScanThreads);
  shapes_[kCount] = shapes_[kNumber] = line(blocks_for(count, kScanWords), kScanThreads);
  shapes_[kMerge] = line(kMergeBlocks, kMergeThreads);
  shapes_[kWrite] = line(blocks_for(count, kWriteThreads), kWriteThreads);
  return {};
}

Result<void> ComponentsStage::allocate(const ComponentsOptions& options) {
  const auto words = static_cast<std::size_t>((region_.width + 31) / 32);
  const std::size_t count = words * static_cast<std::size_t>(region_.height);
  const std::size_t worst =
      count * kNodesPerWord / (params_.connectivity == 8 ? 2 : 1) + kNodesPerWord * words;
  const std::size_t capacity = options.capacity > 0
                                   ? static_cast<std::size_t>(options.capacity)
                                   : std::min<std::size_t>(worst, kDefaultComponentCap);
  const std::size_t sizes[] = {4 * count, 4 * count * kNodesPerWord, 4 * count,
                               sizeof(TileComponent) * capacity, 4 * shapes_[kCount].grid_x};
  std::size_t bytes = 0;
  for (const std::size_t size : sizes) bytes += aligned(size);
  auto scratch = DeviceBuffer::create(device_, bytes);
  if (!scratch) return tl::make_unexpected(scratch.error());
  auto results =
      DeviceBuffer::create(device_, sizeof(ComponentCounts) + capacity * sizeof(DeviceComponent));
  if (!results) return tl::make_unexpected(results.error());
  scratch_ = std::move(*scratch);
  results_ = std::move(*results);
  if (write_labels_) {
    auto labels =
        DevicePicture::create(device_, region_.width, region_.height, PixelFormat::kLabel32);
    if (!labels) return tl::make_unexpected(labels.error());
    labels_ = std::move(*labels);
  }
  ComponentsParameters& p = parameters_;
  Address* const places[] = {&p.bits, &p.parent, &p.roots, &p.tiles, &p.block_counts};
  Address at = scratch_.address();
  for (std::size_t i = 0; i < 5; at += aligned(sizes[i]), ++i) *places[i] = at;
  p.counts = results_.address();
  p.components = p.counts + sizeof(ComponentCounts);
  p.labels = write_labels_ ? labels_.view().address : 0;
  p.labels_stride_bytes = write_labels_ ? labels_.view().stride_bytes : 0;
  p.width = region_.width;
  p.height = region_.height;
  p.words = static_cast<int>(words);
  p.capacity = static_cast<int>(capacity);
  p.deep = format_ == PixelFormat::kGray16 ? 1 : 0;
  p.eight = params_.connectivity == 8 ? 1 : 0;
  const auto range =
      components::foreground_range(params_.threshold, params_.below, p.deep != 0 ? 65535 : 255);
  p.low = range.low;
  p.high = range.high;

  host_memory_ = std::make_unique<PageLockedFrameAllocator>(device_);
  fetched_bytes_ =
      sizeof(ComponentCounts) + std::min<std::size_t>(capacity, kFetched) * sizeof(DeviceComponent);
  auto fetched = host_memory_->allocate(fetched_bytes_);
  if (!fetched) return tl::make_unexpected(fetched.error());
  fetched_ = *fetched;
  order_.reserve(static_cast<std::size_t>(params_.max_blobs));
  Result<void> steps[] = {reserve(rest_, capacity), reserve(geometry_, capacity + 1),
                          reserve(intensity_, capacity + 1), reserve(moments_, capacity + 1)};
  for (auto& step : steps)
    if (!step) return step;
  return {};
}

Result<void> ComponentsStage::enqueue(const Stream& stream, const DeviceView& picture) {
  if (picture.width != region_.width || picture.height != region_.height ||
      picture.format != format_) {
    return fail(ErrorCode::kInvalidArgument,
                "components: picture is " + std::to_string(picture.width) + "x" +
                    std::to_string(picture.height) + " " + name_of(picture.format) + "; expected " +
                    std::to_string(region_.width) + "x" + std::to_string(region_.height) + " " +
                    name_of(format_));
  }
  ComponentsParameters p = parameters_;
  p.picture = picture.address;
  p.picture_stride_bytes = picture.stride_bytes;
  if (auto ok = stream.fill(results_.pointer(), 0, sizeof(ComponentCounts)); !ok) return ok;
  for (std::size_t i = 0; i < kSteps; ++i) {
    if (i == kWrite && !write_labels_) continue;
    if (auto ok = stream.launch(kernels_[i], shapes_[i], p); !ok) return ok;
  }
  return {};
}

Result<void> ComponentsStage::enqueue_download(const Stream& stream) const {
  const Driver& api = device_->driver();
  return api.check(api.memcpy_d2h_async(fetched_, results_.pointer(), fetched_bytes_, stream.get()),
                   "cuMemcpyDtoHAsync of components");
}

Result<void> ComponentsStage::fetch_rest(const Stream& stream, std::size_t count) {
  const Driver& api = device_->driver();
  const auto from = static_cast<DevicePointer>(parameters_.components);
  if (auto ok = api.check(
          api.memcpy_d2h_async(rest_.data(), from, count * sizeof(DeviceComponent), stream.get()),
          "cuMemcpyDtoHAsync of all components");
      !ok)
    return ok;
  return stream.wait();
}

// Puts the sums of those that pass the filters into geometry_, intensity_ and moments_, from 1.
void ComponentsStage::sum_up(std::size_t count) {
  const auto* const fetched =
      reinterpret_cast<const DeviceComponent*>(fetched_ + sizeof(ComponentCounts));
  const DeviceComponent* const from = count > kFetched ? rest_.data() : fetched;
  for (std::size_t i = 0; i < count; ++i) {
    geometry_[i + 1] = geometry_of(from[i]);
    intensity_[i + 1] = intensity_of(from[i]);
    moments_[i + 1] = moments_of(from[i]);
  }
}

Result<void> ComponentsStage::collect(const Stream& stream, std::vector<Blob>& blobs,
                                      std::uint64_t& total) {
  const auto& counts = *reinterpret_cast<const ComponentCounts*>(fetched_);
  const auto capacity = static_cast<std::uint32_t>(parameters_.capacity);
  if (counts.tile_components > capacity || counts.components > capacity) {
    return fail(ErrorCode::kExhausted,
                "components: the picture has " + std::to_string(counts.components) + " (and " +
                    std::to_string(counts.tile_components) +
                    " within tiles); the GPU has memory for " + std::to_string(capacity) +
                    "; raise the threshold, or label on the CPU");
  }
  const std::size_t count = counts.components;
  if (count > kFetched)
    if (auto ok = fetch_rest(stream, count); !ok) return ok;
  sum_up(count);
  const components::Sums sums = sums_of_all();
  std::int64_t kept = static_cast<std::int64_t>(count);
  if (components::has_filters(params_)) {
    kept = 0;
    for (std::size_t label = 1; label <= count; ++label) {
      if (!components::passes(components::blob_of(sums, static_cast<std::int64_t>(label)), params_))
        continue;
      const auto to = static_cast<std::size_t>(++kept);
      geometry_[to] = geometry_[label];
      intensity_[to] = intensity_[label];
      moments_[to] = moments_[label];
    }
  }
  total = static_cast<std::uint64_t>(kept);
  components::select_largest(sums, kept, params_, order_, blobs);
  return {};
}

components::Sums ComponentsStage::sums_of_all() const {
  return {geometry_.data(), intensity_.data(), moments_.data(), region_};
}

Blob ComponentsStage::blob(std::int64_t label) const {
  return components::blob_of(sums_of_all(), label);
}

}  // namespace patternd::cuda
