// --version of every program.
#pragma once

#include <string>
#include <vector>

namespace patternd {

// "patternd 0.1.0 (commit abc1234)\nbackends: cpu cuda\ndevice images: universal sm_90\n" for
// `program`.
// `images`: names of the device images in the program; without any it computes on the CPU alone.
[[nodiscard]] std::string version_text(const std::string& program,
                                       const std::vector<std::string>& images = {});
// "0.1.0", and "abc1234" (with -dirty behind it where the tree differs from the commit).
[[nodiscard]] const char* version_number();
[[nodiscard]] const char* version_commit();

}  // namespace patternd
