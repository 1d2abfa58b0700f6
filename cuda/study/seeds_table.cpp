#include "cuda/study/seeds_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

namespace patternd::cuda {
namespace {

std::string number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string padded_left(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

SeedTable::SeedTable(std::string name, std::string title, std::vector<SeedColumn> columns)
    : name_(std::move(name)), title_(std::move(title)), columns_(std::move(columns)) {}

void SeedTable::add(const std::string& what, const std::vector<std::optional<double>>& values) {
  Row row{what, values};
  row.values.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string SeedTable::text() const {
  std::size_t first = name_.size();
  for (const Row& row : rows_) first = std::max(first, row.what.size());
  std::vector<std::vector<std::string>> lines(rows_.size() + 1);
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    lines[0].push_back(columns_[c].heading);
    std::size_t width = columns_[c].heading.size();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::optional<double>& value = rows_[r].values[c];
      lines[r + 1].push_back(value ? number(*value, columns_[c].decimals) : "-");
      width = std::max(width, lines[r + 1].back().size());
    }
    widths.push_back(width);
  }
  std::string out = title_ + "\n";
  for (std::size_t r = 0; r < lines.size(); ++r) {
    std::string what = r == 0 ? name_ : rows_[r - 1].what;
    what.resize(first, ' ');
    out += what;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      out += "  " + padded_left(lines[r][c], widths[c]);
    out += "\n";
  }
  return out;
}

std::string SeedTable::json() const {
  std::string out;
  for (const Row& row : rows_) {
    nlohmann::ordered_json line = {{"bench", "seeds"}, {"table", name_}, {"what", row.what}};
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (row.values[c]) line[columns_[c].key] = *row.values[c];
    out += line.dump() + "\n";
  }
  return out;
}

}  // namespace patternd::cuda
