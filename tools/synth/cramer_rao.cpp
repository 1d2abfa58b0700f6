#include "tools/synth/cramer_rao.h"

#include <array>
#include <cmath>
#include <utility>

namespace patternd::synth {
namespace {

constexpr std::size_t kUnknowns = 5;
// Root mean square slopes, grey levels a pixel or degree, below which a derivative is rounding: the
// pictures are float.
constexpr double kLeastSlope = 1e-4;
using Matrix = std::array<std::array<double, kUnknowns>, kUnknowns>;

Matrix information(const SceneRenderer::PoseGradient& gradient) {
  Matrix sum{};
  for (int y = 0; y < gradient.inside.height(); ++y) {
    for (int x = 0; x < gradient.inside.width(); ++x) {
      if (gradient.inside.row<float>(y)[x] == 0) continue;
      const auto at = [&](const Image& plane) {
        return static_cast<double>(plane.row<float>(y)[x]);
      };
      const std::array<double, kUnknowns> g = {at(gradient.by_x), at(gradient.by_y),
                                               at(gradient.by_angle), at(gradient.value), 1.0};
      for (std::size_t i = 0; i < kUnknowns; ++i) {
        for (std::size_t j = 0; j < kUnknowns; ++j) sum[i][j] += g[i] * g[j];
      }
    }
  }
  return sum;
}

// Inverse of a symmetric positive definite matrix by Gauss–Jordan, its diagonal scaled to 1 first;
// nothing where it is singular.
std::optional<Matrix> inverse(Matrix matrix) {
  std::array<double, kUnknowns> scale{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    // The last diagonal element counts the pixels.
    if (!(matrix[i][i] > kLeastSlope * kLeastSlope * matrix[kUnknowns - 1][kUnknowns - 1]))
      return std::nullopt;
    scale[i] = 1 / std::sqrt(matrix[i][i]);
  }
  Matrix result{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = 0; j < kUnknowns; ++j) matrix[i][j] *= scale[i] * scale[j];
    result[i][i] = 1;
  }
  for (std::size_t k = 0; k < kUnknowns; ++k) {
    const double pivot = matrix[k][k];
    if (!(pivot > 1e-9)) return std::nullopt;
    for (std::size_t j = 0; j < kUnknowns; ++j) {
      matrix[k][j] /= pivot;
      result[k][j] /= pivot;
    }
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      if (i == k) continue;
      const double factor = matrix[i][k];
      for (std::size_t j = 0; j < kUnknowns; ++j) {
        matrix[i][j] -= factor * matrix[k][j];
        result[i][j] -= factor * result[k][j];
      }
    }
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = 0; j < kUnknowns; ++j) result[i][j] *= scale[i] * scale[j];
  }
  return result;
}

}  // namespace

Result<std::optional<PoseBound>> cramer_rao_bound(const SceneRenderer& renderer, int frame,
                                                  std::size_t instance) {
  auto gradient = renderer.pose_gradient(frame, instance);
  if (!gradient) return tl::make_unexpected(gradient.error());
  if (!*gradient) return std::optional<PoseBound>();
  const auto covariance = inverse(information(**gradient));
  if (!covariance) return std::optional<PoseBound>();
  const Scene& scene = renderer.scene();
  const double level = scene.format == PixelFormat::kGray16 ? 1 / 257.0 : 1;
  const double variance = scene.noise_sigma * scene.noise_sigma + level * level / 12;
  PoseBound bound;
  bound.x_std_px = std::sqrt(variance * (*covariance)[0][0]);
  bound.y_std_px = std::sqrt(variance * (*covariance)[1][1]);
  bound.angle_std_deg = std::sqrt(variance * (*covariance)[2][2]);
  return std::optional<PoseBound>(bound);
}

}  // namespace patternd::synth
