// The sections of the configuration's file, each read by a file of its own; used by
// configuration.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/configuration.h"
#include "daemon/configuration_keys.h"
#include "pipeline/yaml_reader.h"

namespace patternd {

// One section of the file; the bounds of its keys come from the table.
class Section {
 public:
  Section(YamlNode node, std::string table_path)
      : node_(std::move(node)), table_path_(std::move(table_path)) {}

  [[nodiscard]] const YamlNode& node() const { return node_; }
  [[nodiscard]] Section section(std::string_view key) const {
    return {node_[key], table_path_ + std::string(key) + "."};
  }
  // The key, which must be in the table.
  [[nodiscard]] YamlNode at(std::string_view key) const {
    (void)row(key);
    return node_[key];
  }
  [[nodiscard]] const ConfigurationKey& row(std::string_view key) const {
    return configuration_key(table_path_ + std::string(key));
  }
  void read(std::string_view key, double& value) const {
    value = at(key).number(value, row(key).low, row(key).high);
  }
  void read(std::string_view key, bool& value) const { value = at(key).boolean(value); }
  template <class Integer>
  void read_integer(std::string_view key, Integer& value) const {
    value = static_cast<Integer>(at(key).integer(value, static_cast<std::int64_t>(row(key).low),
                                                 static_cast<std::int64_t>(row(key).high)));
  }
  // True where the key is absent or says the word (`auto`, `all`).
  [[nodiscard]] bool is_word(std::string_view key, std::string_view word) const {
    const YamlNode node = at(key);
    return !node.present() || (node.is_scalar() && node.text("") == word);
  }
  // A fault where the key is there.
  void refuse_later(std::string_view key) const;

 private:
  YamlNode node_;
  std::string table_path_;
};

// A pattern's or a camera's name.
[[nodiscard]] std::string read_name(const YamlNode& node, const std::string& fallback);
// A path as seen from the file; empty where the key is absent or faulty.
[[nodiscard]] std::string read_path(const YamlNode& node, const YamlReader& reader);
// The key `roi` of a pattern or of blobs; nothing: all.
[[nodiscard]] std::optional<Roi> read_roi(const Section& section);

// `patterns`, without what their files hold.
[[nodiscard]] std::vector<Configuration::PatternEntry> read_patterns(const YamlNode& root,
                                                                     const YamlReader& reader);
// `fiducials`, which name patterns by their places in `patterns`.
[[nodiscard]] std::optional<FiducialParams> read_fiducials(
    const YamlNode& root, const std::vector<Configuration::PatternEntry>& patterns);
// `blobs`, and the path of their dark frame (empty: none).
[[nodiscard]] std::optional<BlobParams> read_blobs(const YamlNode& root);
[[nodiscard]] std::string read_dark_frame(const YamlNode& root, const YamlReader& reader,
                                          const std::optional<BlobParams>& params);
// `publish`: the addresses; who may connect, and the Unix socket's file, go into `configuration`.
[[nodiscard]] std::vector<Address> read_publish(const YamlNode& root, const YamlReader& reader,
                                                Configuration& configuration);

}  // namespace patternd
