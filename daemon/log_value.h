// Values of the log's key=value lines.
#pragma once

#include <string>
#include <string_view>

namespace patternd {

// `text` in quotes, so that a line's reader finds its end: \ stands before " and \, other control
// characters and malformed bytes are \xNN; a text of several lines is one, with | between them.
//   log_quoted("is \"foo\"") == "\"is \\\"foo\\\"\""
[[nodiscard]] std::string log_quoted(std::string_view text);

// `text` as it is where it is one plain word, else quoted.
//   log_value("cam0") == "cam0"; log_value("my camera") == "\"my camera\""
[[nodiscard]] std::string log_value(std::string_view text);

}  // namespace patternd
