#include "calibration/dense.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace patternd {
namespace {

// Lower triangle L with L·Lᵀ = a, in place.
bool decompose(Matrix& a) {
  const std::size_t n = a.rows();
  for (std::size_t j = 0; j < n; ++j) {
    double pivot = a(j, j);
    for (std::size_t k = 0; k < j; ++k) pivot -= a(j, k) * a(j, k);
    // On a unit diagonal a pivot this small is all rounding.
    if (!(pivot > 64 * std::numeric_limits<double>::epsilon())) return false;
    const double root = std::sqrt(pivot);
    a(j, j) = root;
    for (std::size_t i = j + 1; i < n; ++i) {
      double sum = a(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = sum / root;
    }
  }
  return true;
}

void substitute(const Matrix& l, Matrix& b, std::size_t column) {
  const std::size_t n = l.rows();
  for (std::size_t i = 0; i < n; ++i) {
    double sum = b(i, column);
    for (std::size_t k = 0; k < i; ++k) sum -= l(i, k) * b(k, column);
    b(i, column) = sum / l(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = b(i, column);
    for (std::size_t k = i + 1; k < n; ++k) sum -= l(k, i) * b(k, column);
    b(i, column) = sum / l(i, i);
  }
}

// Turns rows and columns p, q of `a` so that a(p, q) becomes 0, and the columns of `vectors` alike.
void rotate(Matrix& a, Matrix& vectors, std::size_t p, std::size_t q) {
  const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0);
  const double s = t * c;
  for (std::size_t k = 0; k < a.rows(); ++k) {
    const double akp = a(k, p);
    const double akq = a(k, q);
    a(k, p) = c * akp - s * akq;
    a(k, q) = s * akp + c * akq;
  }
  for (std::size_t k = 0; k < a.rows(); ++k) {
    const double apk = a(p, k);
    const double aqk = a(q, k);
    a(p, k) = c * apk - s * aqk;
    a(q, k) = s * apk + c * aqk;
    const double vkp = vectors(k, p);
    const double vkq = vectors(k, q);
    vectors(k, p) = c * vkp - s * vkq;
    vectors(k, q) = s * vkp + c * vkq;
  }
}

}  // namespace

std::optional<Matrix> solve_positive_definite(Matrix a, Matrix b) {
  const std::size_t n = a.rows();
  std::vector<double> scale(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a(i, i) > 0) || !std::isfinite(a(i, i))) return std::nullopt;
    scale[i] = 1 / std::sqrt(a(i, i));
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a(i, j) *= scale[i] * scale[j];
    for (std::size_t j = 0; j < b.columns(); ++j) b(i, j) *= scale[i];
  }
  if (!decompose(a)) return std::nullopt;
  for (std::size_t j = 0; j < b.columns(); ++j) substitute(a, b, j);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < b.columns(); ++j) b(i, j) *= scale[i];
  }
  return b;
}

std::optional<Matrix> invert_positive_definite(const Matrix& a) {
  Matrix identity(a.rows(), a.rows());
  for (std::size_t i = 0; i < a.rows(); ++i) identity(i, i) = 1;
  return solve_positive_definite(a, std::move(identity));
}

std::vector<Eigenvector> symmetric_eigenvectors(Matrix a) {
  const std::size_t n = a.rows();
  Matrix vectors(n, n);
  for (std::size_t i = 0; i < n; ++i) vectors(i, i) = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    double on = 0;
    for (std::size_t i = 0; i < n; ++i) {
      on += a(i, i) * a(i, i);
      for (std::size_t j = i + 1; j < n; ++j) off += a(i, j) * a(i, j);
    }
    if (!(off > 1e-34 * on)) break;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a(p, q) != 0) rotate(a, vectors, p, q);
      }
    }
  }
  std::vector<Eigenvector> result(n);
  for (std::size_t j = 0; j < n; ++j) {
    result[j].value = a(j, j);
    for (std::size_t i = 0; i < n; ++i) result[j].vector.push_back(vectors(i, j));
  }
  std::sort(result.begin(), result.end(),
            [](const Eigenvector& x, const Eigenvector& y) { return x.value < y.value; });
  return result;
}

}  // namespace patternd
