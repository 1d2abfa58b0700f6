#include "pipeline/refine_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/refine_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pipeline/trace_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace patternd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void sum_row(const RegressorRow& row, const float* picture, const float* visible, float middle,
             std::ptrdiff_t count, RowSums& sums) {
  const hn::CappedTag<float, kPatchLanes> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const V shift = hn::Set(d, middle);
  V mask = hn::Zero(d);
  V square = hn::Zero(d);
  V column = hn::Zero(d);
  V values = hn::Zero(d);
  V values_x = hn::Zero(d);
  V gradient_x = hn::Zero(d);
  V gradient_y = hn::Zero(d);
  V gradient_x_x = hn::Zero(d);
  V gradient_y_x = hn::Zero(d);
  for (std::ptrdiff_t x = 0; x < count; x += lanes) {
    V w = hn::Sub(hn::LoadU(d, picture + x), shift);
    if (visible != nullptr) w = hn::Mul(w, hn::LoadU(d, visible + x));
    const V mw = hn::Mul(w, hn::LoadU(d, row.mask + x));
    const V q = hn::LoadU(d, row.columns + x);
    const V gx = hn::Mul(w, hn::LoadU(d, row.gradient_x + x));
    const V gy = hn::Mul(w, hn::LoadU(d, row.gradient_y + x));
    mask = hn::Add(mask, mw);
    square = hn::MulAdd(mw, w, square);
    column = hn::MulAdd(mw, q, column);
    const V tw = hn::Mul(w, hn::LoadU(d, row.values + x));
    values = hn::Add(values, tw);
    values_x = hn::MulAdd(tw, q, values_x);
    gradient_x = hn::Add(gradient_x, gx);
    gradient_y = hn::Add(gradient_y, gy);
    gradient_x_x = hn::MulAdd(gx, q, gradient_x_x);
    gradient_y_x = hn::MulAdd(gy, q, gradient_y_x);
  }
  const auto total = [&](V v) { return hn::GetLane(hn::SumOfLanes(d, v)); };
  sums = {total(mask),       total(square),       total(column),
          total(values),     total(values_x),     total(gradient_x),
          total(gradient_y), total(gradient_x_x), total(gradient_y_x)};
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {
HWY_EXPORT(sum_row);
}  // namespace

void sum_regressors(const RegressorRow& row, const float* picture, const float* visible,
                    float middle, std::ptrdiff_t count, RowSums& sums) {
  HWY_DYNAMIC_DISPATCH(sum_row)(row, picture, visible, middle, count, sums);
}

}  // namespace patternd
#endif  // HWY_ONCE
