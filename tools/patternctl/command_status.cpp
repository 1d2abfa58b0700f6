#include "tools/patternctl/command_status.h"

#include <cstdio>
#include <memory>

#include "tools/patternctl/service_option.h"

namespace patternd::tools {
namespace {

// "key: value", nested ones indented under their key.
std::string indented(const Json& object, const std::string& indent) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += indent + key + ":";
    if (value.is_object()) {
      text += "\n" + indented(value, indent + "  ");
      continue;
    }
    const bool plain = value.is_string();
    text += " " +
            (plain ? value.get<std::string>()
                   : value.dump(-1, ' ', false, Json::error_handler_t::replace)) +
            "\n";
  }
  return text;
}

}  // namespace

void add_status(CLI::App& program, Context& context) {
  auto service = std::make_shared<ServiceOption>();
  CLI::App* command = program.add_subcommand("status", "Says what a running service is doing");
  add_service_option(command, *service);
  command->callback([service, &context] {
    const auto status = ask_service(*service, {{"command", "status"}});
    if (!status) return context.fail("status", status.error());
    std::fputs((context.json ? line_of(*status) : indented(*status, "")).c_str(), stdout);
  });
}

}  // namespace patternd::tools
