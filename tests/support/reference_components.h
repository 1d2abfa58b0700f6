// Connected components the plain way, to compare the fast ones with: two passes over the pixels, a
// union-find without tricks, statistics pixel by pixel in long double.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/components.h"

namespace patternd::test {

struct ReferenceLabels {
  int width = 0;
  int height = 0;
  std::vector<std::int32_t> labels;  // row by row, 0: background
  std::vector<Blob> blobs;           // blobs[i] has label i + 1
};

// `foreground(x, y)`; `connected(x, y, nx, ny)` for two neighbours that both are foreground;
// `grey(x, y)` for mean and peak.
[[nodiscard]] ReferenceLabels label_plainly(
    int width, int height, int connectivity, const std::function<bool(int, int)>& foreground,
    const std::function<bool(int, int, int, int)>& connected,
    const std::function<double(int, int)>& grey);

// The same for a picture and the configuration's parameters (without roi and filters; Otsu's
// threshold comes as a fixed one).
[[nodiscard]] ReferenceLabels label_plainly(const ImageView& image, const BlobParams& params);

// Fails the running test where labels or statistics differ.
void expect_same(const ReferenceLabels& expected, const ComponentLabeller& labeller,
                 const ImageView& labels);

}  // namespace patternd::test
