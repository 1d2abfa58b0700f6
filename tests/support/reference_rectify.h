// The double-precision reference of rectification, written straight from the formulas of the
// calibration file's description, independent of the product's code.
#pragma once

#include <optional>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/image.h"

namespace patternd::test {

// Where an output pixel lies in the input picture. Nothing behind the camera. Knows nothing of
// folding: for models whose polynomial rises over the picture.
[[nodiscard]] std::optional<Point2> reference_source(const CameraModel& model, double x, double y);

// One rectified pixel: the bilinear value, or nothing where its source lies outside
// 0 <= x <= w-1, 0 <= y <= h-1. `input` is kGray8, kGray16 or kGrayF32.
[[nodiscard]] std::optional<double> reference_pixel(const CameraModel& model,
                                                    const ImageView& input, int x, int y);
// The bilinear value at a place inside.
[[nodiscard]] double bilinear(const ImageView& input, double x, double y);

// The geometry that the speed figures are quoted for: a plane tilted by 45 degrees at distance 3,
// focal factor 2.1, polynomial 1 + 0.04 r² + 0.01 r⁴; `size` square. `turned`: the plane turned by
// 90 degrees, so that neighbouring output pixels read different input rows.
[[nodiscard]] CameraModel tilted_plane(int size, bool turned);

}  // namespace patternd::test
