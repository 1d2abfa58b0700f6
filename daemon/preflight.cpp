#include "daemon/preflight.h"

#include "pipeline/latency_log.h"
#include "pipeline/matcher_plan.h"
#include "pipeline/sources/aligned_frames.h"

namespace patternd {
namespace {

constexpr int kBufferCount = 1;

// What frames will be like, as far as something says it; sides that nothing says are 0.
SourceFormat expected_format(const Configuration& configuration) {
  const auto& calibration = configuration.calibration;
  SourceFormat format;
  format.width = calibration ? calibration->image_width : configuration.camera.width;
  format.height = calibration ? calibration->image_height : configuration.camera.height;
  const auto& dark = configuration.dark_frame;
  if (const auto named = find_raw_format(configuration.camera.format)) {
    format.format = named->format;
    format.bayer = named->order;
  } else if (dark != nullptr && dark->format() == PixelFormat::kGray16) {
    // Left to the camera; the dark frame, taken with it, tells its depth.
    format.format = RawFormat::kY16;
  }
  format.stride_bytes = min_stride_bytes(format.format, format.width);
  return format;
}

// Plans each search for the largest picture that there is: what fails there fails in any.
Result<void> check_patterns(const Configuration& configuration) {
  const CameraConfig& camera = configuration.camera;
  const MatcherConfig largest{camera.width > 0 ? camera.width : kMaxImageSide,
                              camera.height > 0 ? camera.height : kMaxImageSide,
                              PixelFormat::kGray8,
                              {},
                              {}};
  for (const Configuration::PatternEntry& entry : configuration.patterns) {
    const auto plan = plan_pattern({entry.pattern, entry.params}, largest);
    if (!plan) return cannot_run(configuration, plan.error());
  }
  return {};
}

// What computes frames of a size that is not known yet: what would be chosen for small ones.
Result<BackendNote> check_backend(const Configuration& configuration,
                                  const ProcessorFactory& make_processor) {
  ProcessorConfig config;
  config.width = 64;
  config.height = 48;
  config.format = RawFormat::kGrey;
  config.stride_bytes = min_stride_bytes(config.format, config.width);
  config.threads = configuration.compute.threads;
  const auto chosen = choose_processor(configuration, config, make_processor);
  if (!chosen) return tl::make_unexpected(chosen.error());
  return note_of(configuration, *chosen);
}

Result<BackendNote> check_generation(const Configuration& configuration, const SourceFormat& format,
                                     const ProcessorFactory& make_processor) {
  const auto made = make_generation(configuration, 1, format, make_processor);
  if (!made) return tl::make_unexpected(made.error());
  return (*made)->backend;
}

}  // namespace

Result<BackendNote> check_unseen_camera(const Configuration& configuration,
                                        const ProcessorFactory& make_processor) {
  const SourceFormat format = expected_format(configuration);
  if (format.width > 0 && format.height > 0)
    return check_generation(configuration, format, make_processor);
  auto backend = check_backend(configuration, make_processor);
  if (const auto patterns = check_patterns(configuration); !patterns) {
    const Error& error = patterns.error();
    return fail(error.code, (backend ? "" : backend.error().message + "\n") + error.message);
  }
  return backend;
}

Result<BackendNote> check_start(const Configuration& configuration, const ServiceParts& parts) {
  if (!configuration.latency_log.empty()) {
    if (auto good = LatencyLog::check(configuration.latency_log); !good)
      return tl::make_unexpected(good.error());
  }
  AlignedFrameAllocator memory;
  const auto source = parts.make_source(configuration.camera);
  if (!source) return tl::make_unexpected(source.error());
  if (auto good = (*source)->check(); !good) return tl::make_unexpected(good.error());
  if ((*source)->is_live()) return check_unseen_camera(configuration, parts.make_processor);
  const auto format = (*source)->start(memory, kBufferCount);
  (*source)->stop();
  if (!format) return tl::make_unexpected(format.error());
  return check_generation(configuration, *format, parts.make_processor);
}

}  // namespace patternd
