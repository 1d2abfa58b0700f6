// A taught pattern at each pyramid level, and the pattern as the picture's pyramid would show it at
// a given turn: what the searches compare with. Grey values are floats on the scale of 8 bit.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/pattern.h"
#include "pipeline/row_major.h"

namespace patternd {

// The pattern upright at one level. Pixel (x, y) lies at
// `offset(x) = (x + 0.5)·2^level − width_0/2` level-0 pixels from the pattern's centre.
struct PatternLevel {
  int level = 0;
  int width = 0;
  int height = 0;
  double origin_x = 0;  // level-0 pixels from the pattern's centre to the middle of pixel (0, 0)
  double origin_y = 0;
  std::vector<float> value;     // mean of the unmasked pixels under this one
  std::vector<float> coverage;  // their share, 0..1

  [[nodiscard]] std::size_t index(int x, int y) const { return row_major(y, x, width); }
  [[nodiscard]] double spacing() const { return static_cast<double>(1 << level); }
};

// A pixel of a coarse level counts where at least this share of it is unmasked: less lets the
// background in, more loses the rim, which at the coarsest level is half of the pattern.
inline constexpr float kLeastCoverage = 0.7F;

// Levels 0..levels; stops early where a side would fall under one pixel.
[[nodiscard]] std::vector<PatternLevel> make_pattern_pyramid(const Pattern& pattern, int levels);

// The pattern turned and scaled on the pixel grid of one pyramid level of the picture; its centre
// lies at (phase_x, phase_y) in 0..1, pixel (left + x, top + y) at those integer coordinates.
struct TurnedPattern {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  std::vector<float> value;
  std::vector<std::uint8_t> counts;  // 1 where the pixel counts, else 0 (and value 0)

  [[nodiscard]] std::size_t index(int x, int y) const { return row_major(y, x, width); }
  [[nodiscard]] int pixels() const;
};

struct TurnedPose {
  double angle_deg = 0;
  double scale = 1;
  double phase_x = 0;
  double phase_y = 0;
};

// Renders what a pyramid level of a picture with the pattern at this pose contains: each pixel is
// the mean over its square of the finely sampled pattern. `pyramid` must reach down to level 0.
[[nodiscard]] TurnedPattern render_turned(const std::vector<PatternLevel>& pyramid, int level,
                                          const TurnedPose& pose);

// NCC of two renderings over the pixels that count in both; 0 where either has no contrast.
[[nodiscard]] double score_between(const TurnedPattern& a, const TurnedPattern& b);

// Positions at which a level is searched: pixel centres, or those and the places half-way between
// four of them.
enum class Sampling { kPixels, kQuincunx };

// The score that the pattern itself gets at a level when it lies worst between the samples: half a
// pixel off along both axes (kQuincunx: one), half an angle step turned. Tells how much a search at
// this level may lose.
[[nodiscard]] double worst_self_score(const std::vector<PatternLevel>& pyramid, int level,
                                      double angle_step_deg, Sampling sampling = Sampling::kPixels);

// A search whose own loss would leave less than this of a score takes the denser sampling.
inline constexpr double kLeastSelfScore = 0.75;

// Distance in level-0 pixels from the centre to the farthest pixel that counts at this level.
[[nodiscard]] double farthest_pixel(const PatternLevel& level);
// The turn in degrees that moves that pixel by one pixel of the level.
[[nodiscard]] double one_pixel_turn_deg(const PatternLevel& level);
// Pixels that count.
[[nodiscard]] int counting_pixels(const PatternLevel& level);
// Standard deviation of the pixels that count.
[[nodiscard]] double contrast_of(const PatternLevel& level);

}  // namespace patternd
