#include "tools/usage_error.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <sstream>
#include <vector>

#include "pipeline/decimal_number.h"
#include "pipeline/yaml_reader.h"

namespace patternd::tools {
namespace {

constexpr int kWrongUse = 2;

// The commands that were given, from the program to the innermost.
std::vector<const CLI::App*> given_commands(const CLI::App& program) {
  std::vector<const CLI::App*> given{&program};
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const CLI::App* command : given.back()->get_subcommands()) {
      if (command->get_name().empty()) continue;  // a group of options
      given.push_back(command);
      deeper = true;
      break;
    }
  }
  return given;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); }))
    names.push_back(command->get_name());
  return names;
}

void add_option_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); }))
    add_option_names(*group, names);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

std::string unknown_option(const std::string& word, const std::vector<const CLI::App*>& given,
                           const std::string& ask_help) {
  std::vector<std::string> known;
  for (const CLI::App* app : given) add_option_names(*app, known);
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = suggestion(name, known);
  return "unknown option " + name + (meant.empty() ? "; " + ask_help : meant);
}

CLI::Validator number_check(const std::string& name, const std::string& accepted,
                            const std::function<bool(double)>& good) {
  return CLI::Validator(
      [accepted, good](std::string& text) {
        double value = 0;
        const bool number = read_decimal(text, value) == NumberFault::kNone;
        return number && good(value) ? std::string() : "must be " + accepted + ", not " + text;
      },
      name);
}

// What is wrong with a value of an option whose type CLI11 names so; empty where nothing is.
std::string value_fault(const std::string& type, const std::string& text) {
  const auto is = [&type](const char* name) { return type.rfind(name, 0) == 0; };
  if (text.empty()) return "must not be empty";
  NumberFault fault = NumberFault::kNone;
  std::string accepted = "a decimal number, such as 2.5";
  if (is("INT") || is("UINT")) {
    accepted = "a whole number in decimal digits, such as 10";
    std::int64_t value = 0;
    fault = read_decimal(text, value);
    if (fault == NumberFault::kNone && is("UINT") && value < 0)
      return "must be 0 or above, not " + text;
  } else if (is("FLOAT")) {
    double value = 0;
    fault = read_decimal(text, value);
  }
  if (fault == NumberFault::kNone) return "";
  if (fault == NumberFault::kTooLarge) return text + " is out of range";
  return "must be " + accepted + ", not " + text;
}

// Puts the check of value_fault before each option's own.
void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    option->transform(
        CLI::Validator([type](std::string& text) { return value_fault(type, text); }, ""));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    check_values(*command);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The message for what `program.parse` threw.
std::string usage_message(const CLI::App& program, const CLI::Error& error) {
  const std::vector<const CLI::App*> given = given_commands(program);
  std::string who;
  for (const CLI::App* app : given) who += (who.empty() ? "" : " ") + app->get_name();
  const std::string ask_help = who + " --help says more";
  const std::vector<std::string> commands = command_names(*given.back());
  const std::string list = "There are: " + joined(commands);
  const bool about_words = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::vector<std::string> unknown =
      about_words ? program.remaining(true) : std::vector<std::string>();
  who += ": ";
  if (unknown.empty()) {
    if (about_words && !commands.empty()) return who + "a command is missing. " + list;
    return who + error.what() + "; " + ask_help;
  }
  const std::string& word = unknown.front();
  if (word.size() > 1 && word[0] == '-') return who + unknown_option(word, given, ask_help);
  if (commands.empty()) return who + "unexpected word \"" + word + "\"; " + ask_help;
  const std::string meant = suggestion(word, commands);
  return who + "unknown command \"" + word + "\"" + (meant.empty() ? ". " : meant + " ") + list;
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& program, int argc, char** argv) {
  check_values(program);
  try {
    program.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& wanted) {
    return program.exit(wanted);
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "%s\n", one_line(usage_message(program, error)).c_str());
    return kWrongUse;
  }
}

CLI::Validator above_zero() {
  return number_check("POSITIVE", "above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return number_check("NONNEGATIVE", "0 or above", [](double value) { return value >= 0; });
}

CLI::Validator between(double low, double high) {
  const auto text = [](double value) {
    std::ostringstream out;
    out.precision(10);
    out << value;
    return out.str();
  };
  return number_check("[" + text(low) + " - " + text(high) + "]", text(low) + " to " + text(high),
                      [low, high](double value) { return value >= low && value <= high; });
}

}  // namespace patternd::tools
