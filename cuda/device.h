// One GPU, opened: its context, what it can do, and the kernels of the image that suits it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "cuda/driver.h"
#include "cuda/reachable_memory.h"
#include "cuda/setting_names.h"
#include "pipeline/result.h"

namespace patternd::cuda {

// compute.memory: how frames and results cross between host and GPU.
enum class MemoryMode {
  kCopy,     // page-locked staging and asynchronous copies
  kMapped,   // page-locked host memory that the GPU reads in place
  kManaged,  // one allocation that both sides use in turn
};
[[nodiscard]] const char* name_of(MemoryMode mode);

struct DeviceProperties {
  std::string name;
  int ordinal = 0;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_shared_bytes_per_block = 0;
  int shared_bytes_per_multiprocessor = 0;
  int clock_khz = 0;
  int l2_bytes = 0;
  bool integrated = false;  // shares the host's memory
  bool can_map_host_memory = false;
  bool managed_memory = false;
  bool concurrent_managed_access = false;
  int texture_alignment = 0;  // bytes, of a picture's first pixel
  int texture_pitch_alignment = 0;
  int max_texture_width = 0;
  int max_texture_height = 0;
  int max_texture_pitch_bytes = 0;
  std::size_t memory_bytes = 0;
};

// The mode that `wanted` ("auto", "copy", "mapped", "managed") means on this GPU. auto: discrete
// takes copy; integrated below compute capability 7.2 takes managed, because mapped memory is
// uncached for the CPU there (no I/O coherency); newer integrated takes mapped. kInvalidArgument
// where the GPU lacks what is asked for, or the word is unknown; the message begins with `name`.
[[nodiscard]] Result<MemoryMode> memory_mode_for(const DeviceProperties& properties,
                                                 const std::string& wanted,
                                                 const std::string& name = SettingNames().memory);

// A kernel of the loaded image; `name` is for messages.
struct Kernel {
  FunctionHandle function = nullptr;
  const char* name = "";
};

class Device {
 public:
  // Creates a context on GPU `ordinal` and loads the best image for it (`image`: compute.image);
  // where loading one fails, the next is tried, and description() says so. Errors: kInvalidArgument
  // (no such GPU, nothing suits the image asked for: the message begins with the setting's name),
  // kUnsupported, kDevice.
  [[nodiscard]] static Result<std::shared_ptr<const Device>> open(
      std::shared_ptr<const Driver> driver, int ordinal, const std::string& image,
      const SettingNames& names = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Driver& driver() const { return *driver_; }
  [[nodiscard]] const DeviceProperties& properties() const { return properties_; }
  // The image in use: "sm_90", "universal".
  [[nodiscard]] const std::string& image() const { return image_; }
  // Whether kernels may multiply matrices (kernels/device.h): by the image's architecture.
  [[nodiscard]] bool has_matrix_units() const { return image_architecture_ >= 80; }
  // Whether its kernels can be launched early (Stream::launch_early).
  [[nodiscard]] bool launches_early() const { return launches_early_; }
  // "NVIDIA H200 (9.0, image sm_90)", and why a better image was passed over.
  [[nodiscard]] std::string description() const;

  // Makes the context the calling thread's; every thread does so before it uses what belongs to
  // this device. Cheap.
  [[nodiscard]] Result<void> make_current() const;
  [[nodiscard]] Result<Kernel> kernel(const char* name) const;

  // Sources' memory that kernels read in place.
  [[nodiscard]] ReachableMemory& reachable() const { return reachable_; }
  // Work on it failed: its context is of no more use. From any thread.
  void give_up() const { given_up_ = true; }
  [[nodiscard]] bool is_given_up() const { return given_up_; }

 private:
  Device() = default;
  [[nodiscard]] Result<void> read_properties(int ordinal, const std::string& name);
  [[nodiscard]] Result<void> read_attributes(DeviceHandle device);
  [[nodiscard]] Result<void> load_image(const std::string& wanted, const std::string& name);

  std::shared_ptr<const Driver> driver_;
  DeviceProperties properties_;
  ContextHandle context_ = nullptr;
  ModuleHandle module_ = nullptr;
  std::string image_;
  int image_architecture_ = 0;
  std::string passed_over_;
  bool launches_early_ = false;
  mutable ReachableMemory reachable_;
  mutable std::atomic<bool> given_up_{false};
};

// Owns a driver's object of any kind; move-only; ended by the function it was given, with the
// context current.
template <class Handle>
class Owner {
 public:
  using End = Status (*Driver::*)(Handle);
  Owner() = default;
  Owner(std::shared_ptr<const Device> device, Handle handle, End end)
      : device_(std::move(device)), handle_(handle), end_(end) {}
  Owner(Owner&& other) noexcept { swap(other); }
  Owner& operator=(Owner&& other) noexcept {
    Owner ended(std::move(other));
    swap(ended);
    return *this;
  }
  ~Owner() {
    // Nothing can be done about a failure here: a lost device frees everything with its context.
    if (device_ && device_->make_current()) static_cast<void>((device_->driver().*end_)(handle_));
  }
  [[nodiscard]] Handle get() const { return handle_; }
  [[nodiscard]] explicit operator bool() const { return device_ != nullptr; }

 private:
  void swap(Owner& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(end_, other.end_);
  }
  std::shared_ptr<const Device> device_;
  Handle handle_{};
  End end_ = nullptr;
};

}  // namespace patternd::cuda
