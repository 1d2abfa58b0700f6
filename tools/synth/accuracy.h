// Judges a matcher by made scenes: what it found, missed and invented, how far off it was, and how
// far off the best possible would be. Shared by the benchmark and by its test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"
#include "tools/synth/random_scene.h"
#include "tools/synth/truth.h"

namespace patternd::synth {

// One scene of the accuracy figures: a photo's part, 48 to 256 pixels, two to four times at any
// angle and sub-pixel place on another photo, light gradient ±40 %, noise sigma 5, 800×600 pixels.
struct AccuracyScene {
  std::uint64_t seed = 0;
  Image picture;
  Image pattern;
  std::vector<InstanceTruth> truths;  // with bounds
  std::vector<double> scores;         // each instance's NCC at its true pose
};
[[nodiscard]] Result<AccuracyScene> accuracy_scene(const std::vector<Photo>& photos,
                                                   std::uint64_t seed);

// NCC of a pattern with the picture at a pose about the pattern's centre, the picture sampled
// bilinearly: in double, straight from the formula. 0 where the pattern leaves the picture.
[[nodiscard]] double score_at(const ImageView& picture, const ImageView& pattern, const Pose& pose);

struct Find {
  double x_px = 0;
  double y_px = 0;
  double angle_deg = 0;
  double score = 0;
  // What the finder thinks of its own exactness; 0: nothing.
  double x_std_px = 0;
  double y_std_px = 0;
  double angle_std_deg = 0;
};

// An instance and what was found of it.
struct Verdict {
  int size_px = 0;  // the pattern's smaller side
  InstanceTruth truth;
  double true_score = 0;
  std::optional<Find> find;
  // Find minus truth; the angle's difference lies in [−180, 180).
  double x_error_px = 0;
  double y_error_px = 0;
  double angle_error_deg = 0;
};

struct SceneVerdict {
  std::uint64_t seed = 0;
  std::vector<Verdict> instances;
  std::vector<Find> false_finds;
  std::vector<Find> look_alikes;
};

// A find belongs to the nearest instance within 3 px and 3°. What is left over is false, unless it
// lies clear of all instances (their centres half the pattern's smaller side away or more) and the
// picture there really agrees with the pattern: score_at >= min_score. A photograph may hold such a
// place by chance, a dark roof with a bright rim say; it counts as a look-alike, apart.
[[nodiscard]] SceneVerdict judge(const AccuracyScene& scene, const std::vector<Find>& finds,
                                 double min_score);

// Finds a scene's pattern; called from several threads at a time.
using Finder = std::function<Result<std::vector<Find>>(const AccuracyScene& scene)>;

// Makes the scenes of seeds first_seed … first_seed + count − 1 and has each finder, which finds
// what scores min_score, judged on them: verdicts[scene][finder]. The first error of a scene or
// finder ends it.
[[nodiscard]] Result<std::vector<std::vector<SceneVerdict>>> judge_scenes(
    const std::vector<Photo>& photos, std::uint64_t first_seed, std::size_t count, double min_score,
    const std::vector<Finder>& finders, ThreadPool& pool);

// Sums over scenes.
class AccuracyTally {
 public:
  // Instances whose own score at the true pose lies below `min_score` need not be found.
  explicit AccuracyTally(double min_score) : min_score_(min_score) {}
  void add(const SceneVerdict& verdict);

  // Root mean squares over found instances: of the distance in pixels and of the angle, and of the
  // bounds on both.
  struct Row {
    int min_size_px = 0;
    int max_size_px = 0;  // excluded
    std::int64_t found = 0;
    std::int64_t missed = 0;
    std::int64_t under_score = 0;  // not found, and not to be
    double position_px = 0;
    double angle_deg = 0;
    double position_bound_px = 0;
    double angle_bound_deg = 0;
    // Root mean squares of x, y and angle errors over the standard deviations that the finder gave
    // them (1 where they are right), and the share of those errors within two of them; 0 where it
    // gave none.
    double position_over_std = 0;
    double angle_over_std = 0;
    double within_two_std = 0;
  };
  [[nodiscard]] std::vector<Row> rows() const;  // by size
  [[nodiscard]] Row total(int min_size_px) const;
  [[nodiscard]] std::int64_t false_finds() const { return false_finds_; }
  [[nodiscard]] std::int64_t look_alikes() const { return look_alikes_; }

  // Mean error along one axis by sub-pixel phase: bin i holds true places whose fraction lies in
  // [i/8, (i+1)/8).
  static constexpr std::size_t kPhases = 8;
  struct Phase {
    std::int64_t count = 0;
    double mean_px = 0;
    double standard_error_px = 0;
  };
  enum class Axis { kX, kY };
  [[nodiscard]] std::array<Phase, kPhases> phases(Axis axis, int min_size_px) const;

  // The score that the given share [0, 1] of the finds lies under.
  [[nodiscard]] double score_quantile(double share) const;

 private:
  double min_score_;
  std::vector<Verdict> verdicts_;
  std::int64_t false_finds_ = 0;
  std::int64_t look_alikes_ = 0;
};

}  // namespace patternd::synth
