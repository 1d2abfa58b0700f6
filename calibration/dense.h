// Small dense linear algebra for fits: symmetric systems of up to a few hundred unknowns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace patternd {

// Row-major rows × columns numbers, zero at first.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, 0.0) {}
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  double& operator()(std::size_t row, std::size_t column) {
    return values_[row * columns_ + column];
  }
  double operator()(std::size_t row, std::size_t column) const {
    return values_[row * columns_ + column];
  }

 private:
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::vector<double> values_;
};

// x with a·x = b for every column of b, by Cholesky decomposition of the symmetric, positive
// definite a, scaled to a unit diagonal first. Nothing where a is not positive definite (a
// parameter that the data don't determine).
[[nodiscard]] std::optional<Matrix> solve_positive_definite(Matrix a, Matrix b);
// The inverse of such a matrix.
[[nodiscard]] std::optional<Matrix> invert_positive_definite(const Matrix& a);

struct Eigenvector {
  double value = 0;
  std::vector<double> vector;
};
// All eigenvectors of a symmetric matrix by rising value, by Jacobi rotations.
[[nodiscard]] std::vector<Eigenvector> symmetric_eigenvectors(Matrix a);

}  // namespace patternd
