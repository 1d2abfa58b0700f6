#include "cuda/driver.h"

#include <dlfcn.h>

#include "cuda/look_up.h"

namespace patternd::cuda {
Driver::~Driver() {
  if (library_ != nullptr) dlclose(library_);
}

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
  std::shared_ptr<Driver> driver(new Driver);
  if (auto loaded = driver->load(library); !loaded) return tl::make_unexpected(loaded.error());
  if (auto ready = driver->initialise(); !ready) return tl::make_unexpected(ready.error());
  return driver;
}

Result<void> Driver::load(const std::string& library) {
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* reason = dlerror();
    return fail(ErrorCode::kUnsupported,
                "no NVIDIA driver: " + std::string(reason != nullptr ? reason : library) +
                    "; install the GPU's driver");
  }
  std::string missing;
#define PATTERND_CUDA_LOOK_UP(member, symbol, arguments) \
  if (!look_up(library_, #symbol, member) && missing.empty()) missing = #symbol;
  PATTERND_CUDA_REQUIRED(PATTERND_CUDA_LOOK_UP)
  if (!missing.empty()) {
    return fail(ErrorCode::kUnsupported, "the NVIDIA driver is too old: " + library + " has no " +
                                             missing + "; CUDA 6.5's or a newer one is needed");
  }
  PATTERND_CUDA_GRAPHS(PATTERND_CUDA_LOOK_UP)
  if (!missing.empty()) missing_graphs_ = "no graphs: the driver has no " + missing;
  PATTERND_CUDA_EARLY_LAUNCHES(PATTERND_CUDA_LOOK_UP)
  PATTERND_CUDA_ARRAYS(PATTERND_CUDA_LOOK_UP)
#undef PATTERND_CUDA_LOOK_UP
  return {};
}

Result<void> Driver::initialise() {
  if (const Status status = init(0); status != kSuccess) {
    if (status == kNoDevice) return fail(ErrorCode::kUnsupported, "the NVIDIA driver sees no GPU");
    return fail(ErrorCode::kUnsupported,
                "the NVIDIA driver does not start: " + error(status, "cuInit").message +
                    "; is the kernel module of the same version loaded?");
  }
  int count = 0;
  if (auto ok = check(driver_get_version(&version_), "cuDriverGetVersion"); !ok) return ok;
  if (auto ok = check(device_get_count(&count), "cuDeviceGetCount"); !ok) return ok;
  if (count < 1) return fail(ErrorCode::kUnsupported, "the NVIDIA driver sees no GPU");
  return {};
}

Error Driver::error(Status status, const std::string& what) const {
  const char* name = nullptr;
  if (get_error_name == nullptr || get_error_name(status, &name) != kSuccess || name == nullptr)
    name = "unknown error";
  return {status == kOutOfMemory ? ErrorCode::kExhausted : ErrorCode::kDevice,
          what + ": " + name + " (" + std::to_string(status) + ")"};
}

}  // namespace patternd::cuda
