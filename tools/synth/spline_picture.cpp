#include "tools/synth/spline_picture.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace patternd::synth {
namespace {

// Pole of the recursive filter that turns samples into coefficients.
constexpr double kPole = -0.2679491924311227;  // sqrt(3) − 2
// |kPole|^30 < 1e-17: further samples do not reach the first coefficient.
constexpr int kReach = 30;

int mirrored(int index, int count) {
  if (count == 1) return 0;
  const int period = 2 * (count - 1);
  int place = index % period;
  if (place < 0) place += period;
  return place < count ? place : period - place;
}

// Samples -> coefficients along one line, in place, mirrored at both ends.
void filter_line(double* line, int count) {
  if (count == 1) return;
  double first = 0;
  double power = 1;
  for (int k = 0; k < kReach; ++k) {
    first += power * line[mirrored(k, count)];
    power *= kPole;
  }
  constexpr double kGain = 6;  // (1 − z)(1 − 1/z)
  line[0] = first;
  for (int k = 1; k < count; ++k) line[k] += kPole * line[k - 1];
  line[count - 1] = kPole / (kPole * kPole - 1) * (line[count - 1] + kPole * line[count - 2]);
  for (int k = count - 2; k >= 0; --k) line[k] = kPole * (line[k + 1] - line[k]);
  for (int k = 0; k < count; ++k) line[k] *= kGain;
}

struct Taps {
  int first = 0;  // the first of the four coefficients that reach the position
  std::array<double, 4> weight{};
  std::array<double, 4> slope{};
};

// `x` lies within ±2^30. (std::floor is a call where the processor's baseline has no such
// instruction.)
Taps taps_at(double x) {
  const int truncated = static_cast<int>(x);
  const int base = x < truncated ? truncated - 1 : truncated;
  const double t = x - base;
  const double r = 1 - t;
  Taps taps;
  taps.first = base - 1;
  taps.weight = {r * r * r / 6, (4 + t * t * (3 * t - 6)) / 6, (4 + r * r * (3 * r - 6)) / 6,
                 t * t * t / 6};
  taps.slope = {-r * r / 2, t * (1.5 * t - 2), -r * (1.5 * r - 2), t * t / 2};
  return taps;
}

double grey_level(const ImageView& picture, int x, int y) {
  switch (picture.format) {
    case PixelFormat::kGray8:
      return picture.row<std::uint8_t>(y)[x];
    case PixelFormat::kGray16:
      return picture.row<std::uint16_t>(y)[x] / 257.0;
    default:
      return static_cast<double>(picture.row<float>(y)[x]);
  }
}

}  // namespace

Result<SplinePicture> SplinePicture::create(const ImageView& picture) {
  if (auto ok = check_view(picture, "picture"); !ok) return tl::make_unexpected(ok.error());
  if (picture.format != PixelFormat::kGray8 && picture.format != PixelFormat::kGray16 &&
      picture.format != PixelFormat::kGrayF32) {
    return fail(ErrorCode::kInvalidArgument, std::string("picture is ") + name_of(picture.format) +
                                                 "; gray8, gray16 or gray_f32 is accepted");
  }
  SplinePicture spline;
  spline.width_ = picture.width;
  spline.height_ = picture.height;
  const auto width = static_cast<std::size_t>(picture.width);
  const auto height = static_cast<std::size_t>(picture.height);
  std::vector<double> values(width * height);
  for (int y = 0; y < picture.height; ++y) {
    double* line = &values[static_cast<std::size_t>(y) * width];
    for (int x = 0; x < picture.width; ++x) line[x] = grey_level(picture, x, y);
    filter_line(line, picture.width);
  }
  std::vector<double> column(height);
  spline.coefficients_.resize(width * height);
  for (std::size_t x = 0; x < width; ++x) {
    for (std::size_t y = 0; y < height; ++y) column[y] = values[y * width + x];
    filter_line(column.data(), picture.height);
    for (std::size_t y = 0; y < height; ++y)
      spline.coefficients_[y * width + x] = static_cast<float>(column[y]);
  }
  return spline;
}

std::array<const float*, 4> SplinePicture::rows_at(int first_x, int first_y,
                                                   std::array<float, 16>& mirror) const {
  const auto width = static_cast<std::size_t>(width_);
  std::array<const float*, 4> rows{};
  if (first_x >= 0 && first_y >= 0 && first_x + 3 < width_ && first_y + 3 < height_) {
    const float* corner = &coefficients_[static_cast<std::size_t>(first_y) * width +
                                         static_cast<std::size_t>(first_x)];
    for (std::size_t j = 0; j < 4; ++j) rows[j] = corner + j * width;
    return rows;
  }
  for (int j = 0; j < 4; ++j) {
    const auto row = static_cast<std::size_t>(mirrored(first_y + j, height_)) * width;
    const auto slot = static_cast<std::size_t>(j) * 4;
    for (int i = 0; i < 4; ++i)
      mirror[slot + static_cast<std::size_t>(i)] =
          coefficients_[row + static_cast<std::size_t>(mirrored(first_x + i, width_))];
    rows[static_cast<std::size_t>(j)] = &mirror[slot];
  }
  return rows;
}

double SplinePicture::value(double x, double y) const {
  const Taps across = taps_at(x);
  const Taps down = taps_at(y);
  std::array<float, 16> mirror{};
  const auto rows = rows_at(across.first, down.first, mirror);
  double sum = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    double line = 0;
    for (std::size_t i = 0; i < 4; ++i) line += across.weight[i] * static_cast<double>(rows[j][i]);
    sum += down.weight[j] * line;
  }
  return sum;
}

SplinePicture::Sample SplinePicture::sample(double x, double y) const {
  const Taps across = taps_at(x);
  const Taps down = taps_at(y);
  std::array<float, 16> mirror{};
  const auto rows = rows_at(across.first, down.first, mirror);
  Sample sample;
  for (std::size_t j = 0; j < 4; ++j) {
    double line = 0;
    double slope = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto c = static_cast<double>(rows[j][i]);
      line += across.weight[i] * c;
      slope += across.slope[i] * c;
    }
    sample.value += down.weight[j] * line;
    sample.dx += down.weight[j] * slope;
    sample.dy += down.slope[j] * line;
  }
  return sample;
}

}  // namespace patternd::synth
