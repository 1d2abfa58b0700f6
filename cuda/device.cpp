#include "cuda/device.h"

#include "cuda/device_image.h"
#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

const char* name_of(MemoryMode mode) {
  switch (mode) {
    case MemoryMode::kCopy:
      return "copy";
    case MemoryMode::kMapped:
      return "mapped";
    case MemoryMode::kManaged:
      return "managed";
  }
  return "unknown";
}

Result<MemoryMode> memory_mode_for(const DeviceProperties& properties, const std::string& wanted,
                                   const std::string& name) {
  const auto lacks = [&](const char* what) {
    return fail(ErrorCode::kInvalidArgument, name + ": is " + wanted + ", but " + properties.name +
                                                 " has no " + what + "; must be auto or copy");
  };
  if (wanted == "copy") return MemoryMode::kCopy;
  if (wanted == "mapped") {
    if (!properties.can_map_host_memory) return lacks("mapped host memory");
    return MemoryMode::kMapped;
  }
  if (wanted == "managed") {
    if (!properties.managed_memory) return lacks("managed memory");
    return MemoryMode::kManaged;
  }
  if (wanted != "auto") {
    return fail(ErrorCode::kInvalidArgument,
                name + ": is " + wanted + "; must be auto, copy, mapped or managed");
  }
  if (!properties.integrated) return MemoryMode::kCopy;
  const bool coherent = 10 * properties.major + properties.minor >= 72;
  if (coherent && properties.can_map_host_memory) return MemoryMode::kMapped;
  if (properties.managed_memory) return MemoryMode::kManaged;
  return MemoryMode::kCopy;
}

Device::~Device() {
  // Failures here mean that the device is lost, and with it everything that these would free.
  if (context_ == nullptr) return;
  if (driver_->context_set_current(context_) == kSuccess && module_ != nullptr)
    static_cast<void>(driver_->module_unload(module_));
  static_cast<void>(driver_->context_destroy(context_));
}

Result<std::shared_ptr<const Device>> Device::open(std::shared_ptr<const Driver> driver,
                                                   int ordinal, const std::string& image,
                                                   const SettingNames& names) {
  std::shared_ptr<Device> device(new Device);
  device->driver_ = std::move(driver);
  if (auto ok = device->read_properties(ordinal, names.device); !ok)
    return tl::make_unexpected(ok.error());
  const Driver& api = *device->driver_;
  if (auto ok =
          api.check(api.context_create(&device->context_, kContextMapHost, ordinal), "cuCtxCreate");
      !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = device->load_image(image, names.image); !ok) return tl::make_unexpected(ok.error());
  return device;
}

Result<void> Device::read_properties(int ordinal, const std::string& name) {
  int count = 0;
  if (auto ok = driver_->check(driver_->device_get_count(&count), "cuDeviceGetCount"); !ok)
    return ok;
  if (ordinal < 0 || ordinal >= count) {
    const std::string accepted =
        count == 1 ? "must be 0, this machine's only GPU"
                   : "must be 0 to " + std::to_string(count - 1) + ", this machine's GPUs";
    return fail(ErrorCode::kInvalidArgument,
                name + ": is " + std::to_string(ordinal) + "; " + accepted);
  }
  DeviceHandle device = 0;
  if (auto ok = driver_->check(driver_->device_get(&device, ordinal), "cuDeviceGet"); !ok)
    return ok;
  char model[256] = {};
  if (auto ok = driver_->check(driver_->device_get_name(model, sizeof model - 1, device),
                               "cuDeviceGetName");
      !ok)
    return ok;
  properties_.name = model;
  properties_.ordinal = ordinal;
  if (auto ok = driver_->check(driver_->device_total_mem(&properties_.memory_bytes, device),
                               "cuDeviceTotalMem");
      !ok)
    return ok;
  return read_attributes(device);
}

Result<void> Device::read_attributes(DeviceHandle device) {
  int integrated = 0, map_host = 0, managed = 0, concurrent = 0;
  const std::pair<Attribute, int*> wanted[] = {
      {Attribute::kComputeCapabilityMajor, &properties_.major},
      {Attribute::kComputeCapabilityMinor, &properties_.minor},
      {Attribute::kMultiprocessorCount, &properties_.multiprocessors},
      {Attribute::kWarpSize, &properties_.warp_size},
      {Attribute::kMaxThreadsPerBlock, &properties_.max_threads_per_block},
      {Attribute::kMaxSharedMemoryPerBlock, &properties_.max_shared_bytes_per_block},
      {Attribute::kClockRateKhz, &properties_.clock_khz},
      {Attribute::kL2CacheSize, &properties_.l2_bytes},
      {Attribute::kIntegrated, &integrated},
      {Attribute::kCanMapHostMemory, &map_host},
      {Attribute::kTextureAlignment, &properties_.texture_alignment},
      {Attribute::kTexturePitchAlignment, &properties_.texture_pitch_alignment},
      {Attribute::kMaxTexture2dLinearWidth, &properties_.max_texture_width},
      {Attribute::kMaxTexture2dLinearHeight, &properties_.max_texture_height},
      {Attribute::kMaxTexture2dLinearPitch, &properties_.max_texture_pitch_bytes},
  };
  for (const auto& [attribute, value] : wanted) {
    if (auto ok = driver_->check(driver_->device_get_attribute(value, attribute, device),
                                 "cuDeviceGetAttribute");
        !ok)
      return ok;
  }
  // Younger than the oldest driver; where it does not know them, the answer is no, or the least.
  properties_.shared_bytes_per_multiprocessor = properties_.max_shared_bytes_per_block;
  static_cast<void>(driver_->device_get_attribute(&properties_.shared_bytes_per_multiprocessor,
                                                  Attribute::kMaxSharedMemoryPerMultiprocessor,
                                                  device));
  static_cast<void>(driver_->device_get_attribute(&managed, Attribute::kManagedMemory, device));
  static_cast<void>(
      driver_->device_get_attribute(&concurrent, Attribute::kConcurrentManagedAccess, device));
  properties_.integrated = integrated != 0;
  properties_.can_map_host_memory = map_host != 0;
  properties_.managed_memory = managed != 0;
  properties_.concurrent_managed_access = concurrent != 0;
  if (properties_.multiprocessors < 1) {
    return fail(
        ErrorCode::kUnsupported,
        properties_.name + " reports no multiprocessors to its driver; nothing can run there");
  }
  if (properties_.warp_size != kWarpSize) {
    return fail(ErrorCode::kUnsupported,
                properties_.name + " has warps of " + std::to_string(properties_.warp_size) +
                    " threads; the kernels are made for " + std::to_string(kWarpSize));
  }
  return {};
}

Result<void> Device::load_image(const std::string& wanted, const std::string& name) {
  const auto images =
      images_for(embedded_images(), properties_.major, properties_.minor, wanted, name);
  if (!images) return tl::make_unexpected(images.error());
  for (const DeviceImage& image : *images) {
    const Status status = driver_->module_load_data(&module_, image.data);
    if (status == kSuccess) {
      image_ = image.name;
      image_architecture_ = image.architecture;
      launches_early_ = waits_for_launches(image) && driver_->has_early_launches();
      return {};
    }
    module_ = nullptr;
    passed_over_ +=
        "; " + driver_->error(status, "image " + described(image) + " not used").message;
  }
  return fail(ErrorCode::kUnsupported,
              properties_.name + ": the driver loads none of the device images" + passed_over_);
}

std::string Device::description() const {
  return properties_.name + " (" + std::to_string(properties_.major) + "." +
         std::to_string(properties_.minor) + ", image " + image_ + passed_over_ + ")";
}

Result<void> Device::make_current() const {
  auto made = driver_->check(driver_->context_set_current(context_), "cuCtxSetCurrent");
  // Whoever holds the device on, such as frames' memory, must not keep others from a new one.
  if (!made) give_up();
  return made;
}

Result<Kernel> Device::kernel(const char* name) const {
  Kernel kernel{nullptr, name};
  const Status status = driver_->module_get_function(&kernel.function, module_, name);
  if (status != kSuccess) {
    return tl::make_unexpected(
        driver_->error(status, std::string("kernel ") + name + " of image " + image_));
  }
  return kernel;
}

}  // namespace patternd::cuda
