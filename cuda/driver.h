// NVIDIA's driver, found at run time: libcuda.so.1 by dlopen, its functions in a table. One binary
// runs with and without it, and nothing of CUDA's is linked.
#pragma once

#include <memory>
#include <string>

#include "cuda/driver_api.h"
#include "pipeline/result.h"

namespace patternd::cuda {

class Driver {
 public:
  // Opens the library, looks its functions up, and initialises it. Errors (kUnsupported) say which
  // of these failed and what would help: no library, a function missing (driver too old), no GPU.
  //   auto driver = Driver::open();
  // `library` is another file in tests only.
  [[nodiscard]] static Result<std::shared_ptr<const Driver>> open(
      const std::string& library = "libcuda.so.1");
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The functions, by our names: driver.mem_alloc(&pointer, bytes).
#define PATTERND_CUDA_MEMBER(member, symbol, arguments) Status(*member) arguments = nullptr;
  PATTERND_CUDA_REQUIRED(PATTERND_CUDA_MEMBER)
  PATTERND_CUDA_GRAPHS(PATTERND_CUDA_MEMBER)
  // Null where the driver lacks them.
  PATTERND_CUDA_EARLY_LAUNCHES(PATTERND_CUDA_MEMBER)
  PATTERND_CUDA_ARRAYS(PATTERND_CUDA_MEMBER)
#undef PATTERND_CUDA_MEMBER

  // Whether the optional group "graphs" is there; else the reason, for status.
  [[nodiscard]] bool has_graphs() const { return missing_graphs_.empty(); }
  [[nodiscard]] const std::string& missing_graphs() const { return missing_graphs_; }
  // Whether kernels can be launched early, in graphs too.
  [[nodiscard]] bool has_early_launches() const {
    return launch_kernel_ex != nullptr && version_ >= 12030;
  }
  // 1000 · major + 10 · minor of the CUDA version that the driver supports.
  [[nodiscard]] int version() const { return version_; }

  // An Error from a status: "cuMemAlloc of 1048576 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)". kExhausted
  // for memory, kDevice for all else.
  [[nodiscard]] Error error(Status status, const std::string& what) const;
  // Nothing where `status` is success, else kDevice. For all that asks for no memory of a size:
  // where such a call comes back for want of memory, what was enqueued before it has run and what
  // was to follow has not.
  [[nodiscard]] Result<void> check(Status status, const char* what) const {
    if (status == kSuccess) return {};
    return fail(ErrorCode::kDevice, error(status, what).message);
  }

 private:
  Driver() = default;
  [[nodiscard]] Result<void> load(const std::string& library);
  [[nodiscard]] Result<void> initialise();

  void* library_ = nullptr;
  int version_ = 0;
  std::string missing_graphs_;
};

}  // namespace patternd::cuda
