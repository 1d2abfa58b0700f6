#include "cuda/luma_stage.h"

#include <cstring>
#include <utility>

#include "pipeline/frame_luma.h"

namespace patternd::cuda {
namespace {

// Frames of a source that lie in different places, and as many again of the source before it.
constexpr std::size_t kMostFrameTextures = 32;

ConvertParameters conversion_of(const ProcessorConfig& config) {
  ConvertParameters p{};
  p.width = config.width;
  p.height = config.height;
  p.shift = bits_below_full_scale(config.format);
  p.wide_output = luma_format(config.format) == PixelFormat::kGray16 ? 1 : 0;
  p.mask = p.wide_output != 0 ? (1U << (16 - p.shift)) - 1 : 0xFFU;
  if (config.format == RawFormat::kYuyv || config.format == RawFormat::kUyvy) {
    p.kind = kConvertPacked;
    p.first = config.format == RawFormat::kUyvy ? 1 : 0;
  } else if (config.format == RawFormat::kY10 || config.format == RawFormat::kY12) {
    p.kind = kConvertShifted;
  } else if (config.format == RawFormat::kRgb3 || config.format == RawFormat::kBgr3) {
    p.kind = kConvertColour;
    p.first = config.format == RawFormat::kBgr3 ? 1 : 0;
  } else {
    p.kind = kConvertMosaic;
    for (int site = 0; site < 4; ++site) {
      const BayerWeights w = bayer_weights(config.bayer, site & 1, site >> 1);
      p.sites[site] = {w.centre, w.horizontal, w.vertical, w.diagonal};
    }
  }
  return p;
}

}  // namespace

Result<LumaStage> LumaStage::create(const std::shared_ptr<const Device>& device, MemoryMode mode,
                                    const ProcessorConfig& config,
                                    std::shared_ptr<const LumaPlan> plan) {
  LumaStage stage;
  stage.plan_ = std::move(plan);
  // Read in place, a frame would be all later stages' picture, and its place is known to a graph.
  stage.reads_in_place_ = mode != MemoryMode::kCopy &&
                          (!has_luma_plane(config.format) || stage.plan_->rectify.has_value());
  if (auto ok = stage.create_input(device, mode, config); !ok)
    return tl::make_unexpected(ok.error());
  if (stage.plan_->converts) {
    if (auto ok = stage.create_conversion(device, config); !ok)
      return tl::make_unexpected(ok.error());
  }
  if (stage.plan_->rectify) {
    if (auto ok = stage.create_rectified(device); !ok) return tl::make_unexpected(ok.error());
  }
  return stage;
}

Result<void> LumaStage::create_input(const std::shared_ptr<const Device>& device, MemoryMode mode,
                                     const ProcessorConfig& config) {
  device_ = device;
  mode_ = mode;
  row_bytes_ = min_stride_bytes(config.format, config.width);
  const std::size_t stride = aligned_stride(device->properties(), row_bytes_);
  const std::size_t bytes = stride * static_cast<std::size_t>(config.height);
  input_.width = config.width;
  input_.height = config.height;
  input_.stride_bytes = static_cast<int>(stride);
  input_.format = luma_format(config.format);
  if (!reads_in_place_) {
    auto memory = DeviceBuffer::create(device, bytes);
    if (!memory) return tl::make_unexpected(memory.error());
    device_input_ = std::move(*memory);
    input_.address = device_input_.address();
  } else {
    auto memory = SharedBuffer::create(device, mode, bytes);
    if (!memory) return tl::make_unexpected(memory.error());
    shared_input_ = std::move(*memory);
    input_.address = shared_input_.device();
    frame_textures_.reserve(kMostFrameTextures);
  }
  own_.address = input_.address;
  own_.stride_bytes = input_.stride_bytes;
  picture_ = input_;
  return {};
}

Result<void> LumaStage::create_conversion(const std::shared_ptr<const Device>& device,
                                          const ProcessorConfig& config) {
  auto luma =
      DevicePicture::create(device, config.width, config.height, luma_format(config.format));
  if (!luma) return tl::make_unexpected(luma.error());
  luma_ = std::move(*luma);
  auto kernel = device->kernel("patternd_convert_luma");
  if (!kernel) return tl::make_unexpected(kernel.error());
  convert_ = *kernel;
  conversion_ = conversion_of(config);
  conversion_.output = luma_->view().address;
  conversion_.output_stride = luma_->view().stride_bytes;
  picture_ = luma_->view();
  return {};
}

Result<void> LumaStage::create_rectified(const std::shared_ptr<const Device>& device) {
  const DeviceView from = picture_;
  auto texture = texture_over(from.address, static_cast<std::size_t>(from.stride_bytes));
  if (!texture) return tl::make_unexpected(texture.error());
  texture_ = std::move(*texture);
  own_.texture = texture_->get();
  auto rectified = DevicePicture::create(device, plan_->width, plan_->height, plan_->format);
  if (!rectified) return tl::make_unexpected(rectified.error());
  rectified_ = std::move(*rectified);
  picture_ = rectified_->view();
  return {};
}

Result<Texture> LumaStage::texture_over(Address address, std::size_t stride_bytes) const {
  return Texture::create(device_, address, input_.width, input_.height, stride_bytes, input_.format,
                         plan_->texture_channels, FilterMode::kPoint);
}

Result<FrameOnDevice> LumaStage::upload_frame(const Stream& stream, const RawImageView& frame) {
  Result<void> done;
  if (!reads_in_place_) {
    done = copy_by_device(stream, frame);
    return done ? Result<FrameOnDevice>(own_) : tl::make_unexpected(done.error());
  }
  if (auto in_place = find_in_place(frame)) {
    done = attach(stream, *in_place, kManagedAttachSingle);
    return done ? Result<FrameOnDevice>(*in_place) : tl::make_unexpected(done.error());
  }
  copy_by_host(frame);
  done = shared_input_.upload(stream, shared_input_.size_bytes());
  FrameOnDevice copied = own_;
  copied.copied_by_host = true;
  return done ? Result<FrameOnDevice>(copied) : tl::make_unexpected(done.error());
}

// Nothing where the frame is not in the device's reach, or not as a texture must be.
std::optional<FrameOnDevice> LumaStage::find_in_place(const RawImageView& frame) {
  const std::size_t bytes =
      frame.stride_bytes * static_cast<std::size_t>(frame.height - 1) + row_bytes_;
  const auto range = device_->reachable().find(frame.data, bytes);
  if (!range) return std::nullopt;
  FrameOnDevice found;
  found.address = range->device + static_cast<Address>(frame.data - range->host);
  found.stride_bytes = static_cast<int>(frame.stride_bytes);
  if (mode_ == MemoryMode::kManaged && !device_->properties().concurrent_managed_access)
    found.attached = static_cast<DevicePointer>(range->device);
  if (convert_ || !plan_->rectify) return found;
  found.texture = frame_texture(found.address, frame.stride_bytes);
  return found.texture != 0 ? std::optional<FrameOnDevice>(found) : std::nullopt;
}

// A source has a few places for its frames: each gets its texture when its first frame comes.
Address LumaStage::frame_texture(Address address, std::size_t stride_bytes) {
  for (const FrameTexture& known : frame_textures_) {
    if (known.address == address && known.stride_bytes == stride_bytes) return known.texture.get();
  }
  // Those of sources that have gone since.
  if (frame_textures_.size() == kMostFrameTextures) frame_textures_.clear();
  auto texture = texture_over(address, stride_bytes);
  if (!texture) return 0;
  frame_textures_.push_back({address, stride_bytes, std::move(*texture)});
  return frame_textures_.back().texture.get();
}

// Where host and GPU may not use managed memory at once, whose turn it is.
Result<void> LumaStage::attach(const Stream& stream, const FrameOnDevice& frame, unsigned to) {
  if (frame.attached == 0) return {};
  const Driver& api = stream.device()->driver();
  return api.check(api.stream_attach_mem_async(stream.get(), frame.attached, 0, to),
                   "cuStreamAttachMemAsync of a frame");
}

void LumaStage::copy_by_host(const RawImageView& frame) const {
  const auto stride = static_cast<std::size_t>(input_.stride_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(frame.height); ++y) {
    std::memcpy(shared_input_.host() + y * stride, frame.data + y * frame.stride_bytes, row_bytes_);
  }
}

Result<void> LumaStage::copy_by_device(const Stream& stream, const RawImageView& frame) const {
  const Driver& api = stream.device()->driver();
  const auto stride = static_cast<std::size_t>(input_.stride_bytes);
  if (frame.stride_bytes == stride) {
    return api.check(
        api.memcpy_h2d_async(device_input_.pointer(), frame.data,
                             stride * static_cast<std::size_t>(frame.height - 1) + row_bytes_,
                             stream.get()),
        "cuMemcpyHtoDAsync of a frame");
  }
  Copy2d copy;
  copy.src_type = MemoryType::kHost;
  copy.src_host = frame.data;
  copy.src_pitch = frame.stride_bytes;
  copy.dst_device = device_input_.pointer();
  copy.dst_pitch = stride;
  copy.width_bytes = row_bytes_;
  copy.height = static_cast<std::size_t>(frame.height);
  return api.check(api.memcpy_2d_async(&copy, stream.get()), "cuMemcpy2DAsync of a frame");
}

Result<void> LumaStage::enqueue(const Stream& stream, const FrameOnDevice& frame) const {
  if (convert_) {
    ConvertParameters conversion = conversion_;
    conversion.input = frame.address;
    conversion.input_stride = frame.stride_bytes;
    Shape shape;
    shape.block_x = kWarpSize;
    shape.block_y = 8;
    shape.grid_x = static_cast<unsigned>((conversion.width + kWarpSize - 1) / kWarpSize);
    shape.grid_y = static_cast<unsigned>((conversion.height + 7) / 8);
    if (auto ok = stream.launch(*convert_, shape, conversion); !ok) return ok;
  }
  if (plan_->rectify) {
    // What has been converted lies where it always does.
    const Address source = convert_ ? texture_->get() : frame.texture;
    if (auto ok = plan_->rectify->enqueue(stream, source, rectified_->view()); !ok) return ok;
  }
  return attach(stream, frame, kManagedAttachHost);
}

}  // namespace patternd::cuda
