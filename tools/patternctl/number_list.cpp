#include "tools/patternctl/number_list.h"

#include <locale>
#include <sstream>

namespace patternd::tools {
namespace {

// Exactly `count` numbers, or the message that CLI11 prints.
std::vector<double> parse(const std::string& name, const std::string& text, std::size_t count,
                          const std::string& form) {
  std::istringstream words(text);
  words.imbue(std::locale::classic());
  std::vector<double> parsed;
  bool good = !text.empty() && text.back() != ',';
  for (std::string word; good && std::getline(words, word, ',');) {
    std::istringstream number(word);
    number.imbue(std::locale::classic());
    double value = 0;
    good = (number >> value) && number.peek() == std::istringstream::traits_type::eof();
    parsed.push_back(value);
  }
  if (!good || parsed.size() != count) {
    throw CLI::ValidationError(name, "\"" + text + "\" is not " + form + ": " +
                                         std::to_string(count) + " numbers with commas between");
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

CLI::Option* add_number_pairs(CLI::App* command, const std::string& name,
                              std::vector<double>& values, const std::string& form,
                              const std::string& description) {
  return command
      ->add_option_function<std::vector<std::string>>(
          name,
          [&values, name, form](const std::vector<std::string>& texts) {
            values.clear();
            for (const std::string& text : texts) {
              const std::vector<double> pair = parse(name, text, 2, form);
              values.insert(values.end(), pair.begin(), pair.end());
            }
          },
          description)
      ->type_name(form)
      ->allow_extra_args(false);
}

}  // namespace patternd::tools
