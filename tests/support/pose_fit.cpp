#include "tests/support/pose_fit.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "tools/synth/portable_math.h"
#include "tools/synth/spline_picture.h"

namespace patternd::test {
namespace {

using synth::Pose;
using synth::SinCos;
using synth::SplinePicture;

constexpr std::size_t kUnknowns = 7;  // x, y, angle, a, b, c, d
using Vector = std::array<double, kUnknowns>;

// Normal equations, solved by Gauss's elimination with the largest pivot.
struct NormalEquations {
  std::array<Vector, kUnknowns> matrix{};
  Vector right{};

  void add(const Vector& slope, double residual) {
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t j = 0; j < kUnknowns; ++j) matrix[i][j] += slope[i] * slope[j];
      right[i] += slope[i] * residual;
    }
  }

  // Of matrix · x = right.
  [[nodiscard]] Vector solve() const { return NormalEquations(*this).solve_in_place(); }

  // Element (k, k) of the matrix's inverse.
  [[nodiscard]] double inverse_at(std::size_t k) const {
    NormalEquations unit = *this;
    unit.right = {};
    unit.right[k] = 1;
    return unit.solve_in_place()[k];
  }

 private:
  Vector solve_in_place() {
    for (std::size_t k = 0; k < kUnknowns; ++k) {
      std::size_t best = k;
      for (std::size_t i = k + 1; i < kUnknowns; ++i) {
        if (std::abs(matrix[i][k]) > std::abs(matrix[best][k])) best = i;
      }
      std::swap(matrix[k], matrix[best]);
      std::swap(right[k], right[best]);
      for (std::size_t i = 0; i < kUnknowns; ++i) {
        if (i == k) continue;
        const double factor = matrix[i][k] / matrix[k][k];
        for (std::size_t j = k; j < kUnknowns; ++j) matrix[i][j] -= factor * matrix[k][j];
        right[i] -= factor * right[k];
      }
    }
    Vector solution{};
    for (std::size_t i = 0; i < kUnknowns; ++i) solution[i] = right[i] / matrix[i][i];
    return solution;
  }
};

// One step: `unknowns` is moved to the least squares of the model made linear there. Returns the
// equations that did it.
NormalEquations step(const ImageView& picture, const SplinePicture& spline, Vector& unknowns) {
  const double radius = std::hypot(spline.width(), spline.height()) / 2;
  const double ref_u = (spline.width() - 1) / 2.0;
  const double ref_v = (spline.height() - 1) / 2.0;
  const SinCos turn = synth::sin_cos_deg(unknowns[2]);
  NormalEquations equations;
  for (int y = static_cast<int>(unknowns[1] - radius); y <= unknowns[1] + radius; ++y) {
    for (int x = static_cast<int>(unknowns[0] - radius); x <= unknowns[0] + radius; ++x) {
      if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) continue;
      const double dx = x - unknowns[0];
      const double dy = y - unknowns[1];
      const double du = turn.cos * dx + turn.sin * dy;
      const double dv = turn.cos * dy - turn.sin * dx;
      // Half a pixel from the last pixels' centres, so that nothing of the outline counts.
      if (std::abs(du) > ref_u - 0.5 || std::abs(dv) > ref_v - 0.5) continue;
      const SplinePicture::Sample p = spline.sample(ref_u + du, ref_v + dv);
      const double gain = unknowns[3] + unknowns[5] * dx / radius + unknowns[6] * dy / radius;
      const double model = gain * p.value + unknowns[4];
      const Vector slope = {gain * (turn.sin * p.dy - turn.cos * p.dx),
                            gain * (-turn.sin * p.dx - turn.cos * p.dy),
                            gain * (p.dx * dv - p.dy * du) * 0.017453292519943295,
                            p.value,
                            1,
                            p.value * dx / radius,
                            p.value * dy / radius};
      equations.add(slope, picture.row<std::uint8_t>(y)[x] - model);
    }
  }
  const Vector change = equations.solve();
  for (std::size_t i = 0; i < kUnknowns; ++i) unknowns[i] += change[i];
  return equations;
}

}  // namespace

PoseFit fit_pose(const ImageView& picture, const ImageView& pattern, const Pose& start,
                 double noise_sigma) {
  const auto spline = SplinePicture::create(pattern);
  if (!spline) return {};
  Vector unknowns = {start.x_px, start.y_px, start.angle_deg, 1, 0, 0, 0};
  NormalEquations last;
  for (int i = 0; i < 5; ++i) last = step(picture, *spline, unknowns);
  const auto bound = [&](std::size_t k) { return noise_sigma * std::sqrt(last.inverse_at(k)); };
  return {{unknowns[0], unknowns[1], unknowns[2], 1}, bound(0), bound(1), bound(2)};
}

}  // namespace patternd::test
