// --version of every program.
#pragma once

#include <string>

namespace patternd {

// "patternd 0.1.0 (commit abc1234)\nbackends: cpu cuda\ndevice images: universal sm_90\n" for
// `program`.
[[nodiscard]] std::string version_text(const std::string& program);
// "0.1.0".
[[nodiscard]] const char* version_number();

}  // namespace patternd
