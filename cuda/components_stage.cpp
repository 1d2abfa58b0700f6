#include "cuda/components_stage.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "cuda/components_sums.h"
#include "pipeline/components_threshold.h"

namespace patternd::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
// Enough blocks that merge to fill a GPU; each takes several turns where there is more.
constexpr int kMergeBlocks = 1024;
constexpr unsigned kHistogramBlocks = 256;

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
  auto region = components::region_of(params, width, height);
  if (!region) return tl::make_unexpected(region.error());
  ComponentsStage stage;
  stage.device_ = device;
  stage.params_ = params;
  stage.width_ = width;
  stage.height_ = height;
  stage.region_ = *region;
  stage.format_ = format;
  stage.write_labels_ = options.labels;
  if (auto ok = stage.find_kernels(); !ok) return tl::make_unexpected(ok.error());
  stage.shape_launches();
  if (auto ok = stage.allocate(options); !ok) return tl::make_unexpected(ok.error());
  return stage;
}

Result<void> ComponentsStage::find_kernels() {
  constexpr std::array<const char*, kSteps> kNames = {
      "patternd_components_histogram", "patternd_components_otsu",   "patternd_components_columns",
      "patternd_components_adaptive",  "patternd_components_tiles",  "patternd_components_seams",
      "patternd_components_number",    "patternd_components_finish", "patternd_similar_rows",
      "patternd_similar_join",         "patternd_similar_number",    "patternd_similar_finish"};
  for (std::size_t i = 0; i < kSteps; ++i) {
    auto kernel = device_->kernel(kNames[i]);
    if (!kernel) return tl::make_unexpected(kernel.error());
    kernels_[i] = *kernel;
  }
  return {};
}

void ComponentsStage::shape_launches() {
  const int words = (region_.width + 31) / 32;
  const std::int64_t count = static_cast<std::int64_t>(words) * region_.height;
  for (Shape& shape : shapes_) shape.grid_x = 0;
  const auto line = [](unsigned blocks, int threads) {
    Shape shape;
    shape.grid_x = blocks;
    shape.block_x = static_cast<unsigned>(threads);
    return shape;
  };
  if (params_.mode == BlobParams::Mode::kOtsu) {
    shapes_[kHistogram] =
        line(std::min(kHistogramBlocks, static_cast<unsigned>(region_.height)), kForegroundThreads);
    shapes_[kOtsu] = line(1, kForegroundThreads);
  } else if (params_.mode == BlobParams::Mode::kAdaptive) {
    shapes_[kColumns] = line(blocks_for(region_.width, kForegroundThreads), kForegroundThreads);
    shapes_[kColumns].grid_y = blocks_for(region_.height, kColumnRows);
    shapes_[kAdaptive] = line(static_cast<unsigned>(region_.height), kForegroundThreads);
  }
  if (params_.mode == BlobParams::Mode::kSimilarity) {
    shapes_[kSimilarRows] = shapes_[kSimilarJoin] =
        line(blocks_for(count, kNumberThreads / kWarpSize), kNumberThreads);
    shapes_[kSimilarNumber] = shapes_[kSimilarFinish] =
        line(blocks_for(count, kNumberThreads), kNumberThreads);
    return;
  }
  const unsigned across = blocks_for(words, kTileWords);
  const unsigned down = blocks_for(region_.height, kTileRows);
  shapes_[kTiles] = line(across, kTileThreads);
  shapes_[kTiles].grid_y = down;
  const std::int64_t seam_warps =
      static_cast<std::int64_t>(down - 1) * words +
      static_cast<std::int64_t>(across - 1) * blocks_for(region_.height, kWarpSize);
  shapes_[kSeams] = line(blocks_for(seam_warps, kSeamThreads / kWarpSize), kSeamThreads);
  shapes_[kNumber] = line(blocks_for(count, kNumberThreads), kNumberThreads);
  shapes_[kFinish] =
      line(kMergeBlocks + (write_labels_ ? blocks_for(count, kFinishThreads) : 0), kFinishThreads);
}

// Lays the tables out in scratch_; those that are to be zero before the first picture come first.
Result<void> ComponentsStage::allocate_scratch(std::size_t capacity) {
  ComponentsParameters& p = parameters_;
  ForegroundParameters& f = foreground_;
  const auto width = static_cast<std::size_t>(p.width);
  const auto height = static_cast<std::size_t>(p.height);
  const std::size_t words = static_cast<std::size_t>(p.words) * height;
  const bool otsu = params_.mode == BlobParams::Mode::kOtsu;
  const bool adaptive = params_.mode == BlobParams::Mode::kAdaptive;
  const bool similar = params_.mode == BlobParams::Mode::kSimilarity;
  const std::size_t parts = (words + kNumberThreads - 1) / kNumberThreads;
  const struct {
    Address& place;
    std::size_t bytes;
  } tables[] = {{p.listed, 4},
                {p.part_roots, 4 * parts},
                {f.histogram, otsu ? 4 * (static_cast<std::size_t>(f.max_value) + 1) : 0},
                {f.range, otsu ? 2 * sizeof(int) : 0},
                {p.bits, similar ? 0 : 4 * words},
                {p.local, similar ? 0 : 2 * words * kNodesPerWord},
                {p.parent, 4 * words * (similar ? 32 : kNodesPerWord)},
                {p.roots, similar ? 0 : 4 * words},
                {p.tiles, similar ? 0 : sizeof(TileComponent) * capacity},
                {f.columns, adaptive ? 4 * width * height : 0},
                {f.prefix, adaptive ? 8 * (width + 1) * height : 0}};
  constexpr std::size_t kZeroTables = 3;
  std::size_t bytes = 0;
  for (const auto& table : tables) bytes += aligned(table.bytes);
  auto scratch = DeviceBuffer::create(device_, bytes);
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  std::size_t at = 0;
  std::size_t zero_bytes = 0;
  for (std::size_t i = 0; i < std::size(tables); ++i) {
    if (i == kZeroTables) zero_bytes = at;
    tables[i].place = scratch_.address() + at;
    at += aligned(tables[i].bytes);
  }
  p.range = otsu ? f.range : 0;
  f.bits = p.bits;
  const std::vector<std::uint8_t> zeros(zero_bytes);
  return scratch_.write(device_, zeros.data(), zeros.size());
}

// Of the region's first pixel.
std::size_t ComponentsStage::offset_in_picture(int stride_bytes, std::size_t pixel_bytes) const {
  return static_cast<std::size_t>(region_.y) * static_cast<std::size_t>(stride_bytes) +
         static_cast<std::size_t>(region_.x) * pixel_bytes;
}

Result<void> ComponentsStage::allocate_results(std::size_t capacity) {
  auto results =
      DeviceBuffer::create(device_, sizeof(ComponentCounts) + capacity * sizeof(DeviceComponent));
  if (!results) return tl::make_unexpected(results.error());
  results_ = std::move(*results);
  parameters_.counts = results_.address();
  parameters_.components = parameters_.counts + sizeof(ComponentCounts);
  fetched_bytes_ =
      sizeof(ComponentCounts) + std::min<std::size_t>(capacity, kFetched) * sizeof(DeviceComponent);
  auto stream = Stream::create(device_);
  if (!stream) return tl::make_unexpected(stream.error());
  // The first components are fetched whether there are so many or not.
  if (auto ok = stream->fill(results_.pointer(), 0, fetched_bytes_); !ok) return ok;
  if (write_labels_)
    if (auto ok = allocate_labels(*stream); !ok) return ok;
  return stream->wait();
}

Result<void> ComponentsStage::allocate_labels(const Stream& stream) {
  auto labels = DevicePicture::create(device_, width_, height_, PixelFormat::kLabel32);
  if (!labels) return tl::make_unexpected(labels.error());
  labels_ = std::move(*labels);
  const DeviceView& view = labels_.view();
  parameters_.labels = view.address + offset_in_picture(view.stride_bytes, sizeof(std::int32_t));
  parameters_.labels_stride_bytes = view.stride_bytes;
  if (!params_.roi) return {};
  // Nothing else writes what lies outside the region.
  const std::size_t bytes =
      static_cast<std::size_t>(view.stride_bytes) * static_cast<std::size_t>(height_);
  return stream.fill(static_cast<DevicePointer>(view.address), 0, bytes);
}

Result<void> ComponentsStage::allocate_host(std::size_t capacity) {
  host_memory_ = std::make_unique<PageLockedFrameAllocator>(device_);
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

Result<void> ComponentsStage::allocate(const ComponentsOptions& options) {
  ComponentsParameters& p = parameters_;
  p.width = region_.width;
  p.height = region_.height;
  p.words = (region_.width + 31) / 32;
  p.deep = format_ == PixelFormat::kGray16 ? 1 : 0;
  p.eight = params_.connectivity == 8 ? 1 : 0;
  p.bits_given = params_.mode == BlobParams::Mode::kAdaptive ? 1 : 0;
  p.merge_blocks = kMergeBlocks;
  foreground_.offset = params_.adaptive_offset;
  foreground_.width = p.width;
  foreground_.height = p.height;
  foreground_.words = p.words;
  foreground_.radius = params_.adaptive_radius;
  foreground_.below = params_.below ? 1 : 0;
  foreground_.deep = p.deep;
  foreground_.max_value = p.deep != 0 ? 65535 : 255;
  const auto range =
      components::foreground_range(params_.threshold, params_.below, foreground_.max_value);
  p.low = range.low;
  p.high = range.high;
  const bool similar = params_.mode == BlobParams::Mode::kSimilarity;
  if (similar)
    p.high = static_cast<int>(std::min<double>(params_.similarity, foreground_.max_value));
  p.colour = format_ == PixelFormat::kRgb8 ? 1 : 0;
  const std::size_t nodes =
      static_cast<std::size_t>(p.words) * static_cast<std::size_t>(p.height) * kNodesPerWord;
  const std::size_t worst = nodes * (similar ? 2 : 1) / (!similar && p.eight != 0 ? 2 : 1) +
                            static_cast<std::size_t>(kNodesPerWord * p.words);
  const std::size_t capacity = options.capacity > 0
                                   ? static_cast<std::size_t>(options.capacity)
                                   : std::min(worst, static_cast<std::size_t>(options.most));
  p.capacity = static_cast<int>(capacity);
  Result<void> steps[] = {allocate_scratch(capacity), allocate_results(capacity),
                          allocate_host(capacity)};
  for (auto& step : steps)
    if (!step) return step;
  return {};
}

Result<void> ComponentsStage::enqueue(const Stream& stream, const DeviceView& picture) {
  if (picture.width != width_ || picture.height != height_ || picture.format != format_) {
    return fail(ErrorCode::kInvalidArgument,
                "components: picture is " + std::to_string(picture.width) + "x" +
                    std::to_string(picture.height) + " " + name_of(picture.format) + "; expected " +
                    std::to_string(width_) + "x" + std::to_string(height_) + " " +
                    name_of(format_));
  }
  ComponentsParameters p = parameters_;
  ForegroundParameters f = foreground_;
  p.picture = f.picture =
      picture.address + offset_in_picture(picture.stride_bytes, bytes_per_pixel(format_));
  p.picture_stride_bytes = f.picture_stride_bytes = picture.stride_bytes;
  for (std::size_t i = 0; i < kSteps; ++i) {
    if (shapes_[i].grid_x == 0) continue;  // another mode's; a picture of one tile has no seams
    Result<void> launched = i < kTiles ? stream.launch(kernels_[i], shapes_[i], f)
                                       : stream.launch(kernels_[i], shapes_[i], p);
    if (!launched) return launched;
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
Result<void> ComponentsStage::sum_up(std::size_t count) {
  const auto* const fetched =
      reinterpret_cast<const DeviceComponent*>(fetched_ + sizeof(ComponentCounts));
  const DeviceComponent* const from = count > kFetched ? rest_.data() : fetched;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_possible(from[i], region_.width, region_.height))
      return fail(ErrorCode::kDevice,
                  "components: the GPU gave sums that no picture has (component " +
                      std::to_string(i + 1) + " of " + std::to_string(count) +
                      "); label on the CPU, and tell us which GPU and driver");
    geometry_[i + 1] = geometry_of(from[i]);
    intensity_[i + 1] = intensity_of(from[i]);
    moments_[i + 1] = moments_of(from[i]);
  }
  return {};
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
  if (auto ok = sum_up(count); !ok) return ok;
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
