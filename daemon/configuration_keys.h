// Every key of the configuration in one table: the parser takes its bounds from here, and
// config/README.md its list (a test compares).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace patternd {

struct ConfigurationKey {
  std::string_view path;      // "patterns[].min_score"
  std::string_view fallback;  // as YAML, as in the effective configuration; "" where the key must
                              // be given or has no value by itself
  std::string_view accepted;  // in words
  double low = 0;             // bounds of a number, where it is one
  double high = 0;
  std::string_view meaning;  // with its unit
};

[[nodiscard]] const std::vector<ConfigurationKey>& configuration_keys();
// The row of `path`, which must be in the table.
[[nodiscard]] const ConfigurationKey& configuration_key(std::string_view path);

// Keys that have a place in the configuration but come with a later version, and are refused by
// name until then.
[[nodiscard]] const std::vector<std::string_view>& later_keys();

// The table as Markdown.
[[nodiscard]] std::string configuration_key_table();

}  // namespace patternd
