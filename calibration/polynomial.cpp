#include "calibration/polynomial.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

// The root in (low, high), where the polynomial has opposite signs.
double bisect(const std::vector<double>& coefficients, double low, double high) {
  const bool rises = polynomial_value(coefficients, high) > 0;
  for (int i = 0; i < 2000; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    ((polynomial_value(coefficients, middle) > 0) == rises ? high : low) = middle;
  }
  return high;
}

}  // namespace

double polynomial_value(const std::vector<double>& coefficients, double x) {
  double value = 0;
  for (auto c = coefficients.rbegin(); c != coefficients.rend(); ++c) value = value * x + *c;
  return value;
}

std::vector<double> positive_roots(std::vector<double> coefficients) {
  while (!coefficients.empty() && coefficients.back() == 0) coefficients.pop_back();
  if (coefficients.size() < 2) return {};
  double bound = 0;  // Cauchy's: no root is larger
  for (std::size_t i = 0; i + 1 < coefficients.size(); ++i) {
    bound = std::max(bound, std::abs(coefficients[i] / coefficients.back()));
  }
  if (!std::isfinite(bound)) bound = 1e150;

  std::vector<double> derivative;
  for (std::size_t i = 1; i < coefficients.size(); ++i) {
    derivative.push_back(coefficients[i] * static_cast<double>(i));
  }
  std::vector<double> stops = positive_roots(std::move(derivative));
  stops.push_back(bound + 1);

  std::vector<double> roots;
  double low = 0;
  for (const double high : stops) {
    if (high <= low) continue;
    const double at_low = polynomial_value(coefficients, low);
    const double at_high = polynomial_value(coefficients, high);
    if ((at_low > 0 && at_high <= 0) || (at_low < 0 && at_high >= 0)) {
      roots.push_back(bisect(coefficients, low, high));
    }
    low = high;
  }
  return roots;
}

}  // namespace patternd
