// The report's programs (R1 to R4) timed on one picture.
#pragma once

#include <array>

#include "cuda/stream.h"
#include "pipeline/components.h"
#include "pipeline/image.h"

namespace patternd::cuda {

struct ReportTimes {
  std::array<double, 3> ms{};   // B, C, D: medians, with all their questions of the host
  std::array<int, 3> rounds{};  // of B, C, D
};

// B, C and D. `image`: kGray8. `params`: threshold or similarity.
[[nodiscard]] Result<ReportTimes> time_report_programs(const Stream& stream, const Image& image,
                                                       const BlobParams& params, int repetitions);

// A, once: milliseconds of the calling thread's processor time.
[[nodiscard]] Result<double> time_report_program_a(const Image& image, const BlobParams& params);

// The widths of the report's table, and what it has there (R7), in seconds: A, B on a K20, B on a
// GT 635M. C was 90 times as fast as B at 2048, D no faster than C.
struct ReportRow {
  int width;
  double a_s, b_k20_s, b_gt635m_s;
};
inline constexpr std::array<ReportRow, 4> kReportRows = {ReportRow{2048, 77, 4.4, 9.4},
                                                         {1080, 26, 2.1, 1.63},
                                                         {640, 7.3, 1.65, 0.48},
                                                         {320, 1.3, 1.60, 0.1}};

}  // namespace patternd::cuda
