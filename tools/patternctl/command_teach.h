#pragma once

#include <string>

#include "pipeline/image.h"
#include "pipeline/result.h"
#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_teach(CLI::App& program, Context& context);

// The picture as the calibration file rectifies it; it must have the size that the file is for.
[[nodiscard]] Result<Image> rectify_picture(const std::string& calibration,
                                            const ImageView& picture);

}  // namespace patternd::tools
