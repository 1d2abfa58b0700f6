// Connected components on the GPU; the method is in kernels/components.cu.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/components.h"
#include "pipeline/components_memory.h"
#include "pipeline/components_selection.h"

namespace patternd::cuda {

struct ComponentsOptions {
  bool labels = false;  // a picture of labels is wanted
  // Components that there is memory for, counted within tiles of 128×64 pixels too; 0: as many as a
  // picture can have, `most` at most.
  int capacity = 0;
  int most = 1 << 20;
};

// Finds the components of one picture after another; the results are the CPU's to the bit.
//   stage->enqueue(stream, picture);
//   stage->enqueue_download(stream);
//   … the stream has passed this …
//   stage->collect(stream, blobs, total);
class ComponentsStage {
 public:
  // For pictures of this size; formats and errors as ComponentLabeller::create, and kUnsupported
  // for what the CPU alone does (filters on labels).
  [[nodiscard]] static Result<ComponentsStage> create(const std::shared_ptr<const Device>& device,
                                                      int width, int height, PixelFormat format,
                                                      const BlobParams& params,
                                                      const ComponentsOptions& options);
  // Enqueues all launches.
  [[nodiscard]] Result<void> enqueue(const Stream& stream, const DeviceView& picture);
  // Enqueues the copy of the count and of the first kFetched components.
  [[nodiscard]] Result<void> enqueue_download(const Stream& stream) const;
  // After the download: the largest, and how many passed the filters. Where there were more than
  // kFetched, copies the rest and waits. kExhausted where the cap was passed, kDevice where the GPU
  // gave what cannot be.
  [[nodiscard]] Result<void> collect(const Stream& stream, std::vector<Blob>& blobs,
                                     std::uint64_t& total);
  // One of the components last collected, by its label; not with filters, which renumber.
  [[nodiscard]] Blob blob(std::int64_t label) const;
  // The labels of the last picture (kLabel32), in device memory.
  [[nodiscard]] const DeviceView& labels() const { return labels_.view(); }

  static constexpr int kFetched = 4096;

 private:
  [[nodiscard]] Result<void> find_kernels();
  void shape_launches();
  [[nodiscard]] Result<void> allocate(const ComponentsOptions& options);
  [[nodiscard]] Result<void> allocate_scratch(std::size_t capacity);
  [[nodiscard]] Result<void> allocate_results(std::size_t capacity);
  [[nodiscard]] Result<void> allocate_labels(const Stream& stream);
  [[nodiscard]] Result<void> allocate_host(std::size_t capacity);
  [[nodiscard]] Result<void> fetch_rest(const Stream& stream, std::size_t count);
  [[nodiscard]] Result<void> sum_up(std::size_t count);
  [[nodiscard]] components::Sums sums_of_all() const;

  [[nodiscard]] std::size_t offset_in_picture(int stride_bytes, std::size_t pixel_bytes) const;

  // In launch order; those before kTiles make foreground.
  enum Step : std::size_t {
    kHistogram,
    kOtsu,
    kColumns,
    kAdaptive,
    kTiles,
    kSeams,
    kNumber,
    kFinish,
    kSimilarRows,  // similarity: in place of all before
    kSimilarJoin,
    kSimilarNumber,
    kSimilarFinish,
    kSteps
  };

  std::shared_ptr<const Device> device_;
  BlobParams params_;
  int width_ = 0;
  int height_ = 0;
  components::Region region_;
  PixelFormat format_ = PixelFormat::kGray8;
  bool write_labels_ = false;
  std::array<Kernel, kSteps> kernels_;
  std::array<Shape, kSteps> shapes_;
  ComponentsParameters parameters_{};
  ForegroundParameters foreground_{};
  DeviceBuffer scratch_;
  DeviceBuffer results_;  // ComponentCounts, then DeviceComponent[capacity]
  DevicePicture labels_;
  std::unique_ptr<PageLockedFrameAllocator> host_memory_;
  std::uint8_t* fetched_ = nullptr;  // counts and kFetched components at most, page-locked
  std::size_t fetched_bytes_ = 0;
  components::ReservedArray<DeviceComponent> rest_;
  components::ReservedArray<components::Geometry> geometry_;
  components::ReservedArray<components::Intensity> intensity_;
  components::ReservedArray<components::Moments> moments_;
  std::vector<std::int64_t> order_;
};

}  // namespace patternd::cuda
