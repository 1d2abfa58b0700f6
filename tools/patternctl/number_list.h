// Options whose value is one word of several numbers: --roi 10,20,300,200.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace patternd::tools {

// Adds such an option: exactly `count` numbers with commas between. (CLI11's own lists would take
// the word behind the option too, a picture's name, say.) `form` names them in the help,
// "X,Y,W,H". `values` must live as long as the command.
CLI::Option* add_number_list(CLI::App* command, const std::string& name,
                             std::vector<double>& values, std::size_t count,
                             const std::string& form, const std::string& description);

// The same, and the option may come again: `values` receives all numbers in order.
CLI::Option* add_number_lists(CLI::App* command, const std::string& name,
                              std::vector<double>& values, std::size_t count,
                              const std::string& form, const std::string& description);

}  // namespace patternd::tools
