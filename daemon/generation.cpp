#include "daemon/generation.h"

namespace patternd {

bool same_format(const SourceFormat& a, const SourceFormat& b) {
  return a.width == b.width && a.height == b.height && a.stride_bytes == b.stride_bytes &&
         a.format == b.format && a.bayer == b.bayer;
}

bool Generation::takes(const RawImageView& image) const {
  return image.width == format.width && image.height == format.height &&
         image.stride_bytes == format.stride_bytes && image.format == format.format &&
         image.bayer == format.bayer;
}

Drift Generation::drift() const {
  const std::lock_guard<std::mutex> lock(drift_mutex_);
  return drift_;
}

void Generation::set_drift(const Drift& drift) {
  const std::lock_guard<std::mutex> lock(drift_mutex_);
  drift_ = drift;
}

ProcessorConfig processor_config(const Configuration& configuration, const SourceFormat& format) {
  ProcessorConfig config;
  config.width = format.width;
  config.height = format.height;
  config.stride_bytes = format.stride_bytes;
  config.format = format.format;
  config.bayer = format.bayer;
  config.calibration = configuration.calibration;
  for (const Configuration::PatternEntry& entry : configuration.patterns)
    config.patterns.push_back({entry.pattern, entry.params});
  config.blobs = configuration.blobs;
  config.dark_frame = configuration.dark_frame;
  config.threads = configuration.compute.threads;
  return config;
}

Result<cuda::ChosenProcessor> choose_processor(const Configuration& configuration,
                                               const ProcessorConfig& config,
                                               const ProcessorFactory& factory) {
  cuda::Choice chosen = factory(configuration.compute, config);
  if (chosen) return std::move(*chosen);
  const cuda::Refusal& refusal = chosen.error();
  if (!refusal.names_setting) return cannot_run(configuration, refusal);
  const auto cpu = make_cpu_processor(config);
  if (cpu) return fail(refusal.code, refusal.message);
  const Error other = cannot_run(configuration, cpu.error()).value();
  return fail(other.code, refusal.message + "\n" + other.message);
}

BackendNote note_of(const Configuration& configuration, const cuda::ChosenProcessor& chosen) {
  return {chosen.processor->backend(), chosen.reason,
          configuration.compute.backend == ComputeConfig::Backend::kAuto, chosen.passes_gpu_over};
}

Result<std::shared_ptr<Generation>> make_generation(const Configuration& configuration,
                                                    std::uint32_t number,
                                                    const SourceFormat& format,
                                                    const ProcessorFactory& factory) {
  const ProcessorConfig config = processor_config(configuration, format);
  auto chosen = choose_processor(configuration, config, factory);
  if (!chosen) return tl::make_unexpected(chosen.error());
  auto generation = std::make_shared<Generation>();
  generation->number = number;
  generation->format = format;
  generation->backend = note_of(configuration, *chosen);
  generation->processor = std::move(chosen->processor);
  auto labels = result_format(config);
  for (std::size_t i = 0; i < labels.patterns.size(); ++i)
    labels.patterns[i].name = configuration.patterns[i].name;
  if (configuration.fiducials) {
    auto watch = DriftWatch::create(*configuration.fiducials, config.patterns.size());
    if (!watch) return cannot_run(configuration, watch.error());
    generation->drift_watch = std::move(*watch);
  }
  generation->result_format = std::make_shared<const ResultFormat>(std::move(labels));
  return generation;
}

tl::unexpected<Error> cannot_run(const Configuration& configuration, const Error& error) {
  return fail(error.code, configuration.file + ": cannot run: " + error.message);
}

Greeting greeting_for(const Configuration& configuration, const Generation* generation) {
  Greeting greeting;
  greeting.camera = configuration.camera.name;
  for (const auto& entry : configuration.patterns) greeting.patterns.push_back(entry.name);
  if (generation == nullptr) {
    greeting.backend =
        configuration.compute.backend == ComputeConfig::Backend::kCuda ? "cuda" : "cpu";
    // The camera has not been there yet: the size that it must have, where something says it.
    const auto& calibration = configuration.calibration;
    greeting.width = calibration ? calibration->image_width : configuration.camera.width;
    greeting.height = calibration ? calibration->image_height : configuration.camera.height;
    return greeting;
  }
  greeting.width = generation->format.width;
  greeting.height = generation->format.height;
  greeting.backend = generation->processor->backend();
  return greeting;
}

}  // namespace patternd
