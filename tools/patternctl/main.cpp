// patternctl: everything that a person does by hand, on the service's own library.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cuda/device_image.h"
#include "tools/patternctl/command.h"
#include "tools/patternctl/commands.h"
#include "tools/patternctl/launch.h"
#include "tools/standard_output.h"
#include "tools/usage_error.h"
#include "tools/version.h"

namespace patternd::tools {

void Context::fail(const std::string& command, const Error& error) {
  std::fprintf(stderr, "patternctl %s: %s\n", command.c_str(), error.message.c_str());
  const bool wrong_use = error.code == ErrorCode::kInvalidArgument ||
                         error.code == ErrorCode::kNotFound || error.code == ErrorCode::kParse;
  exit_code = wrong_use ? kExitUsage : kExitFailed;
}

namespace {

// Runs an outside program where the first word that is no option names one; else returns.
void run_outside_command(int argc, char** argv, Context& context) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return word.rfind('-', 0) != 0; });
  if (first == words.end()) return;
  for (const OutsideCommand& command : kOutsideCommands) {
    if (*first != command.name) continue;
    words.erase(first);
    context.fail(command.name, launch(command.program, words, command.package));
    return;
  }
}

int run(int argc, char** argv) {
  CLI::App program{"Works with patternd's patterns, calibrations, recordings and running service",
                   "patternctl"};
  Context context;
  program.require_subcommand(1);
  program.fallthrough();
  program.set_version_flag("--version",
                           [] { return version_text("patternctl", cuda::embedded_image_names()); });
  program.add_flag("--json", context.json, "One compact JSON object a line on stdout");
  for (const AddCommand add : kCommands) add(program, context);
  for (const OutsideCommand& command : kOutsideCommands) {
    program.add_subcommand(command.name, command.description);
  }
  run_outside_command(argc, argv, context);
  if (context.exit_code != kExitGood) return context.exit_code;
  return parse_command_line(program, argc, argv).value_or(context.exit_code);
}

}  // namespace
}  // namespace patternd::tools

int main(int argc, char** argv) {
  try {
    return patternd::checked_output("patternctl", patternd::tools::run(argc, argv));
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "patternctl: internal error: %s; please report it with the command line\n",
                 fault.what());
    return patternd::tools::kExitFailed;
  }
}
