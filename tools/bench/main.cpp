// patternd-bench, which `patternctl bench` starts: a program of its own because its peers bring
// OpenCV.
#include <cstdio>
#include <exception>

#include "cuda/device_image.h"
#include "tools/bench/bench.h"
#include "tools/bench/subjects.h"
#include "tools/standard_output.h"
#include "tools/usage_error.h"
#include "tools/version.h"

namespace patternd::bench {
namespace {

int run(int argc, char** argv) {
  CLI::App program{"Measures patternd, with the peers in the same run", "patternctl bench"};
  Options options;
  program.require_subcommand(1);
  program.fallthrough();
  program.set_version_flag(
      "--version", [] { return version_text("patternd-bench", cuda::embedded_image_names()); });
  program.add_flag("--json", options.json, "One compact JSON object a line on stdout");
  program
      .add_option("--repetitions", options.repetitions,
                  "Repetitions of each timing; 0: the subject's choice")
      ->check(tools::between(0, 100000));
  for (const AddBench add : kSubjects) add(program, options);
  return tools::parse_command_line(program, argc, argv).value_or(options.exit_code);
}

}  // namespace
}  // namespace patternd::bench

int main(int argc, char** argv) {
  try {
    return patternd::checked_output("patternctl bench", patternd::bench::run(argc, argv));
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "patternctl bench: internal error: %s\n", fault.what());
    return 1;
  }
}
