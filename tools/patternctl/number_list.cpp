#include "tools/patternctl/number_list.h"

#include <locale>
#include <sstream>

namespace patternd::tools {

CLI::Option* add_number_list(CLI::App* command, const std::string& name,
                             std::vector<double>& values, std::size_t count,
                             const std::string& form, const std::string& description) {
  const auto parse = [&values, name, count, form](const std::string& text) {
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
    values = parsed;
  };
  return command->add_option_function<std::string>(name, parse, description)->type_name(form);
}

}  // namespace patternd::tools
