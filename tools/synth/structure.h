// Whether a part of a photo can serve as a pattern.
#pragma once

#include "tools/synth/spline_picture.h"

namespace patternd::synth {

// What a rectangle of a photo holds, in grey levels and photo pixels.
struct Structure {
  double contrast = 0;       // standard deviation
  double weakest_slope = 0;  // root mean square slope in the direction where it is least
  // Share [0, 1] of the variance that the means of its 8×8 blocks hold. What is left over is detail
  // of its own: another place can agree with the blocks by chance, with the detail it cannot, so
  // its NCC stays under about √coarse_share.
  double coarse_share = 0;
};

// Measures the rectangle with its corner at (left, top) at about 32×32 places.
[[nodiscard]] Structure measure_structure(const SplinePicture& photo, double left, double top,
                                          double width, double height);

}  // namespace patternd::synth
