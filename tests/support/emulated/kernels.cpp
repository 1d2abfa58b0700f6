// The kernels of a frame's way, run on the CPU by a driver made for tests.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda_kernels.h"

// The kernels, as they are.
#include "cuda/kernels/blobs.cu"
#include "cuda/kernels/coarse_score.cu"
#include "cuda/kernels/coarse_search.cu"
#include "cuda/kernels/components.cu"
#include "cuda/kernels/components_foreground.cu"
#include "cuda/kernels/components_similar.cu"
#include "cuda/kernels/components_tiles.cu"
#include "cuda/kernels/convert.cu"
#include "cuda/kernels/pyramid.cu"
#include "cuda/kernels/rectify.cu"
#include "cuda/kernels/refine.cu"
#include "cuda/kernels/suppress.cu"
#include "cuda/kernels/trace.cu"

namespace patternd::cuda::fake {
namespace {

struct Entry {
  const char* name;
  std::function<void(const void* parameters)> run;
};

template <class Parameters>
Entry entry(const char* name, void (*kernel)(Parameters)) {
  return {name, [kernel](const void* parameters) {
            std::remove_const_t<Parameters> own;
            std::memcpy(&own, parameters, sizeof own);
            kernel(own);
          }};
}

const std::vector<Entry>& entries() {
#define PATTERND_ENTRY(name) entry(#name, name)
  static const std::vector<Entry> all = {
      PATTERND_ENTRY(patternd_coarse_prepare),       PATTERND_ENTRY(patternd_coarse_bound),
      PATTERND_ENTRY(patternd_coarse_search),        PATTERND_ENTRY(patternd_coarse_judge),
      PATTERND_ENTRY(patternd_coarse_score),         PATTERND_ENTRY(patternd_suppress_peaks),
      PATTERND_ENTRY(patternd_suppress_across),      PATTERND_ENTRY(patternd_suppress_select),
      PATTERND_ENTRY(patternd_trace_step),           PATTERND_ENTRY(patternd_trace_glance),
      PATTERND_ENTRY(patternd_trace_keep),           PATTERND_ENTRY(patternd_refine_pose),
      PATTERND_ENTRY(patternd_pyramid_halve_gray8),  PATTERND_ENTRY(patternd_pyramid_halve_gray16),
      PATTERND_ENTRY(patternd_convert_luma),         PATTERND_ENTRY(patternd_rectify_gray8),
      PATTERND_ENTRY(patternd_rectify_gray8_second), PATTERND_ENTRY(patternd_rectify_gray16),
      PATTERND_ENTRY(patternd_rectify_gray_f32),     PATTERND_ENTRY(patternd_blobs_subtract),
      PATTERND_ENTRY(patternd_components_histogram), PATTERND_ENTRY(patternd_components_otsu),
      PATTERND_ENTRY(patternd_components_columns),   PATTERND_ENTRY(patternd_components_adaptive),
      PATTERND_ENTRY(patternd_components_tiles),     PATTERND_ENTRY(patternd_components_seams),
      PATTERND_ENTRY(patternd_components_number),    PATTERND_ENTRY(patternd_components_finish),
      PATTERND_ENTRY(patternd_similar_rows),         PATTERND_ENTRY(patternd_similar_join),
      PATTERND_ENTRY(patternd_similar_number),       PATTERND_ENTRY(patternd_similar_finish)};
#undef PATTERND_ENTRY
  return all;
}

}  // namespace

FunctionHandle function_of(const char* name) {
  for (const Entry& entry : entries())
    if (std::strcmp(entry.name, name) == 0)
      return reinterpret_cast<FunctionHandle>(const_cast<Entry*>(&entry));
  return nullptr;
}

namespace {

// A line about a launch to the file that PATTERND_EMULATED_COUNTS names, where it does.
void write_counts(const char* kernel, const Launch& launch, const emulated::Counts& before) {
  const char* path = std::getenv("PATTERND_EMULATED_COUNTS");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) return;
  const emulated::Counts& now = emulated::counts;
  const auto since = [](std::uint64_t after, std::uint64_t start) {
    return static_cast<unsigned long long>(after - start);
  };
  std::fprintf(file,
               R"({"kernel":"%s","blocks":%u,"threads":%u,"working_blocks":%llu,"lookups":%llu,)"
               R"("fused":%llu,"exchanges":%llu,"barriers":%llu})"
               "\n",
               kernel + std::strlen("patternd_"), launch.grid_x * launch.grid_y,
               launch.block_x * launch.block_y, since(now.working_blocks, before.working_blocks),
               since(now.lookups, before.lookups), since(now.fused, before.fused),
               since(now.exchanges, before.exchanges), since(now.barriers, before.barriers));
  std::fclose(file);
}

}  // namespace

namespace {

bool has_no_room = false;
bool loses_teams = false;

// As refine.cu does where there is no room for a candidate, and pose_team.h where blocks wait for
// each other in vain.
void spoil(const RefineParameters& p) {
  for (int search = 0; search < p.trace.search_count; ++search) {
    auto& header = global<ResultHeader>(p.trace.headers)[search];
    header.overflow |= has_no_room ? 1U : 0U;
    header.broken |= loses_teams ? 1U : 0U;
  }
}

}  // namespace

// What refinement says of each pattern from now on, whatever it found.
extern "C" __attribute__((visibility("default"))) void fake_spoil_results(bool no_room,
                                                                          bool lost_teams) {
  has_no_room = no_room;
  loses_teams = lost_teams;
}

void run(FunctionHandle function, const Launch& launch, const void* parameters) {
  static std::uint32_t seed = 1;
  if (function == nullptr || launch.shared_bytes > emulated::kDynamicSharedBytes) std::abort();
  const auto* entry = reinterpret_cast<const Entry*>(function);
  const emulated::Counts before = emulated::counts;
  emulated::launch({static_cast<int>(launch.grid_x), static_cast<int>(launch.grid_y)},
                   {static_cast<int>(launch.block_x), static_cast<int>(launch.block_y)}, seed++,
                   [&] { entry->run(parameters); });
  if (std::strcmp(entry->name, "patternd_refine_pose") == 0)
    spoil(*static_cast<const RefineParameters*>(parameters));
  write_counts(entry->name, launch, before);
}

namespace {

// Those that live. A device that is lost takes its textures along, as their owner cannot end them
// any more.
std::map<TextureHandle, std::unique_ptr<emulated::Texture>>& textures() {
  static std::map<TextureHandle, std::unique_ptr<emulated::Texture>> all;
  return all;
}

}  // namespace

TextureHandle texture_of(const Pitch2d& picture) {
  const int bytes = picture.format == ArrayFormat::kUint8    ? 1
                    : picture.format == ArrayFormat::kUint16 ? 2
                                                             : 4;
  auto texture = std::unique_ptr<emulated::Texture>(new emulated::Texture{
      reinterpret_cast<const u8*>(picture.pointer), static_cast<int>(picture.pitch_bytes),
      static_cast<int>(picture.width), static_cast<int>(picture.height), bytes,
      static_cast<int>(picture.channels)});
  const TextureHandle handle = reinterpret_cast<std::uintptr_t>(texture.get());
  textures()[handle] = std::move(texture);
  return handle;
}
void end_texture(TextureHandle texture) { textures().erase(texture); }

}  // namespace patternd::cuda::fake
