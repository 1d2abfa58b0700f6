#include "daemon/backend.h"

#include <mutex>
#include <spdlog/spdlog.h>

namespace patternd {

Result<std::unique_ptr<FrameProcessor>> make_configured_processor(const ComputeConfig& compute,
                                                                  const ProcessorConfig& config) {
  static constexpr const char* kNoCuda = "this patternd was built without a CUDA frame processor";
  if (compute.backend == ComputeConfig::Backend::kCuda) {
    return fail(ErrorCode::kUnsupported, std::string("compute.backend: cuda is not available (") +
                                             kNoCuda + "); set auto or cpu");
  }
  if (compute.backend == ComputeConfig::Backend::kAuto) {
    static std::once_flag told;
    std::call_once(told, [] { spdlog::info("backend=cpu chosen_by=auto reason=\"{}\"", kNoCuda); });
  }
  return make_cpu_processor(config);
}

}  // namespace patternd
