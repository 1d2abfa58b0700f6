// A configuration at work: everything that frames are computed with, made beside the running one
// and taken over between two frames.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cuda/backend.h"
#include "daemon/configuration.h"
#include "daemon/messages.h"
#include "daemon/result_line.h"
#include "pipeline/drift_watch.h"
#include "pipeline/frame_processor.h"
#include "pipeline/source.h"

namespace patternd {

// Frames of one kind need the same processor.
[[nodiscard]] bool same_format(const SourceFormat& a, const SourceFormat& b);

// What computes under a configuration, and why that.
struct BackendNote {
  std::string backend;  // "cpu", "cuda"
  std::string reason;
  bool by_auto = false;          // compute.backend left it to the service
  bool passes_gpu_over = false;  // there is a GPU that is not used

  friend bool operator==(const BackendNote& a, const BackendNote& b) {
    return a.backend == b.backend && a.reason == b.reason && a.by_auto == b.by_auto &&
           a.passes_gpu_over == b.passes_gpu_over;
  }
};

struct Generation {
  std::uint32_t number = 0;  // of the configuration; counts from 1
  SourceFormat format;
  BackendNote backend;
  std::unique_ptr<FrameProcessor> processor;
  std::shared_ptr<const ResultFormat> result_format;
  // Set by the compute thread: the first frame that ran under it.
  std::atomic<bool> started{false};
  std::atomic<std::uint64_t> first_seq{0};

  // The compute thread's, where fiducials are configured; what it found last is for everyone.
  std::optional<DriftWatch> drift_watch;
  [[nodiscard]] Drift drift() const;
  void set_drift(const Drift& drift);

  // Frames of this kind are what the processor was made for.
  [[nodiscard]] bool takes(const RawImageView& image) const;

 private:
  mutable std::mutex drift_mutex_;
  Drift drift_;
};

// Makes the processor that `compute` asks for.
using ProcessorFactory =
    std::function<cuda::Choice(const ComputeConfig& compute, const ProcessorConfig& config)>;

[[nodiscard]] ProcessorConfig processor_config(const Configuration& configuration,
                                               const SourceFormat& format);
// Calls `factory`; its error names the file, and all that is wrong, a line each: where a setting of
// `compute` is at fault, also what no processor could do with the frames and patterns.
[[nodiscard]] Result<cuda::ChosenProcessor> choose_processor(const Configuration& configuration,
                                                             const ProcessorConfig& config,
                                                             const ProcessorFactory& factory);
[[nodiscard]] BackendNote note_of(const Configuration& configuration,
                                  const cuda::ChosenProcessor& chosen);
[[nodiscard]] Result<std::shared_ptr<Generation>> make_generation(
    const Configuration& configuration, std::uint32_t number, const SourceFormat& format,
    const ProcessorFactory& factory);
// The error of a configuration that is well-formed, but cannot work.
[[nodiscard]] tl::unexpected<Error> cannot_run(const Configuration& configuration,
                                               const Error& error);
[[nodiscard]] Greeting greeting_for(const Configuration& configuration,
                                    const Generation* generation);

}  // namespace patternd
