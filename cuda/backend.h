// Which processor a configuration gets: the one place where CPU and GPU are chosen between.
#pragma once

#include <memory>
#include <string>

#include "pipeline/frame_processor.h"
#include "pipeline/source.h"

namespace patternd::cuda {

// The `compute` section, as far as the choice needs it.
struct ComputeOptions {
  enum class Backend { kAuto, kCpu, kCuda };
  Backend backend = Backend::kAuto;
  int device = 0;
  std::string memory = "auto";
  std::string image = "auto";
  int streams = 1;                      // frames in flight
  std::string driver = "libcuda.so.1";  // another file in tests only
};

struct ChosenProcessor {
  std::unique_ptr<FrameProcessor> processor;
  std::string reason;  // one line: why this one; for the log and status
};

// `cpu` and `cuda` as asked, or an error. `auto`: the GPU where there is one that works (its
// self-test passes) and takes the configuration, else the CPU, with the reason. A GPU that fails is
// opened again, with growing pauses; meanwhile frames come back as its errors, with `auto` they are
// done by the CPU, in order; description() says so (supervised_processor.h).
[[nodiscard]] Result<ChosenProcessor> make_processor(const ComputeOptions& options,
                                                     const ProcessorConfig& config);

// Memory for a source's frames that suits what these options choose: in the GPU's reach where there
// is a GPU to use, else `plain`.
[[nodiscard]] std::unique_ptr<FrameAllocator> make_frame_memory(
    const ComputeOptions& options, std::unique_ptr<FrameAllocator> plain);

}  // namespace patternd::cuda
