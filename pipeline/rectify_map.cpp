#include "pipeline/rectify_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <optional>

#include "calibration/camera_map.h"
#include "pipeline/rectify_arithmetic.h"

namespace patternd {
namespace {

constexpr int kJobRows = 16;

// Largest distance of a run's positions from the exact ones, in pixels. 8 bit: at a step from 0 to
// 255 both axes together change the result by a quarter of a grey level.
constexpr double kTolerance8 = 5e-4;
constexpr double kToleranceFloat = 1e-5;
// A position this near to the outline counts as on it: rounding in the map must not cost the first
// row and column of a picture that is only shifted by whole pixels.
constexpr double kSnap = 1e-9;

// Source positions of a run's pixels.
struct RunSources {
  std::array<double, kRunLength> x{};
  std::array<double, kRunLength> y{};
  std::array<bool, kRunLength> valid{};
  int valid_count = 0;
};

struct Cubic {
  std::array<double, 4> c{};  // smallest power first
};

// Least squares over t = −3.5 … 3.5 by polynomials orthogonal on these eight places: 1, t,
// t² − 21/4, t³ − 37/4 t, of squared lengths 8, 42, 168 and 594. Degree 2 or 3.
Cubic fit(const std::array<double, kRunLength>& values, int degree) {
  double a0 = 0;
  double a1 = 0;
  double a2 = 0;
  double a3 = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double t = static_cast<double>(kRunT[i]);
    const double v = values[i] - values[0];  // small numbers: nothing is lost to rounding
    a0 += v / 8;
    a1 += v * t / 42;
    a2 += v * (t * t - 5.25) / 168;
    a3 += v * (t * t * t - 9.25 * t) / 594;
  }
  if (degree < 3) a3 = 0;
  return {{values[0] + a0 - 5.25 * a2, a1 - 9.25 * a3, a2, a3}};
}

std::optional<std::int16_t> rounded_word(double value) {
  const double rounded = std::round(value);
  if (!(rounded >= -32768 && rounded <= 32767)) return std::nullopt;
  return static_cast<std::int16_t>(rounded);
}

class MapBuilder {
 public:
  MapBuilder(const CameraModel& model, RectifyMap& map) : camera_(model), map_(map) {}

  void build() {
    map_.transposed = runs_across_rows();
    const int width = map_.transposed ? map_.output_height : map_.output_width;
    const int height = map_.transposed ? map_.output_width : map_.output_height;
    const int block_width = map_.transposed ? kTransposedWidth : width;
    const int block_height = map_.transposed ? kTransposedHeight : kJobRows;
    for (int top = 0; top < height; top += block_height) {
      for (int left = 0; left < width; left += block_width) {
        map_.jobs.push_back({static_cast<std::uint32_t>(map_.segments.size()), left, top,
                             std::min(block_width, width - left),
                             std::min(block_height, height - top)});
        for (int y = 0; y < map_.jobs.back().height; ++y) add_row(map_.jobs.back(), y);
      }
    }
  }

 private:
  // Whether a step to the right in the output crosses more input rows than a step down does.
  bool runs_across_rows() const {
    double right = 0;
    double down = 0;
    for (const double fx : {0.2, 0.5, 0.8}) {
      for (const double fy : {0.2, 0.5, 0.8}) {
        Jacobian2 j{};
        if (!camera_.to_input({fx * map_.output_width, fy * map_.output_height}, &j)) continue;
        right += std::abs(j[2]);
        down += std::abs(j[3]);
      }
    }
    return right > down;
  }

  // The last run of a row ends with it and may overlap the one before.
  void add_row(const RectifyJob& job, int y) {
    last_kind_ = std::nullopt;
    if (job.width < kRunLength) {
      add_lone_pixels(0, job.width, y, sources(job.x, job.y + y, job.width));
      return;
    }
    for (int x = 0; x < job.width; x += kRunLength) {
      if (x + kRunLength > job.width) {
        x = job.width - kRunLength;
        last_kind_ = std::nullopt;
      }
      add_run(x, y, sources(job.x + x, job.y + y, kRunLength));
    }
  }

  // The sources of `count` pixels from (x, y) on, in the transposed output where that is used.
  RunSources sources(int x, int y, int count) {
    RunSources run;
    for (int i = 0; i < count; ++i) {
      const int out_x = map_.transposed ? y : x + i;
      const int out_y = map_.transposed ? x + i : y;
      if (const auto p = source(out_x, out_y)) {
        const auto slot = static_cast<std::size_t>(i);
        run.x[slot] = p->x;
        run.y[slot] = p->y;
        run.valid[slot] = true;
        ++run.valid_count;
      }
    }
    return run;
  }

  // Where an output pixel lies in the input picture; nothing outside. Notes which.
  std::optional<Point2> source(int x, int y) {
    const auto p = camera_.to_input({static_cast<double>(x), static_cast<double>(y)});
    const double right = map_.input_width - 1;
    const double bottom = map_.input_height - 1;
    const bool inside =
        p && p->x >= -kSnap && p->x <= right + kSnap && p->y >= -kSnap && p->y <= bottom + kSnap;
    map_.valid.row<std::uint8_t>(y)[x] = inside ? 255 : 0;
    if (!inside) {
      map_.all_valid = false;
      return std::nullopt;
    }
    return Point2{std::clamp(p->x, 0.0, right), std::clamp(p->y, 0.0, bottom)};
  }

  void add_run(int x, int y, const RunSources& run) {
    if (run.valid_count == 0) {
      extend(RunKind::kOutside, 0, x, y, kRunLength);
      return;
    }
    if (run.valid_count == kRunLength) {
      if (map_.format == PixelFormat::kGray8 && add_window_run(x, y, run)) return;
      if (add_cubic_run(x, y, run)) return;
    }
    add_lone_pixels(x, kRunLength, y, run);
  }

  void add_short_run(int x, int count, int y) {
    add_lone_pixels(x, count, y, sources(x, y, count));
  }

  void add_lone_pixels(int x, int count, int y, const RunSources& run) {
    extend(RunKind::kLone, map_.lone_pixels.size(), x, y, count);
    for (int i = 0; i < count; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      if (!run.valid[slot]) {
        map_.lone_pixels.push_back({-1, -1, 0, 0});
        continue;
      }
      // The last column and row are reached as fraction 1 of the one before, where there is one.
      const int px =
          std::clamp(static_cast<int>(run.x[slot]), 0, std::max(map_.input_width - 2, 0));
      const int py =
          std::clamp(static_cast<int>(run.y[slot]), 0, std::max(map_.input_height - 2, 0));
      map_.lone_pixels.push_back({static_cast<std::int16_t>(px), static_cast<std::int16_t>(py),
                                  static_cast<float>(run.x[slot] - px),
                                  static_cast<float>(run.y[slot] - py)});
    }
  }

  bool add_window_run(int x, int y, const RunSources& run) {
    if (map_.input_width < kWindowWidth) return false;
    // A source a hair under a whole number belongs to it: its word rounds up.
    const double hair = 1.0 / 65536;
    const auto [least_x, most_x] = std::minmax_element(run.x.begin(), run.x.end());
    const auto [least_y, most_y] = std::minmax_element(run.y.begin(), run.y.end());
    if (*most_x - *least_x > kWindowWidth || *most_y - *least_y > 3) return false;
    const int base_x = std::min(static_cast<int>(*least_x + hair), map_.input_width - kWindowWidth);
    const int base_y = static_cast<int>(*least_y + hair);
    const Cubic cx = fit(run.x, 2);
    const Cubic cy = fit(run.y, 2);
    const auto x_slope = rounded_word(cx.c[1] * 16384);
    const auto x_curve = rounded_word(cx.c[2] * 65536);
    const auto y_slope = rounded_word(cy.c[1] * 131072);
    const auto y_curve = rounded_word(cy.c[2] * 524288);
    const double x0 = std::round((cx.c[0] - base_x) * 4096);
    const double y0 = std::round((cy.c[0] - base_y) * 32768);
    if (!x_slope || !x_curve || !y_slope || !y_curve) return false;
    if (x0 < 0 || x0 > 65535 || y0 < 0 || y0 > 65535) return false;
    const WindowRun result{static_cast<std::uint16_t>(x0),
                           *x_slope,
                           *x_curve,
                           static_cast<std::uint16_t>(y0),
                           *y_slope,
                           *y_curve,
                           static_cast<std::int16_t>(base_x),
                           static_cast<std::int16_t>(base_y)};
    // Three rows may be read, whether or not this run needs the third.
    if (base_y + 3 > map_.input_height || !reads_its_sources(result, run)) return false;
    extend(RunKind::kWindow, map_.window_runs.size(), x, y, 1);
    map_.window_runs.push_back(result);
    return true;
  }

  static bool reads_its_sources(const WindowRun& window, const RunSources& run) {
    for (std::size_t i = 0; i < run.x.size(); ++i) {
      const int wx = window_word(window.x0, window.x_slope, window.x_curve, i);
      const int wy = window_word(window.y0, window.y_slope, window.y_curve, i);
      // Column 15 has no right neighbour in the window; with fraction 0 none is needed.
      if (wx < 0 || wx > (kWindowWidth - 1) * 4096 || wy < 0 || wy > 65535) return false;
      if (std::abs(wx / 4096.0 + window.base_x - run.x[i]) > kTolerance8) return false;
      if (std::abs(wy / 32768.0 + window.base_y - run.y[i]) > kTolerance8) return false;
    }
    return true;
  }

  bool add_cubic_run(int x, int y, const RunSources& run) {
    const int least_x = static_cast<int>(*std::min_element(run.x.begin(), run.x.end()));
    const int base_x = std::min(least_x, std::max(map_.input_width - kWindowWidth, 0));
    const int base_y = static_cast<int>(*std::min_element(run.y.begin(), run.y.end()));
    const Cubic cx = fit(run.x, 3);
    const Cubic cy = fit(run.y, 3);
    CubicRun result{};
    for (std::size_t k = 0; k < 4; ++k) {
      result.x[k] = static_cast<float>(cx.c[k] - (k == 0 ? base_x : 0));
      result.y[k] = static_cast<float>(cy.c[k] - (k == 0 ? base_y : 0));
    }
    result.base_x = static_cast<std::int16_t>(base_x);
    result.base_y = static_cast<std::int16_t>(base_y);
    if (!reads_its_sources(result, run)) return false;
    extend(cubic_kind(result), map_.cubic_runs.size(), x, y, 1);
    map_.cubic_runs.push_back(result);
    return true;
  }

  bool reads_its_sources(const CubicRun& cubic, const RunSources& run) const {
    const bool bytes = map_.format == PixelFormat::kGray8;
    const double tolerance = bytes ? kTolerance8 : kToleranceFloat;
    // Bytes are fetched four at a time, of which two are used.
    const int last_x = map_.input_width - (bytes ? 4 : 2);
    const int last_y = map_.input_height - 2;
    for (std::size_t i = 0; i < run.x.size(); ++i) {
      const float fx = cubic_at(cubic.x, kRunT[i]);
      const float fy = cubic_at(cubic.y, kRunT[i]);
      if (!(fx >= 0 && fy >= 0)) return false;
      if (static_cast<int>(fx) + cubic.base_x > last_x) return false;
      if (static_cast<int>(fy) + cubic.base_y > last_y) return false;
      if (std::abs(static_cast<double>(fx) + cubic.base_x - run.x[i]) > tolerance) return false;
      if (std::abs(static_cast<double>(fy) + cubic.base_y - run.y[i]) > tolerance) return false;
    }
    return true;
  }

  RunKind cubic_kind(const CubicRun& cubic) const {
    if (map_.format == PixelFormat::kGray8 || map_.input_width < kWindowWidth) {
      return RunKind::kCubic;
    }
    if (cubic.base_y + 3 > map_.input_height) return RunKind::kCubic;
    for (const float t : kRunT) {
      if (static_cast<int>(cubic_at(cubic.x, t)) > kWindowWidth - 2) return RunKind::kCubic;
      if (static_cast<int>(cubic_at(cubic.y, t)) > 1) return RunKind::kCubic;
    }
    return RunKind::kCubicWindow;
  }

  // Starts a segment, or makes the last one longer where this continues it.
  void extend(RunKind kind, std::size_t first, int x, int y, int count) {
    if (last_kind_ == kind) {
      Segment& last = map_.segments.back();
      last.count = static_cast<std::uint16_t>(last.count + count);
      return;
    }
    last_kind_ = kind;
    map_.segments.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(x),
                             static_cast<std::uint16_t>(y), static_cast<std::uint16_t>(count),
                             kind});
  }

  CameraMap camera_;
  RectifyMap& map_;
  std::optional<RunKind> last_kind_;  // of the segment that the next run may continue
};

Result<void> check_border(double border, PixelFormat format) {
  const double most = format == PixelFormat::kGray8 ? 255 : 65535;
  if (format == PixelFormat::kGrayF32 || (border >= 0 && border <= most)) return {};
  return fail(ErrorCode::kInvalidArgument, "plane.border is " + std::to_string(border) + "; 0 to " +
                                               std::to_string(static_cast<int>(most)) + " with " +
                                               name_of(format) + " pictures");
}

}  // namespace

std::size_t RectifyMap::size_bytes() const {
  return window_runs.size() * sizeof(WindowRun) + cubic_runs.size() * sizeof(CubicRun) +
         lone_pixels.size() * sizeof(LonePixel) + segments.size() * sizeof(Segment) +
         jobs.size() * sizeof(RectifyJob);
}

Result<RectifyMap> make_rectify_map(const CameraModel& model, PixelFormat format) {
  if (auto sound = check_border(model.border, format); !sound) {
    return tl::make_unexpected(sound.error());
  }
  RectifyMap map;
  map.format = format;
  map.input_width = model.image_width;
  map.input_height = model.image_height;
  map.output_width = model.output_width();
  map.output_height = model.output_height();
  map.border = model.border;
  auto valid = Image::create(map.output_width, map.output_height, PixelFormat::kGray8);
  if (!valid) return tl::make_unexpected(valid.error());
  map.valid = std::move(*valid);
  try {
    MapBuilder(model, map).build();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "no memory for the rectification map of " +
                                           std::to_string(map.output_width) + "x" +
                                           std::to_string(map.output_height) + " pixels");
  }
  return map;
}

}  // namespace patternd
