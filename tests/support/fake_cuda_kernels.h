// What the made driver does with kernels and textures: nothing (fake_cuda_kernels.cpp), or what the
// GPU would do (emulated/kernels.cpp).
#pragma once

#include "cuda/driver_api.h"

namespace patternd::cuda::fake {

struct Launch {
  unsigned grid_x, grid_y;
  unsigned block_x, block_y;
  unsigned shared_bytes;
};

using Pitch2d = decltype(ResourceDesc{}.resource.pitch2d);

[[nodiscard]] FunctionHandle function_of(const char* name);
void run(FunctionHandle function, const Launch& launch, const void* parameters);
[[nodiscard]] TextureHandle texture_of(const Pitch2d& picture);
void end_texture(TextureHandle texture);

}  // namespace patternd::cuda::fake
