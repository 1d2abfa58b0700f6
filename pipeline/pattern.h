// A taught pattern: its picture, mask and reference point, and what teaching found out about how to
// search for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/result.h"

namespace patternd {

struct Pattern {
  std::string name;
  Image picture;     // kGray8 or kGray16
  Image mask;        // kGray8: 0 does not count, anything else does; empty: every pixel counts
  double ref_x = 0;  // reference point in pattern pixels, by default ((w−1)/2, (h−1)/2)
  double ref_y = 0;
  int levels = 0;             // pyramid levels above level 0 that a search starts at
  double angle_step_deg = 1;  // at that level: moves the farthest unmasked pixel by about one pixel
  bool round = false;         // looks the same at every angle: searched at one, its angle unknown
  double contrast = 0;        // standard deviation of the unmasked pixels, grey levels of 8 bit
  std::string calibration;    // the calibration file it was taught with, or empty
};

struct TeachOptions {
  std::optional<double> ref_x, ref_y;  // in pattern pixels
  std::optional<int> levels;
  std::optional<double> angle_step_deg;
  std::string calibration;
};

// Teaches from a picture (the rectangle already cut out) and a mask (empty: none) of the same size.
// Refuses with the reason: sides under 8 or over 4096 pixels, fewer than 64 unmasked pixels,
// contrast under 2 grey levels, structure in one direction only (its place along a stripe cannot be
// told). What looks the same at every angle (a disc) is taught as `round`.
[[nodiscard]] Result<Pattern> teach_pattern(const std::string& name, const ImageView& picture,
                                            const ImageView& mask, const TeachOptions& options);

// NAME.yaml with its pictures beside it, or a plain picture, which is taught on loading.
[[nodiscard]] Result<Pattern> load_pattern(const std::string& path, const std::string& name);
// Writes `path` (YAML) and its PNGs beside it, each whole or not at all.
// The files that save_pattern(path, …) writes: the YAML file, its picture, its mask. A PNG in the
// place of the latter two that belongs to no pattern file of this name is kInvalidArgument.
struct PatternFiles {
  std::string yaml;
  std::string picture;
  std::string mask;
};
[[nodiscard]] Result<PatternFiles> pattern_files(const std::string& path, bool masked);
[[nodiscard]] Result<void> save_pattern(const std::string& path, const Pattern& pattern);

}  // namespace patternd
