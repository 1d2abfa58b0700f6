#include "cuda/rectify_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "calibration/camera_map.h"
#include "pipeline/image.h"

namespace patternd::cuda {
namespace {

using Nodes = std::array<double, 9>;

// Where a warp's row of pixels touches more lines of the cache, the texture unit serves a source of
// floats as fast or faster than plain loads: on an H200 from 11 on (PERFORMANCE.md).
constexpr double kMostLines = 9;

// The quadratic through values at (−h, 0, h) × (−h, 0, h), row by row; coefficient 3 j + i belongs
// to u^i v^j.
Nodes fit_quadratic(const Nodes& values, double h) {
  const auto fit = [h](double minus, double zero, double plus) {
    return std::array<double, 3>{zero, (plus - minus) / (2 * h),
                                 (plus + minus - 2 * zero) / (2 * h * h)};
  };
  std::array<std::array<double, 3>, 3> rows{};
  for (std::size_t j = 0; j < 3; ++j)
    rows[j] = fit(values[3 * j], values[3 * j + 1], values[3 * j + 2]);
  Nodes out{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto column = fit(rows[0][i], rows[1][i], rows[2][i]);
    for (std::size_t j = 0; j < 3; ++j) out[3 * j + i] = column[j];
  }
  return out;
}

// The kernel's evaluation, in its order and precision.
float evaluate(const float* c, float u, float v) {
  const auto along = [](float c0, float c1, float c2, float t) {
    return std::fma(std::fma(c2, t, c1), t, c0);
  };
  return along(along(c[0], c[1], c[2], u), along(c[3], c[4], c[5], u), along(c[6], c[7], c[8], u),
               v);
}

// Plans squares of one size.
class Planner {
 public:
  Planner(const CameraModel& model, int side_log2)
      : map_(model),
        max_x_(model.image_width - 1),
        max_y_(model.image_height - 1),
        side_(1 << side_log2) {
    plan_.width = model.output_width();
    plan_.height = model.output_height();
    plan_.patch_side_log2 = side_log2;
    plan_.patches_across = (plan_.width + side_ - 1) / side_;
    plan_.patches_down = (plan_.height + side_ - 1) / side_;
  }

  RectifyPlan run() {
    plan_.patches.reserve(static_cast<std::size_t>(plan_.patches_across) *
                          static_cast<std::size_t>(plan_.patches_down));
    for (int j = 0; j < plan_.patches_down; ++j)
      for (int i = 0; i < plan_.patches_across; ++i) add_patch(i * side_, j * side_);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::optional<Point2> source_of(double x, double y) const {
    return map_.to_input({x, y}, nullptr);
  }
  [[nodiscard]] bool inside(const std::optional<Point2>& p) const {
    return p && p->x >= 0 && p->y >= 0 && p->x <= max_x_ && p->y <= max_y_;
  }

  void add_patch(int x0, int y0) {
    RectifyPatch patch{};
    patch.table = -1;
    const double h = (side_ - 1) / 2.0;
    Nodes xs{};
    Nodes ys{};
    bool defined = true;
    for (std::size_t k = 0; k < 9 && defined; ++k) {
      const std::size_t row = k / 3;
      const std::size_t column = k % 3;
      const auto p =
          source_of(x0 + h * static_cast<double>(column), y0 + h * static_cast<double>(row));
      defined = p.has_value();
      if (defined) xs[k] = p->x, ys[k] = p->y;
    }
    const bool surely_valid = defined && far_inside(xs, max_x_) && far_inside(ys, max_y_);
    patch.mask = surely_valid && whole(x0, y0) ? kPatchAllValid : add_mask(x0, y0);
    if (patch.mask != kPatchNoneValid) {
      patch.base_x = static_cast<float>(defined ? std::floor(xs[4]) + 1 : 1);
      patch.base_y = static_cast<float>(defined ? std::floor(ys[4]) + 1 : 1);
      if (!defined || !set_polynomials(patch, xs, ys, x0, y0))
        patch.table = add_table(patch, x0, y0);
      patch.near = surely_valid && patch.table < 0 && lines_of_a_row(xs, ys) <= kMostLines ? 1 : 0;
    }
    plan_.patches.push_back(patch);
  }

  [[nodiscard]] bool whole(int x0, int y0) const {
    return x0 + side_ <= plan_.width && y0 + side_ <= plan_.height;
  }

  // The border is farther off than the square is large, so no pixel between the nodes can reach it.
  static bool far_inside(const Nodes& values, double most) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double extent = *high - *low + 2;
    return *low > extent && *high < most - extent;
  }

  // How many lines of the cache a warp's row of pixels touches in a source of floats, about.
  [[nodiscard]] double lines_of_a_row(const Nodes& xs, const Nodes& ys) const {
    constexpr double kFloatsOfALine = 32;
    double most = 0;
    for (std::size_t first : {0U, 3U, 6U}) {
      const double columns = std::abs(xs[first + 2] - xs[first]);
      const double rows = std::abs(ys[first + 2] - ys[first]);
      most = std::max(most, rows + columns / kFloatsOfALine);
    }
    return most * kMaxPatchSide / side_;
  }

  // False where the polynomials miss the model by more than the limit at a check point.
  bool set_polynomials(RectifyPatch& patch, const Nodes& xs, const Nodes& ys, int x0,
                       int y0) const {
    const double h = (side_ - 1) / 2.0;
    const Nodes cx = fit_quadratic(xs, h);
    const Nodes cy = fit_quadratic(ys, h);
    for (std::size_t k = 0; k < 9; ++k) {
      patch.x[k] = static_cast<float>(cx[k]);
      patch.y[k] = static_cast<float>(cy[k]);
    }
    // base is one to the right of the first texel, and the kernel wants half a pixel taken off.
    patch.x[0] = static_cast<float>(cx[0] - (static_cast<double>(patch.base_x) - 1) - 0.5);
    patch.y[0] = static_cast<float>(cy[0] - (static_cast<double>(patch.base_y) - 1) - 0.5);
    // A quadratic's error is largest between its nodes: at the quarters, and along the rim.
    for (double v : {-0.58, 0.58, 1.0}) {
      for (double u : {-0.58, 0.58, 1.0}) {
        const auto truth = source_of(x0 + h * (1 + u), y0 + h * (1 + v));
        if (!truth) return false;
        const double x = at(patch.x, u * h, v * h) + static_cast<double>(patch.base_x) - 0.5;
        const double y = at(patch.y, u * h, v * h) + static_cast<double>(patch.base_y) - 0.5;
        if (std::max(std::abs(x - truth->x), std::abs(y - truth->y)) > kMaxPlanErrorPx)
          return false;
      }
    }
    return true;
  }
  static double at(const float* c, double u, double v) {
    return static_cast<double>(evaluate(c, static_cast<float>(u), static_cast<float>(v)));
  }

  // Decides pixel by pixel.
  int add_mask(int x0, int y0) {
    std::array<std::uint32_t, kMaxPatchSide> rows{};
    bool any = false;
    bool all = true;
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        if (x0 + x >= plan_.width || y0 + y >= plan_.height) continue;
        const bool valid = inside(source_of(x0 + x, y0 + y));
        any = any || valid;
        all = all && valid;
        if (valid) rows[static_cast<std::size_t>(y)] |= std::uint32_t{1} << x;
      }
    }
    if (!any) return kPatchNoneValid;
    if (all) return kPatchAllValid;
    const auto index = plan_.masks.size() / static_cast<std::size_t>(side_);
    plan_.masks.insert(plan_.masks.end(), rows.begin(), rows.begin() + side_);
    return static_cast<int>(index);
  }

  int add_table(const RectifyPatch& patch, int x0, int y0) {
    const auto index = plan_.tables.size() / (2 * static_cast<std::size_t>(side_ * side_));
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const auto p = source_of(x0 + x, y0 + y);
        const Point2 source = inside(p) ? *p : Point2{0, 0};
        plan_.tables.push_back(
            static_cast<float>(source.x - static_cast<double>(patch.base_x) + 0.5));
        plan_.tables.push_back(
            static_cast<float>(source.y - static_cast<double>(patch.base_y) + 0.5));
      }
    }
    return static_cast<int>(index);
  }

  CameraMap map_;
  double max_x_;
  double max_y_;
  int side_;
  RectifyPlan plan_;
};

// Squares with written-out positions that are taken into the bargain for a larger side: one in 64
// costs an eighth of a byte a pixel.
constexpr std::size_t kTablesWorthShrinking = 64;
constexpr int kSmallestSideLog2 = 3;
constexpr int kLargestSideLog2 = 5;
static_assert(1 << kLargestSideLog2 == kMaxPatchSide);

}  // namespace

Result<RectifyPlan> plan_rectification(const CameraModel& model) {
  if (model.output_width() < 1 || model.output_height() < 1 ||
      model.output_width() > kMaxImageSide || model.output_height() > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument,
                "plane: size is " + std::to_string(model.output_width()) + "x" +
                    std::to_string(model.output_height()) + "; both must be 1 to " +
                    std::to_string(kMaxImageSide));
  }
  for (int log2 = kLargestSideLog2; log2 > kSmallestSideLog2; --log2) {
    RectifyPlan plan = Planner(model, log2).run();
    const auto side = static_cast<std::size_t>(plan.side());
    const std::size_t tables = plan.tables.size() / (2 * side * side);
    if (tables * kTablesWorthShrinking <= plan.patches.size()) return plan;
  }
  return Planner(model, kSmallestSideLog2).run();
}

PlannedPosition planned_position(const RectifyPlan& plan, int x, int y) {
  const int side = plan.side();
  const RectifyPatch& patch = plan.patches[static_cast<std::size_t>(y / side) *
                                               static_cast<std::size_t>(plan.patches_across) +
                                           static_cast<std::size_t>(x / side)];
  const int in_x = x % side;
  const int in_y = y % side;
  PlannedPosition out;
  out.valid = patch.mask == kPatchAllValid;
  if (patch.mask >= 0) {
    const auto row = static_cast<std::size_t>(patch.mask) * static_cast<std::size_t>(side) +
                     static_cast<std::size_t>(in_y);
    out.valid = (plan.masks[row] >> in_x & 1U) != 0;
  }
  if (!out.valid) return out;
  const float centre = 0.5F * static_cast<float>(side - 1);
  float u = evaluate(patch.x, static_cast<float>(in_x) - centre, static_cast<float>(in_y) - centre);
  float v = evaluate(patch.y, static_cast<float>(in_x) - centre, static_cast<float>(in_y) - centre);
  if (patch.table >= 0) {
    const std::size_t first =
        2 * ((static_cast<std::size_t>(patch.table) * static_cast<std::size_t>(side) +
              static_cast<std::size_t>(in_y)) *
                 static_cast<std::size_t>(side) +
             static_cast<std::size_t>(in_x));
    u = plan.tables[first];
    v = plan.tables[first + 1];
  }
  out.x = static_cast<double>(u) + static_cast<double>(patch.base_x) - 0.5;
  out.y = static_cast<double>(v) + static_cast<double>(patch.base_y) - 0.5;
  return out;
}

std::vector<std::uint8_t> valid_mask(const RectifyPlan& plan) {
  std::vector<std::uint8_t> mask;
  mask.reserve(static_cast<std::size_t>(plan.width) * static_cast<std::size_t>(plan.height));
  for (int y = 0; y < plan.height; ++y)
    for (int x = 0; x < plan.width; ++x)
      mask.push_back(planned_position(plan, x, y).valid ? 255 : 0);
  return mask;
}

}  // namespace patternd::cuda
