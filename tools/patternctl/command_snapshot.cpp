#include "tools/patternctl/command_snapshot.h"

#include <memory>

#include "tools/patternctl/service_option.h"

namespace patternd::tools {

void add_snapshot(CLI::App& program, Context& context) {
  auto service = std::make_shared<ServiceOption>();
  CLI::App* command =
      program.add_subcommand("snapshot", "A frame of a running service (comes later)");
  add_service_option(command, *service);
  command->callback([service, &context] {
    const auto reply = ask_service(*service, {{"command", "snapshot"}});
    if (!reply) context.fail("snapshot", reply.error());
  });
}

}  // namespace patternd::tools
