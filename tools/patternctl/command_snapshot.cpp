#include "tools/patternctl/command_snapshot.h"

#include <memory>

#include "tools/patternctl/service_option.h"

namespace patternd::tools {

void add_snapshot(CLI::App& program, Context& context) {
  auto address = std::make_shared<std::string>(kDefaultService);
  CLI::App* command =
      program.add_subcommand("snapshot", "A frame of a running service (comes later)");
  add_service_option(command, *address);
  command->callback([address, &context] {
    const auto reply = ask_service(*address, {{"command", "snapshot"}});
    if (!reply) context.fail("snapshot", reply.error());
  });
}

}  // namespace patternd::tools
