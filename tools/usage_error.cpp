#include "tools/usage_error.h"

#include <functional>
#include <locale>
#include <sstream>
#include <vector>

#include "pipeline/yaml_reader.h"

namespace patternd::tools {
namespace {

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
        std::istringstream words(text);
        words.imbue(std::locale::classic());
        double value = 0;
        const bool number =
            (words >> value) && words.peek() == std::istringstream::traits_type::eof();
        return number && good(value) ? std::string() : "must be " + accepted + ", not " + text;
      },
      name);
}

}  // namespace

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
