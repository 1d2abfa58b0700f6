// A strict reader of YAML: every fault of a file is collected and reported at once, each as
//   FILE:LINE:COLUMN: key.path: what is wrong; what is accepted
// (counting from 1). Keys that nobody asked for are faults too, with the nearest known key. Used
// for the configuration, calibration and pattern files.
//
//   auto reader = YamlReader::load("camera.yaml");
//   if (!reader) return …;
//   YamlNode root = reader->root();
//   const int width = root["image_size"].item(0).integer(0, 1, 32767);
//   if (auto ok = reader->finish(); !ok) return …;   // one Error, a line a fault, in the file's
//   order
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/result.h"

namespace patternd {

// A place in the document; present or not. Asking an absent node for its value gives the default
// and, where the key is required, records a fault. Wrong types and ranges record a fault and give
// the default. Copyable; valid while its reader lives.
class YamlNode {
 public:
  [[nodiscard]] bool present() const;
  [[nodiscard]] bool is_map() const;
  [[nodiscard]] bool is_empty_map() const;
  [[nodiscard]] bool is_sequence() const;
  [[nodiscard]] bool is_scalar() const;
  // The node's path as shown in messages: "patterns[0].angle".
  [[nodiscard]] std::string path() const;
  // Its place and path, for messages that turn out later: "FILE:LINE:COLUMN: patterns[0].angle".
  [[nodiscard]] std::string place() const;

  // A map's value; the key counts as known from now on. On a node that is present and no map: a
  // fault, once.
  [[nodiscard]] YamlNode operator[](std::string_view key) const;
  // Records a fault where the key is absent: "…: missing; WHAT".
  [[nodiscard]] YamlNode required(std::string_view key, std::string_view what) const;
  // All keys of a map with their values, in the file's order, all of them known from now on.
  [[nodiscard]] std::vector<std::pair<std::string, YamlNode>> entries() const;

  // A sequence's length (0 where absent; a fault where present and no sequence) and items.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] YamlNode item(std::size_t index) const;

  // Values. Bounds are inclusive; numbers must be finite, decimal, without quotes or leading zeros
  // (0x10, 010, 1_000, .inf and .nan are faults). `integer` takes decimal digits only (1e3 is a
  // fault); `boolean` true and false only. A key without a value is a fault wherever a value is
  // asked for.
  [[nodiscard]] double number(double fallback, double low, double high) const;
  [[nodiscard]] std::int64_t integer(std::int64_t fallback, std::int64_t low,
                                     std::int64_t high) const;
  [[nodiscard]] bool boolean(bool fallback) const;
  [[nodiscard]] std::string text(std::string_view fallback) const;
  // One of `words`; gives its index.
  [[nodiscard]] std::size_t choice(std::size_t fallback,
                                   const std::vector<std::string_view>& words) const;
  // A sequence of exactly `count` numbers (a fault naming both counts otherwise); nothing where
  // absent or faulty.
  [[nodiscard]] std::optional<std::vector<double>> numbers(std::size_t count, double low,
                                                           double high) const;

  // Records a fault at this node: "FILE:L:C: path: WRONG; ACCEPTED".
  void fault(const std::string& wrong, const std::string& accepted) const;

 private:
  friend class YamlReader;
  struct Impl;
  explicit YamlNode(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

class YamlReader {
 public:
  // What leaves nothing to read fails here, with the place: syntax errors, files that are empty,
  // over 4 MiB or 20,000 values or not UTF-8, nesting deeper than 32, several documents, a root
  // that is no map. All else is a fault that finish() reports with the rest: duplicate keys (the
  // first counts), tags, anchors and aliases (which can expand without bound and are not read).
  [[nodiscard]] static Result<YamlReader> load(const std::string& path);
  [[nodiscard]] static Result<YamlReader> parse(const std::string& text, const std::string& name);
  struct Impl;
  YamlReader(YamlReader&&) noexcept;
  YamlReader& operator=(YamlReader&&) noexcept;
  ~YamlReader();

  [[nodiscard]] YamlNode root() const;
  // Adds a fault for every unknown key and returns all faults, a line each, ordered by place; or
  // nothing.
  [[nodiscard]] Result<void> finish() const;
  // `relative` as seen from the folder of the file read; absolute ones stay as they are.
  [[nodiscard]] std::string resolve(const std::string& relative) const;

 private:
  explicit YamlReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The one of `words` nearest to `word` by edit distance, or empty where none is near (more than a
// third of its length).
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& words);

}  // namespace patternd
