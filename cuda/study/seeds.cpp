#include "cuda/study/seeds.h"

namespace patternd::cuda {

Result<SeedTable> run_seed_study(const SeedStudy& study, const SeedBench& bench) {
  try {
    return study.run(bench);
  } catch (const StudyFailure& failure) {
    return fail(failure.error.code, std::string(study.name) + ": " + failure.error.message);
  }
}

}  // namespace patternd::cuda
