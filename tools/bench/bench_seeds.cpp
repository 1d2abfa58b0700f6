// The seed documents' variants beside the service's kernels, on a GPU.
//
//   patternctl bench seeds --size 1024
#include <cstdio>
#include <memory>
#include <string>

#include "cuda/device_image.h"
#include "cuda/study/seeds.h"
#include "tools/bench/bench.h"
#include "tools/bench/subjects.h"
#include "tools/usage_error.h"

namespace patternd::bench {
namespace {

struct Arguments {
  cuda::SeedOptions options;
  std::string table;  // empty: all
};

void complain(Options& options, const Error& error) {
  std::fprintf(stderr, "patternctl bench seeds: %s\n", error.message.c_str());
  options.exit_code = error.code == ErrorCode::kInvalidArgument ? 2 : 1;
}

void run(const Arguments& arguments, Options& options) {
  cuda::SeedOptions seeds = arguments.options;
  if (options.repetitions > 0) seeds.repetitions = options.repetitions;
  const auto bench = cuda::SeedBench::open(seeds);
  if (!bench) return complain(options, bench.error());
  if (!options.json) std::printf("%s\n%s\n", machine_line().c_str(), bench->description().c_str());
  for (const cuda::SeedStudy& study : cuda::kSeedStudies) {
    if (!arguments.table.empty() && arguments.table != study.name) continue;
    const auto table = cuda::run_seed_study(study, *bench);
    if (!table) {
      complain(options, table.error());  // the other tables may still be right
      continue;
    }
    const std::string text = options.json ? table->json() : "\n" + table->text();
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace

void add_seeds(CLI::App& program, Options& options) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "seeds",
      "The thesis's variants on a GPU, each checked against the CPU, beside the service's");
  command->add_option("--size", arguments->options.size, "Side of the square pictures")
      ->check(tools::between(512, 8192))
      ->capture_default_str();
  arguments->options.names.image = "--image";
  command
      ->add_option("--image", arguments->options.image,
                   "Device image: auto, universal, sm_NN or compute_NN")
      ->check(CLI::Validator(
          [](std::string& word) {
            const bool known = cuda::is_image_word(word);
            return known ? std::string() : cuda::image_word_rule() + (", not " + word);
          },
          ""))
      ->capture_default_str();
  std::vector<std::string> names;
  for (const cuda::SeedStudy& study : cuda::kSeedStudies) names.emplace_back(study.name);
  command->add_option("--table", arguments->table, "One table only")->check(CLI::IsMember(names));
  command->callback([arguments, &options] { run(*arguments, options); });
}

}  // namespace patternd::bench
