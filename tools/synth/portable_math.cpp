#include "tools/synth/portable_math.h"

#include <cmath>

namespace patternd::synth {
namespace {

constexpr double kRadiansPerDegree = 0.017453292519943295;
constexpr double kLn2 = 0.6931471805599453;

// Taylor series on |x| <= pi/4: the first term left out is under 1e-17.
double sine_series(double x) {
  const double x2 = x * x;
  double sum = 0;
  for (int n = 17; n >= 3; n -= 2) sum = (1 + sum) * (-x2 / (n * (n - 1.0)));
  return x * (1 + sum);
}

double cosine_series(double x) {
  const double x2 = x * x;
  double sum = 0;
  for (int n = 18; n >= 2; n -= 2) sum = (1 + sum) * (-x2 / (n * (n - 1.0)));
  return 1 + sum;
}

}  // namespace

SinCos sin_cos_deg(double angle_deg) {
  const double quarter = std::floor(angle_deg / 90 + 0.5);
  const double rest = (angle_deg - 90 * quarter) * kRadiansPerDegree;
  const double s = sine_series(rest);
  const double c = cosine_series(rest);
  switch (static_cast<long long>(quarter) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

double natural_log(double value) {
  int exponent = 0;
  double mantissa = std::frexp(value, &exponent);  // exact
  if (mantissa < 0.7071067811865476) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 artanh(z), z = (m − 1)/(m + 1), |z| < 0.172.
  const double z = (mantissa - 1) / (mantissa + 1);
  const double z2 = z * z;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * z2 + 1.0 / n;
  return 2 * z * sum + exponent * kLn2;
}

double exponential(double value) {
  constexpr int kHalvings = 10;
  const double x = value / (1 << kHalvings);
  double sum = 1;
  for (int n = 12; n >= 1; --n) sum = 1 + sum * x / n;
  for (int i = 0; i < kHalvings; ++i) sum *= sum;
  return sum;
}

}  // namespace patternd::synth
