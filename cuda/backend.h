// Which processor a configuration gets: the one place where CPU and GPU are chosen between.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cuda/setting_names.h"
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
  SettingNames names;                   // for messages
};

struct ChosenProcessor {
  ChosenProcessor() = default;
  ChosenProcessor(std::unique_ptr<FrameProcessor> made, std::string why = "as configured")
      : processor(std::move(made)), reason(std::move(why)) {}

  std::unique_ptr<FrameProcessor> processor;
  std::string reason;  // one line: why this one; for the log
  // With `auto`: there is a GPU, which the settings miss or which is of no use; `reason` says why.
  bool passes_gpu_over = false;
};

// Why there is no processor.
struct Refusal : Error {
  Refusal(Error error, bool of_setting = false)
      : Error(std::move(error)), names_setting(of_setting) {}

  // The message begins with the name of the setting at fault (`names`); otherwise it is about the
  // frames or the patterns.
  bool names_setting;
};

using Choice = tl::expected<ChosenProcessor, Refusal>;

// `cpu` and `cuda` as asked, or an error: kInvalidArgument where a setting asks for what this
// machine's GPUs have not, kUnsupported where there is no GPU. `auto`: the GPU where there is one
// that works (its self-test passes) and takes the configuration, else the CPU, with the reason.
// A GPU that fails is opened again, with growing pauses; meanwhile frames come back as its errors,
// with `auto` they are done by the CPU, in order; description() says so (supervised_processor.h).
[[nodiscard]] Choice make_processor(const ComputeOptions& options, const ProcessorConfig& config);

// Memory for a source's frames that suits what these options choose: in the GPU's reach where there
// is a GPU to use, else `plain`.
[[nodiscard]] std::unique_ptr<FrameAllocator> make_frame_memory(
    const ComputeOptions& options, std::unique_ptr<FrameAllocator> plain);

}  // namespace patternd::cuda
