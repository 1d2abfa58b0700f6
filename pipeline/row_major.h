// Where an element stands in an array of rows.
#pragma once

#include <cstddef>

namespace patternd {

// Of (column, row) among rows of `columns` elements; none is negative. Widened before multiplied.
//   row_major(2, 1, 10) == 21
[[nodiscard]] constexpr std::size_t row_major(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

}  // namespace patternd
