#include "tools/patternctl/command_snapshot.h"

#include <cstdio>
#include <memory>

#include "pipeline/image_file.h"
#include "tools/patternctl/service_frames.h"
#include "tools/patternctl/service_option.h"

namespace patternd::tools {
namespace {

struct SnapshotArguments {
  ServiceOption service;
  std::string output;
};

void snapshot(const SnapshotArguments& a, Context& context) {
  if (const auto named = check_image_file_name(a.output); !named)
    return context.fail("snapshot", named.error());
  const auto seq = snapshot_service(a.service, a.output);
  if (!seq) return context.fail("snapshot", seq.error());
  if (context.json) {
    const Json line = {{"type", "snapshot"}, {"file", a.output}, {"seq", *seq}};
    std::fputs(line_of(line).c_str(), stdout);
  } else {
    std::printf("%s: frame %llu\n", a.output.c_str(), static_cast<unsigned long long>(*seq));
  }
}

}  // namespace

void add_snapshot(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<SnapshotArguments>();
  CLI::App* command = program.add_subcommand(
      "snapshot", "Writes the next frame of a running service, as its camera gives it");
  add_service_option(command, arguments->service);
  command->add_option("-o,--output", arguments->output, "The picture to write: PNG or PGM")
      ->required();
  command->callback([arguments, &context] { snapshot(*arguments, context); });
}

}  // namespace patternd::tools
