// A YAML text as it stands, before anybody reads values from it: a tree in which each key, value
// and fault has its place. Used by YamlReader alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/result.h"

namespace patternd::yaml_detail {

inline constexpr std::size_t kMostBytes = std::size_t{4} << 20;

// Counted from 1, columns in characters.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
  friend bool operator<(const Place& a, const Place& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  }
  friend bool operator==(const Place& a, const Place& b) {
    return a.line == b.line && a.column == b.column;
  }
};

struct Fault {
  Place place;
  std::string text;  // "key.path: what is wrong; what is accepted"
};

enum class Kind {
  kNull,
  kScalar,
  kSequence,
  kMap,
  kFaulty  // its fault has been recorded when the file was read
};

struct Tree;
struct Entry;

struct Tree {
  Kind kind = Kind::kNull;
  Place place;
  bool plain = true;  // a scalar without quotes
  std::string value;
  std::vector<Tree> items;
  std::vector<Entry> entries;
  // What the reading code asked for; only maps that were asked anything have unknown keys.
  mutable bool asked = false;
  mutable std::vector<std::string> known;
};

struct Entry {
  std::string key;
  Place place;
  Tree value;
};

// "is a list".
[[nodiscard]] const char* kind_in_words(const Tree& tree);

struct Document {
  std::string name;  // of the file, in messages
  std::string text;  // without a byte order mark
  std::vector<std::size_t> line_starts;
  Tree root;                          // a map
  mutable std::vector<Fault> faults;  // as they were found

  // "FILE:LINE:COLUMN: "
  [[nodiscard]] std::string at(const Place& place) const;
  // Of the byte `bytes` of line `line`, both counted from 0.
  [[nodiscard]] Place place_in_line(std::size_t line, std::size_t bytes) const;
  [[nodiscard]] Place place_of_byte(std::size_t byte) const;
  // Records a fault of the key `path`.
  void add(const Place& place, const std::string& path, const std::string& what) const;
};

// The path of `key` below `parent`: "patterns[0].angle".
[[nodiscard]] std::string join_path(const std::string& parent, std::string_view key);

// kParse or kInvalidArgument where there is nothing to read; yaml_reader.h says what that is, and
// what becomes a fault instead.
[[nodiscard]] Result<Document> parse_document(const std::string& text, const std::string& name);

}  // namespace patternd::yaml_detail
