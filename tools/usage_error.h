// What was wrong with a command line, in one line that says what would be right; for every program.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace patternd::tools {

// Reads the command line, by the rules of all our programs: numbers are decimal (CLI11's own are
// octal with a 0 before them, and nan passes), no value is empty. Gives the exit code where the
// program has nothing more to do: 0 after --help and --version, 2 with one line on stderr:
//   patternctl: unknown command "mach"; did you mean match? There are: teach, match, …
//   patternctl match: unknown option --min_score; did you mean --min-score?
//   patternctl match: --threads: must be a whole number in decimal digits, such as 10, not 0x10; …
// A word that nobody knows comes before what is missing: it is most often the cause.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& program, int argc, char** argv);

// Checks for CLI11's options. (Its own name the limits of double, and let NaN pass.)
[[nodiscard]] CLI::Validator above_zero();
[[nodiscard]] CLI::Validator not_negative();
[[nodiscard]] CLI::Validator between(double low, double high);

}  // namespace patternd::tools
