// Lines on a colour picture, for people to look at: `match --draw`, `calibrate`'s pictures.
#pragma once

#include <array>
#include <cstdint>

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/pattern.h"

namespace patternd::tools {

using Color = std::array<std::uint8_t, 3>;

// The picture in kRgb8; 16-bit ones are shown by their upper byte.
[[nodiscard]] Result<Image> to_rgb(const ImageView& picture);
// A line one pixel wide between two points; what lies outside is left out.
void draw_line(MutableImageView rgb, Point2 from, Point2 to, Color color);
// The pattern's turned rectangle, a cross at its reference point and a line from there along its x
// axis.
void draw_match(MutableImageView rgb, const Match& match, const Pattern& pattern, Color color);

}  // namespace patternd::tools
