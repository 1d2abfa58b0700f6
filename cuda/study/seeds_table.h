// A table of figures, as text for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace patternd::cuda {

struct SeedColumn {
  std::string key;      // in JSON: "median_us"
  std::string heading;  // in text: "median us"
  int decimals = 1;     // in text
};

class SeedTable {
 public:
  // `name` is the table's key in JSON, `title` the line above it in text.
  SeedTable(std::string name, std::string title, std::vector<SeedColumn> columns);

  // One row; `values` by column, fewer than there are columns leave the last ones empty.
  void add(const std::string& what, const std::vector<std::optional<double>>& values);

  [[nodiscard]] const std::string& name() const { return name_; }
  // Title, headings and rows, a line each; "-" where there is no value.
  [[nodiscard]] std::string text() const;
  // {"bench":"seeds","table":name,"what":row,key:value…} a line for each row; no key where there is
  // no value.
  [[nodiscard]] std::string json() const;

 private:
  struct Row {
    std::string what;
    std::vector<std::optional<double>> values;
  };
  std::string name_;
  std::string title_;
  std::vector<SeedColumn> columns_;
  std::vector<Row> rows_;
};

}  // namespace patternd::cuda
