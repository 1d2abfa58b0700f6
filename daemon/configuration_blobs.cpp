// `blobs`: which pixels are foreground, and which components are reported.
#include <algorithm>

#include "daemon/configuration_sections.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

void read_threshold(const Section& blobs, BlobParams& params) {
  const YamlNode node = blobs.at("threshold");
  const ConfigurationKey& row = blobs.row("threshold");
  if (node.is_map()) {
    params.mode = BlobParams::Mode::kAdaptive;
    const YamlNode adaptive = node.required("adaptive", "must be [radius, offset]");
    if (const auto numbers = adaptive.numbers(2, -row.high, row.high)) {
      params.adaptive_offset = (*numbers)[1];
      params.adaptive_radius =
          static_cast<int>(adaptive.item(0).integer(params.adaptive_radius, 1, 1000));
    }
  } else if (node.is_scalar() && node.text("") == "otsu") {
    params.mode = BlobParams::Mode::kOtsu;
  } else if (node.is_scalar() && node.text("").find_first_of("0123456789") == std::string::npos) {
    node.fault("is " + in_quotes(node.text("")),
               "must be a number from 0 to 65535, otsu or {adaptive: [radius, offset]}");
  } else {
    blobs.read("threshold", params.threshold);
  }
}

// Which components are left out.
void read_blob_filters(const Section& blobs, BlobParams& params) {
  blobs.read_integer("min_area", params.min_area);
  if (!blobs.is_word("max_area", "none")) blobs.read_integer("max_area", params.max_area);
  blobs.read_integer("min_width", params.min_width);
  if (!blobs.is_word("max_width", "none")) blobs.read_integer("max_width", params.max_width);
  blobs.read_integer("min_height", params.min_height);
  if (!blobs.is_word("max_height", "none")) blobs.read_integer("max_height", params.max_height);
  blobs.read("min_elongation", params.min_elongation);
  if (!blobs.is_word("max_elongation", "none")) blobs.read("max_elongation", params.max_elongation);
  blobs.read("min_peak", params.min_peak);
  const auto check_order = [&blobs](const char* key, auto low, auto high) {
    if (low > high)
      blobs.at(key).fault("is less than the least", "must not be below its min_ counterpart");
  };
  check_order("max_area", params.min_area, params.max_area);
  check_order("max_width", params.min_width, params.max_width);
  check_order("max_height", params.min_height, params.max_height);
  check_order("max_elongation", params.min_elongation, params.max_elongation);
}

}  // namespace

std::optional<BlobParams> read_blobs(const YamlNode& root) {
  if (!root["blobs"].present()) return std::nullopt;
  const Section blobs(root["blobs"], "blobs.");
  BlobParams params;
  read_threshold(blobs, params);
  if (blobs.at("similarity").present()) {
    params.mode = BlobParams::Mode::kSimilarity;
    blobs.read("similarity", params.similarity);
    for (const char* other : {"threshold", "below"}) {
      if (blobs.at(other).present())
        blobs.at(other).fault("stands beside similarity", "keep one of the two");
    }
  }
  blobs.read("below", params.below);
  params.connectivity = blobs.at("connectivity").choice(0, {"8", "4"}) == 0 ? 8 : 4;
  read_blob_filters(blobs, params);
  blobs.read_integer("max_blobs", params.max_blobs);
  params.reference = static_cast<BlobParams::Reference>(
      blobs.at("reference").choice(0, {"off", "dark", "alternate"}));
  params.roi = read_roi(blobs);
  return params;
}

std::string read_dark_frame(const YamlNode& root, const YamlReader& reader,
                            const std::optional<BlobParams>& params) {
  if (!params) return "";
  const Section blobs(root["blobs"], "blobs.");
  const YamlNode file = blobs.at("dark_frame");
  const bool is_dark = params->reference == BlobParams::Reference::kDark;
  if (file.present() && !is_dark)
    file.fault("stands without reference: dark", "leave it out, or set reference: dark");
  if (!file.present() && is_dark)
    (void)blobs.node().required("dark_frame",
                                "reference: dark needs a picture taken without light");
  return read_path(file, reader);
}

}  // namespace patternd
