// NVIDIA's NPP as a peer: nppiLabelMarkersUF, and nppiCompressMarkerLabelsUF, which makes its
// labels consecutive. Opened at run time, because neither its headers nor its libraries are
// everywhere.
#pragma once

#include <memory>

#include "cuda/picture.h"
#include "cuda/stream.h"

namespace patternd::cuda {

class NppLabels {
 public:
  // For kGray8 pictures of this size, connectivity 8. kUnsupported where NPP is not here.
  [[nodiscard]] static Result<NppLabels> create(const std::shared_ptr<const Device>& device,
                                                int width, int height);
  // Enqueues the labelling of what is not 0 in a picture.
  [[nodiscard]] Result<void> label(const Stream& stream, const DeviceView& picture) const;
  // Makes the labels consecutive; waits, as NPP does. Returns the largest.
  [[nodiscard]] Result<int> compress(const Stream& stream) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  int width_ = 0;
  int height_ = 0;
  DeviceBuffer labels_;
  DeviceBuffer scratch_;
  DeviceBuffer compress_scratch_;
};

}  // namespace patternd::cuda
