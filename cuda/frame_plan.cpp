#include "cuda/frame_plan.h"

#include <utility>

namespace patternd::cuda {
namespace {

MatcherConfig matcher_config(const ProcessorConfig& config, const LumaPlan& luma) {
  MatcherConfig matcher{luma.width, luma.height, luma.format, config.patterns, {}};
  if (!luma.valid.empty()) matcher.valid = luma.valid.view();
  return matcher;
}

}  // namespace

Result<std::shared_ptr<const FramePlan>> FramePlan::create(
    const std::shared_ptr<const Device>& device, MemoryMode mode, const ProcessorConfig& config,
    ThreadPool* pool) {
  auto plan = std::make_shared<FramePlan>();
  plan->config = config;
  plan->mode = mode;
  auto reference = BlobReference::create(device, config, pool);
  if (!reference) return tl::make_unexpected(reference.error());
  plan->reference = std::move(*reference);
  auto luma = LumaPlan::create(device, config);
  if (!luma) return tl::make_unexpected(luma.error());
  plan->luma = std::move(*luma);
  if (config.patterns.empty()) return plan;
  auto matcher = GpuMatcherPlan::create(device, matcher_config(config, plan->luma), pool);
  if (!matcher) return tl::make_unexpected(matcher.error());
  plan->matcher = std::move(*matcher);
  return plan;
}

}  // namespace patternd::cuda
