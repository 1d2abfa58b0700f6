#include "tools/patternctl/number_list.h"

#include <sstream>

#include "pipeline/decimal_number.h"

namespace patternd::tools {
namespace {

// Exactly `count` numbers, or the message that CLI11 prints.
std::vector<double> parse(const std::string& name, const std::string& text, std::size_t count,
                          const std::string& form) {
  std::istringstream words(text);
  std::vector<double> parsed;
  bool good = !text.empty() && text.back() != ',';
  for (std::string word; good && std::getline(words, word, ',');) {
    double value = 0;
    good = read_decimal(word, value) == NumberFault::kNone;
    parsed.push_back(value);
  }
  if (!good || parsed.size() != count) {
    throw CLI::ValidationError(name, "\"" + text + "\" is not " + form + ": " +
                                         std::to_string(count) +
                                         " decimal numbers with commas between");
  }
  return parsed;
}

}  // namespace

CLI::Option* add_number_list(CLI::App* command, const std::string& name,
                             std::vector<double>& values, std::size_t count,
                             const std::string& form, const std::string& description) {
  return command
      ->add_option_function<std::string>(
          name,
          [&values, name, count, form](const std::string& text) {
            values = parse(name, text, count, form);
          },
          description)
      ->type_name(form);
}

CLI::Option* add_number_lists(CLI::App* command, const std::string& name,
                              std::vector<double>& values, std::size_t count,
                              const std::string& form, const std::string& description) {
  return command
      ->add_option_function<std::vector<std::string>>(
          name,
          [&values, name, count, form](const std::vector<std::string>& texts) {
            values.clear();
            for (const std::string& text : texts) {
              const std::vector<double> list = parse(name, text, count, form);
              values.insert(values.end(), list.begin(), list.end());
            }
          },
          description)
      ->type_name(form)
      ->allow_extra_args(false);
}

}  // namespace patternd::tools
