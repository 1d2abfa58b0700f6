#include "tools/patternctl/command_latency.h"

#include <cstdio>
#include <memory>

#include "daemon/latency_report.h"
#include "tools/patternctl/service_option.h"

namespace patternd::tools {

void add_latency(CLI::App& program, Context& context) {
  auto service = std::make_shared<ServiceOption>();
  CLI::App* command =
      program.add_subcommand("latency", "Shows how long each stage takes in a running service");
  add_service_option(command, *service);
  command->callback([service, &context] {
    const auto latency = ask_service(*service, {{"command", "latency"}});
    if (!latency) return context.fail("latency", latency.error());
    std::fputs((context.json ? line_of(*latency) : latency_table(*latency)).c_str(), stdout);
  });
}

}  // namespace patternd::tools
