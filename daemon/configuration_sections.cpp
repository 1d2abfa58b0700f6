#include "daemon/configuration_sections.h"

#include "pipeline/utf8.h"

namespace patternd {

void Section::refuse_later(std::string_view key) const {
  if (node_[key].present())
    node_[key].fault("comes with a later version of patternd", "leave the key out");
}

std::string read_name(const YamlNode& node, const std::string& fallback) {
  std::string name = node.text(fallback);
  if (!is_name(name)) node.fault("is " + in_quotes(name) + name_flaw(name), name_rule());
  return name;
}

std::string read_path(const YamlNode& node, const YamlReader& reader) {
  if (!node.present()) return "";
  const std::string path = node.text("");
  if (!path.empty()) return reader.resolve(path);
  if (node.is_scalar()) node.fault("is empty", "must be a path");
  return "";
}

std::optional<Roi> read_roi(const Section& section) {
  if (section.is_word("roi", "all")) return std::nullopt;
  const YamlNode node = section.at("roi");
  const auto numbers = node.numbers(4, section.row("roi").low, section.row("roi").high);
  if (!numbers) return std::nullopt;
  const Roi roi{(*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]};
  if (roi.width > 0 && roi.height > 0) return roi;
  node.fault("has no area", "must be [x, y, width, height] with a width and height above 0");
  return std::nullopt;
}

}  // namespace patternd
