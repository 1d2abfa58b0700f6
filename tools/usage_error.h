// What was wrong with a command line, in one line that says what would be right; for every program.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace patternd::tools {

// The message for what `program.parse` threw:
//   patternctl: unknown command "mach"; did you mean match? There are: teach, match, …
//   patternctl match: unknown option --min_score; did you mean --min-score?
// A word that nobody knows comes before what is missing: it is most often the cause.
[[nodiscard]] std::string usage_message(const CLI::App& program, const CLI::Error& error);

// Checks for CLI11's options. (Its own name the limits of double, and let NaN pass.)
[[nodiscard]] CLI::Validator above_zero();
[[nodiscard]] CLI::Validator not_negative();
[[nodiscard]] CLI::Validator between(double low, double high);

}  // namespace patternd::tools
