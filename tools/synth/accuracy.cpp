#include "tools/synth/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tools/synth/portable_math.h"
#include "tools/synth/random.h"

namespace patternd::synth {
namespace {

constexpr double kReachPx = 3;
constexpr double kReachDeg = 3;
// Bounds of the table's rows; the last row takes everything from its bound on.
constexpr std::array<int, 5> kSizeClasses = {48, 64, 96, 128, 192};
constexpr std::uint64_t kCountStream = 5ULL << 40U;

double angle_difference_deg(double a, double b) {
  const double difference = a - b;
  return difference - 360 * std::floor((difference + 180) / 360);
}

double bilinear(const ImageView& picture, double x, double y) {
  const int x0 = std::min(static_cast<int>(x), picture.width - 2);
  const int y0 = std::min(static_cast<int>(y), picture.height - 2);
  const double fx = x - x0;
  const double fy = y - y0;
  const std::uint8_t* above = picture.row<std::uint8_t>(y0) + x0;
  const std::uint8_t* below = picture.row<std::uint8_t>(y0 + 1) + x0;
  return (above[0] * (1 - fx) + above[1] * fx) * (1 - fy) +
         (below[0] * (1 - fx) + below[1] * fx) * fy;
}

void count(AccuracyTally::Row& row, const Verdict& verdict, double min_score) {
  if (!verdict.find) {
    ++(verdict.true_score < min_score ? row.under_score : row.missed);
    return;
  }
  ++row.found;
  row.position_px +=
      verdict.x_error_px * verdict.x_error_px + verdict.y_error_px * verdict.y_error_px;
  row.angle_deg += verdict.angle_error_deg * verdict.angle_error_deg;
  const PoseBound bound = verdict.truth.bound.value_or(PoseBound{});
  row.position_bound_px += bound.x_std_px * bound.x_std_px + bound.y_std_px * bound.y_std_px;
  row.angle_bound_deg += bound.angle_std_deg * bound.angle_std_deg;
}

// Errors over the standard deviations that came with them.
void compare_with_std(AccuracyTally::Row& row, const std::vector<Verdict>& verdicts) {
  double position = 0;
  double angle = 0;
  int within = 0;
  int count = 0;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.find || verdict.size_px < row.min_size_px || verdict.size_px >= row.max_size_px)
      continue;
    const Find& find = *verdict.find;
    if (!(find.x_std_px > 0 && find.y_std_px > 0 && find.angle_std_deg > 0)) continue;
    const std::array<double, 3> ratios = {verdict.x_error_px / find.x_std_px,
                                          verdict.y_error_px / find.y_std_px,
                                          verdict.angle_error_deg / find.angle_std_deg};
    position += ratios[0] * ratios[0] + ratios[1] * ratios[1];
    angle += ratios[2] * ratios[2];
    for (const double ratio : ratios) within += std::abs(ratio) <= 2 ? 1 : 0;
    ++count;
  }
  if (count == 0) return;
  row.position_over_std = std::sqrt(position / (2.0 * count));
  row.angle_over_std = std::sqrt(angle / count);
  row.within_two_std = within / (3.0 * count);
}

// Sums of squares become root mean squares.
void finish(AccuracyTally::Row& row) {
  const double found = std::max(1.0, static_cast<double>(row.found));
  for (double* value :
       {&row.position_px, &row.angle_deg, &row.position_bound_px, &row.angle_bound_deg})
    *value = std::sqrt(*value / found);
}

}  // namespace

Result<AccuracyScene> accuracy_scene(const std::vector<Photo>& photos, std::uint64_t seed) {
  RandomSceneOptions options;
  options.instance_count = 2 + static_cast<int>(Random(seed, kCountStream).below(3));
  const auto scene = random_scene(photos, options, seed);
  if (!scene) return tl::make_unexpected(scene.error());
  const auto renderer = SceneRenderer::create(*scene, nullptr);
  if (!renderer) return tl::make_unexpected(renderer.error());
  auto picture = renderer->render(0);
  if (!picture) return tl::make_unexpected(picture.error());
  auto pattern = picture_of(scene->patterns[0]);
  if (!pattern) return tl::make_unexpected(pattern.error());
  auto truths = truth_of(*renderer, 0, true);
  if (!truths) return tl::make_unexpected(truths.error());
  AccuracyScene made{seed, std::move(*picture), std::move(*pattern), std::move(*truths), {}};
  for (const Instance& instance : scene->instances) {
    made.scores.push_back(score_at(std::as_const(made.picture).view(),
                                   std::as_const(made.pattern).view(), instance.pose));
  }
  return made;
}

double score_at(const ImageView& picture, const ImageView& pattern, const Pose& pose) {
  const SinCos turn = sin_cos_deg(pose.angle_deg);
  double n = 0, s = 0, p = 0, ss = 0, pp = 0, sp = 0;
  for (int v = 0; v < pattern.height; ++v) {
    for (int u = 0; u < pattern.width; ++u) {
      const double du = pose.scale * (u - (pattern.width - 1) / 2.0);
      const double dv = pose.scale * (v - (pattern.height - 1) / 2.0);
      const double x = pose.x_px + turn.cos * du - turn.sin * dv;
      const double y = pose.y_px + turn.sin * du + turn.cos * dv;
      if (x < 0 || y < 0 || x > picture.width - 1 || y > picture.height - 1) return 0;
      const double seen = bilinear(picture, x, y);
      const double taught = pattern.row<std::uint8_t>(v)[u];
      n += 1;
      s += seen;
      p += taught;
      ss += seen * seen;
      pp += taught * taught;
      sp += seen * taught;
    }
  }
  const double energy = (ss - s * s / n) * (pp - p * p / n);
  return energy > 0 ? (sp - s * p / n) / std::sqrt(energy) : 0;
}

namespace {

bool is_look_alike(const AccuracyScene& scene, const Find& find, double min_score) {
  const double clear = std::min(scene.pattern.width(), scene.pattern.height()) / 2.0;
  for (const InstanceTruth& truth : scene.truths) {
    if (std::hypot(find.x_px - truth.x_px, find.y_px - truth.y_px) < clear) return false;
  }
  return !scene.picture.empty() && score_at(scene.picture.view(), scene.pattern.view(),
                                            {find.x_px, find.y_px, find.angle_deg, 1}) >= min_score;
}

}  // namespace

SceneVerdict judge(const AccuracyScene& scene, const std::vector<Find>& finds, double min_score) {
  SceneVerdict verdict;
  verdict.seed = scene.seed;
  for (std::size_t i = 0; i < scene.truths.size(); ++i) {
    Verdict one;
    one.size_px = std::min(scene.pattern.width(), scene.pattern.height());
    one.truth = scene.truths[i];
    one.true_score = scene.scores[i];
    verdict.instances.push_back(std::move(one));
  }
  for (const Find& find : finds) {
    Verdict* nearest = nullptr;
    double nearest_px = kReachPx;
    for (Verdict& one : verdict.instances) {
      const double distance = std::hypot(find.x_px - one.truth.x_px, find.y_px - one.truth.y_px);
      const double turn = angle_difference_deg(find.angle_deg, one.truth.angle_deg);
      if (one.find || distance > nearest_px || std::abs(turn) > kReachDeg) continue;
      nearest = &one;
      nearest_px = distance;
    }
    if (nearest == nullptr) {
      (is_look_alike(scene, find, min_score) ? verdict.look_alikes : verdict.false_finds)
          .push_back(find);
      continue;
    }
    nearest->find = find;
    nearest->x_error_px = find.x_px - nearest->truth.x_px;
    nearest->y_error_px = find.y_px - nearest->truth.y_px;
    nearest->angle_error_deg = angle_difference_deg(find.angle_deg, nearest->truth.angle_deg);
  }
  return verdict;
}

Result<std::vector<std::vector<SceneVerdict>>> judge_scenes(const std::vector<Photo>& photos,
                                                            std::uint64_t first_seed,
                                                            std::size_t count, double min_score,
                                                            const std::vector<Finder>& finders,
                                                            ThreadPool& pool) {
  using Verdicts = std::vector<SceneVerdict>;
  const auto judge_one = [&](std::uint64_t seed) -> Result<Verdicts> {
    const auto scene = accuracy_scene(photos, seed);
    if (!scene) return tl::make_unexpected(scene.error());
    Verdicts verdicts;
    for (const Finder& finder : finders) {
      const auto finds = finder(*scene);
      if (!finds) return tl::make_unexpected(finds.error());
      verdicts.push_back(judge(*scene, *finds, min_score));
    }
    return verdicts;
  };
  std::vector<Result<Verdicts>> results(count);
  pool.for_each(count, [&](std::size_t i) { results[i] = judge_one(first_seed + i); });
  std::vector<Verdicts> all;
  for (auto& result : results) {
    if (!result) return tl::make_unexpected(result.error());
    all.push_back(std::move(*result));
  }
  return all;
}

void AccuracyTally::add(const SceneVerdict& verdict) {
  verdicts_.insert(verdicts_.end(), verdict.instances.begin(), verdict.instances.end());
  false_finds_ += static_cast<std::int64_t>(verdict.false_finds.size());
  look_alikes_ += static_cast<std::int64_t>(verdict.look_alikes.size());
}

std::vector<AccuracyTally::Row> AccuracyTally::rows() const {
  std::vector<Row> rows(kSizeClasses.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].min_size_px = kSizeClasses[i];
    rows[i].max_size_px =
        i + 1 < rows.size() ? kSizeClasses[i + 1] : std::numeric_limits<int>::max();
    for (const Verdict& verdict : verdicts_) {
      if (verdict.size_px >= rows[i].min_size_px && verdict.size_px < rows[i].max_size_px)
        count(rows[i], verdict, min_score_);
    }
    finish(rows[i]);
    compare_with_std(rows[i], verdicts_);
  }
  return rows;
}

AccuracyTally::Row AccuracyTally::total(int min_size_px) const {
  Row row;
  row.min_size_px = min_size_px;
  row.max_size_px = std::numeric_limits<int>::max();
  for (const Verdict& verdict : verdicts_) {
    if (verdict.size_px >= min_size_px) count(row, verdict, min_score_);
  }
  finish(row);
  compare_with_std(row, verdicts_);
  return row;
}

std::array<AccuracyTally::Phase, AccuracyTally::kPhases> AccuracyTally::phases(
    Axis axis, int min_size_px) const {
  std::array<Phase, kPhases> bins{};
  std::array<double, kPhases> squares{};
  for (const Verdict& verdict : verdicts_) {
    if (!verdict.find || verdict.size_px < min_size_px) continue;
    const double place = axis == Axis::kX ? verdict.truth.x_px : verdict.truth.y_px;
    const double error = axis == Axis::kX ? verdict.x_error_px : verdict.y_error_px;
    const auto bin = static_cast<std::size_t>((place - std::floor(place)) * kPhases);
    ++bins[bin].count;
    bins[bin].mean_px += error;
    squares[bin] += error * error;
  }
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto n = static_cast<double>(bins[i].count);
    if (bins[i].count == 0) continue;
    bins[i].mean_px /= n;
    const double variance = squares[i] / n - bins[i].mean_px * bins[i].mean_px;
    bins[i].standard_error_px = std::sqrt(std::max(0.0, variance) / n);
  }
  return bins;
}

double AccuracyTally::score_quantile(double share) const {
  std::vector<double> scores;
  for (const Verdict& verdict : verdicts_) {
    if (verdict.find) scores.push_back(verdict.find->score);
  }
  if (scores.empty()) return 0;
  std::sort(scores.begin(), scores.end());
  const auto last = static_cast<double>(scores.size() - 1);
  return scores[static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * last)];
}

}  // namespace patternd::synth
