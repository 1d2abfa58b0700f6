// The seed documents' variants, measured beside the service's own kernels (T6–T9, T13, T15–T18).
// Each result is compared with the CPU's before its time goes into a table.
//   patternctl bench seeds
#pragma once

#include "cuda/study/seeds_bench.h"
#include "cuda/study/seeds_table.h"

namespace patternd::cuda {

// T6, T7, T18: ways to read the input, the plane upright or turned by 90 degrees.
[[nodiscard]] SeedTable study_rectification(const SeedBench& bench);
// T16: shapes of blocks, with the share of threads that eq. 3.1 calls wasted.
[[nodiscard]] SeedTable study_block_sizes(const SeedBench& bench);
// T8: pageable, page-locked, mapped and managed memory, both ways.
[[nodiscard]] SeedTable study_transfers(const SeedBench& bench);
// T9: frames through one stream, and through several.
[[nodiscard]] SeedTable study_streams(const SeedBench& bench);
// T10, T13, T15: NCC by a thread and by a warp, coarse level and full scale; suppression.
[[nodiscard]] SeedTable study_search(const SeedBench& bench);
// T14, T15, T17: trace by a thread and by a warp; by the CPU on zero-copy memory.
[[nodiscard]] SeedTable study_trace(const SeedBench& bench);

// The service's own kernels on the frame of the two before.
[[nodiscard]] SeedTable study_service(const SeedBench& bench);

struct SeedStudy {
  const char* name;
  SeedTable (*run)(const SeedBench& bench);
};
inline constexpr SeedStudy kSeedStudies[] = {
    {"rectification", study_rectification},
    {"block_sizes", study_block_sizes},
    {"transfers", study_transfers},
    {"streams", study_streams},
    {"search", study_search},
    {"trace", study_trace},
    {"service", study_service},
};

// Runs one; what it throws comes back as an Error: the driver's, or kInternal that says which
// variant's result is not the CPU's, and where.
[[nodiscard]] Result<SeedTable> run_seed_study(const SeedStudy& study, const SeedBench& bench);

}  // namespace patternd::cuda
