#include "cuda/blob_stage.h"

#include <utility>

#include "pipeline/blob_stage.h"
#include "pipeline/frame_checks.h"

namespace patternd::cuda {

Result<BlobReference> BlobReference::create(const std::shared_ptr<const Device>& device,
                                            const ProcessorConfig& config, ThreadPool* pool) {
  BlobReference reference;
  if (!config.blobs || config.blobs->reference == BlobParams::Reference::kOff) return reference;
  reference.kind_ = config.blobs->reference;
  const auto& plane = config.calibration;
  auto picture = DevicePicture::create(device, plane ? plane->output_width() : config.width,
                                       plane ? plane->output_height() : config.height,
                                       luma_format(config.format));
  if (!picture) return tl::make_unexpected(picture.error());
  reference.picture_ = std::move(*picture);
  if (auto ok = reference.fill(device, config, pool); !ok) return tl::make_unexpected(ok.error());
  return reference;
}

Result<void> BlobReference::fill(const std::shared_ptr<const Device>& device,
                                 const ProcessorConfig& config, ThreadPool* pool) {
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  const DeviceView& to = view();
  const std::size_t bytes =
      static_cast<std::size_t>(to.stride_bytes) * static_cast<std::size_t>(to.height);
  if (auto ok = stream->fill(static_cast<DevicePointer>(to.address), 0, bytes); !ok) return ok;
  if (is_frame_before()) return stream->wait();
  const auto dark = searched_dark_frame(config, pool);
  if (!dark) return tl::make_unexpected(dark.error());
  if (auto ok = check_dark_frame(dark->view(), to.width, to.height, to.format); !ok) return ok;
  if (auto ok = upload(*stream, dark->view(), to); !ok) return ok;
  return stream->wait();
}

Result<GpuBlobStage> GpuBlobStage::create(const std::shared_ptr<const Device>& device,
                                          const DeviceView& picture, const BlobParams& params,
                                          const BlobReference& reference) {
  ComponentsOptions options;
  options.most = kCapacity;
  auto components = ComponentsStage::create(device, picture.width, picture.height, picture.format,
                                            params, options);
  if (!components) return tl::make_unexpected(components.error());
  GpuBlobStage stage(std::move(*components), picture);
  if (reference.kind() == BlobParams::Reference::kOff) return stage;
  auto kernel = device->kernel("patternd_blobs_subtract");
  if (!kernel) return tl::make_unexpected(kernel.error());
  stage.subtract_ = *kernel;
  auto difference = DevicePicture::create(device, picture.width, picture.height, picture.format);
  if (!difference) return tl::make_unexpected(difference.error());
  stage.difference_ = std::move(*difference);
  stage.labelled_ = stage.difference_.view();
  SubtractParameters& p = stage.parameters_;
  p.picture = picture.address;
  p.reference = reference.view().address;
  p.difference = stage.labelled_.address;
  p.picture_stride_bytes = picture.stride_bytes;
  p.reference_stride_bytes = reference.view().stride_bytes;
  p.difference_stride_bytes = stage.labelled_.stride_bytes;
  p.width = picture.width;
  p.height = picture.height;
  p.deep = picture.format == PixelFormat::kGray16 ? 1 : 0;
  p.keep = reference.is_frame_before() ? 1 : 0;
  return stage;
}

Result<void> GpuBlobStage::enqueue(const Stream& stream) {
  if (subtract_) {
    Shape shape;
    shape.grid_x =
        static_cast<unsigned>((parameters_.width + kSubtractColumns - 1) / kSubtractColumns);
    shape.grid_y = static_cast<unsigned>(parameters_.height);
    shape.block_x = kSubtractThreads;
    if (auto ok = stream.launch(*subtract_, shape, parameters_); !ok) return ok;
  }
  if (auto ok = components_.enqueue(stream, labelled_); !ok) return ok;
  return components_.enqueue_download(stream);
}

}  // namespace patternd::cuda
