// The report's programs B, C and D (R2–R4), kept for measuring: many launches, and after each round
// a question of the host, did anything change. The kernels are in kernels/propagation.cu.
#pragma once

#include <memory>

#include "cuda/device.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/memory.h"
#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/components.h"

namespace patternd::cuda {

enum class PropagationProgram {
  kPropagation,  // B: "propagation"
  kEquivalence,  // C: "equivalence"
  kTexture,      // D: "texture"
};

class PropagationStudy {
 public:
  // For kGray8 pictures of this size; threshold or similarity.
  [[nodiscard]] static Result<PropagationStudy> create(const std::shared_ptr<const Device>& device,
                                                       PropagationProgram program, int width,
                                                       int height, const BlobParams& params);
  // Labels a picture; waits. Returns the number of rounds.
  [[nodiscard]] Result<int> run(const Stream& stream, const DeviceView& picture);
  // The labels of the last picture on the host (kLabel32), consecutive in scan order; waits.
  [[nodiscard]] Result<void> download(const Stream& stream, MutableImageView labels) const;

 private:
  [[nodiscard]] Result<bool> round(const Stream& stream, const PropagationParameters& p);

  std::shared_ptr<const Device> device_;
  PropagationProgram program_ = PropagationProgram::kPropagation;
  PropagationParameters parameters_{};
  Kernel number_;
  Kernel scan_;
  Kernel analyse_;
  Shape shape_;
  DeviceBuffer labels_;
  SharedBuffer changed_;
};

}  // namespace patternd::cuda
