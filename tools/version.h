// --version of every program.
#pragma once

#include <string>

namespace patternd {

// "patternd 0.1.0 (commit abc1234)\nbackends: cpu cuda\ndevice images: universal sm_90\n" for
// `program`.
[[nodiscard]] std::string version_text(const std::string& program);
// "0.1.0", and "abc1234" (with -dirty behind it where the tree differs from the commit).
[[nodiscard]] const char* version_number();
[[nodiscard]] const char* version_commit();

}  // namespace patternd
