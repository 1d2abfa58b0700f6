#include "cuda/study/report_programs.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "cuda/propagation_study.h"
#include "pipeline/stage.h"

namespace patternd::cuda {
namespace {

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace

Result<double> time_report_program_a(const Image& image, const BlobParams& params) {
  LabelOptions options;
  options.method = LabelMethod::kPropagation;
  options.intensity = options.moments = false;
  auto labeller =
      ComponentLabeller::create(image.width(), image.height(), image.format(), params, options);
  if (!labeller) return tl::make_unexpected(labeller.error());
  const double start_ms = thread_ms();
  if (auto ok = labeller->process(image.view()); !ok) return tl::make_unexpected(ok.error());
  return thread_ms() - start_ms;
}

Result<ReportTimes> time_report_programs(const Stream& stream, const Image& image,
                                         const BlobParams& params, int repetitions) {
  auto picture =
      DevicePicture::create(stream.device(), image.width(), image.height(), image.format());
  if (!picture) return tl::make_unexpected(picture.error());
  if (auto ok = upload(stream, image.view(), picture->view()); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stream.wait(); !ok) return tl::make_unexpected(ok.error());
  ReportTimes times;
  for (std::size_t i = 0; i < times.ms.size(); ++i) {
    auto study = PropagationStudy::create(stream.device(), static_cast<PropagationProgram>(i),
                                          image.width(), image.height(), params);
    if (!study) return tl::make_unexpected(study.error());
    std::vector<double> each_ms;
    for (int repetition = -1; repetition < repetitions; ++repetition) {
      const std::int64_t start_ns = monotonic_ns();
      auto rounds = study->run(stream, picture->view());
      if (!rounds) return tl::make_unexpected(rounds.error());
      times.rounds[i] = *rounds;
      if (repetition >= 0) each_ms.push_back(static_cast<double>(monotonic_ns() - start_ns) * 1e-6);
    }
    std::nth_element(each_ms.begin(),
                     each_ms.begin() + static_cast<std::ptrdiff_t>(each_ms.size() / 2),
                     each_ms.end());
    times.ms[i] = each_ms[each_ms.size() / 2];
  }
  return times;
}

}  // namespace patternd::cuda
