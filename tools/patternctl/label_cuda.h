// patternctl label on a GPU.
#pragma once

#include <string>
#include <vector>

#include "pipeline/components.h"

namespace patternd::tools {

// A picture's labels (kLabel32) and the statistics of each: blobs[i] has label i + 1.
struct Labelled {
  Image labels;
  std::vector<Blob> blobs;
};

// Labels `image` on GPU 0 by `method`: "runs" (the service's own), "propagation", "equivalence",
// "texture" (the report's B, C, D, whose statistics the CPU gathers). Filters are not applied.
[[nodiscard]] Result<Labelled> label_on_cuda(const ImageView& image, const BlobParams& params,
                                             const std::string& method);

}  // namespace patternd::tools
