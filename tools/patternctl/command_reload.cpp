#include "tools/patternctl/command_reload.h"

#include <cstdio>
#include <memory>

#include "tools/patternctl/service_option.h"

namespace patternd::tools {
namespace {

std::string in_words(const Json& reply) {
  const Json seq = reply.value("first_seq", Json());
  return seq.is_number() ? "accepted; frame " + seq.dump() + " is the first under it\n"
                         : "accepted; no frame has come since\n";
}

}  // namespace

void add_reload(CLI::App& program, Context& context) {
  auto service = std::make_shared<ServiceOption>();
  CLI::App* command = program.add_subcommand(
      "reload", "Makes a running service read its configuration again, whole or not at all");
  add_service_option(command, *service);
  command->callback([service, &context] {
    // A camera that changes is opened first, and that may take its time.
    const auto reply = ask_service(*service, {{"command", "reload"}}, 60'000);
    if (!reply) return context.fail("reload", reply.error());
    std::fputs((context.json ? line_of(*reply) : in_words(*reply)).c_str(), stdout);
  });
}

}  // namespace patternd::tools
