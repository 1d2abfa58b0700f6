// What a command of patternctl is: a function that adds its subcommand, options and action to the
// program.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "pipeline/result.h"

namespace patternd::tools {

// The program's exit codes, and what its commands throw to nobody: a command returns them.
enum ExitCode : int { kExitGood = 0, kExitFailed = 1, kExitUsage = 2 };

// Shared by all commands.
struct Context {
  bool json = false;  // --json: one compact object a line on stdout
  int exit_code = kExitGood;
  // Prints "patternctl COMMAND: message" on stderr and sets the exit code: 2 for kInvalidArgument,
  // kNotFound and kParse of what the user gave on the command line or in a configuration, else 1.
  void fail(const std::string& command, const Error& error);
};

// Adds one command. Its action runs when the command line names it:
//   void add_rectify(CLI::App& program, Context& context);
using AddCommand = void (*)(CLI::App& program, Context& context);

}  // namespace patternd::tools
