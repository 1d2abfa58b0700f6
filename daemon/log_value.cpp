#include "daemon/log_value.h"

#include <algorithm>

#include "pipeline/utf8.h"

namespace patternd {

std::string log_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += " | ";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + printable(escaped) + '"';
}

std::string log_value(std::string_view text) {
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7F && c != '"' && c != '\\' && c != '=';
  };
  const bool word = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                    utf8_first_fault(text) == std::string_view::npos;
  return word ? std::string(text) : log_quoted(text);
}

}  // namespace patternd
