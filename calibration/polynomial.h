// Real roots of small polynomials.
#pragma once

#include <vector>

namespace patternd {

// Value of c[0] + c[1] x + c[2] x² + …
[[nodiscard]] double polynomial_value(const std::vector<double>& coefficients, double x);
// Its positive real roots at which the sign changes, rising; by bisection between the roots of the
// derivative, so none is missed. `{2, -3, 1}` (2 − 3x + x²) gives 1 and 2.
[[nodiscard]] std::vector<double> positive_roots(std::vector<double> coefficients);

}  // namespace patternd
