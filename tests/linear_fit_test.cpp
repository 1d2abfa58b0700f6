#include "tools/bench/linear_fit.h"

#include <gtest/gtest.h>

namespace patternd::bench {
namespace {

TEST(LinearFit, FindsTheLineThatTimesLieOn) {
  const LinearFit fit = fit_line({{1e5, 20}, {1e6, 110}, {1e8, 10010}});
  EXPECT_NEAR(10, fit.start_us, 1e-6);
  EXPECT_NEAR(1e-4, fit.us_per_pixel, 1e-12);
  EXPECT_NEAR(0, fit.largest_deviation, 1e-9);
}

TEST(LinearFit, TellsWhatGrowsFasterThanItsSize) {
  const LinearFit fit = fit_line({{1e5, 10}, {1e6, 100}, {1e7, 1000}, {1e8, 20000}});
  EXPECT_GT(fit.largest_deviation, 0.2);
  EXPECT_LT(fit.largest_deviation, 1);
}

}  // namespace
}  // namespace patternd::bench
