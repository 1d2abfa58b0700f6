// The area of a picture that has content, down the pyramid.
#pragma once

#include "pipeline/image.h"

namespace patternd {

// A mask (kGray8, 0 where invalid) of the level above: pixels valid where all four under them are.
// Empty where there is no memory.
[[nodiscard]] Image halved_mask(const ImageView& mask);

// Whether no pixel of a mask is 0.
[[nodiscard]] bool all_set(const ImageView& mask);

}  // namespace patternd
