// The inner loop of refinement: one row of the sampled picture times one row of each regressor.
#pragma once

#include <cstddef>

namespace patternd {

struct RegressorRow {
  const float* mask = nullptr;
  const float* values = nullptr;
  const float* gradient_x = nullptr;
  const float* gradient_y = nullptr;
  const float* columns = nullptr;
};

struct RowSums {
  float mask = 0;          // Σ M·W
  float square = 0;        // Σ M·W²
  float column = 0;        // Σ M·q_x·W
  float values = 0;        // Σ T·W
  float values_x = 0;      // Σ T·q_x·W
  float gradient_x = 0;    // Σ g_x·W
  float gradient_y = 0;    // Σ g_y·W
  float gradient_x_x = 0;  // Σ g_x·q_x·W
  float gradient_y_x = 0;  // Σ g_y·q_x·W
};

// `count` a multiple of kPatchLanes. W is `picture` − `middle`, and 0 where `visible` is 0; null:
// all visible.
void sum_regressors(const RegressorRow& row, const float* picture, const float* visible,
                    float middle, std::ptrdiff_t count, RowSums& sums);

}  // namespace patternd
