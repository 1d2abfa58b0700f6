// The report's programs on the GPU, kept for measuring: B (R2), the smallest label among the
// neighbours until nothing moves; C (R3), label equivalence (Kalentev, Rai, Kemnitz and Schneider,
// J. Parallel Distrib. Comput. 71(4), 2011) in its form with one array, where a label is a place in
// it; D (R4), C that reads its picture through the texture unit. One thread a pixel, 256 a block.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/kernels/device.h"

namespace patternd::cuda {

struct FromMemory {
  const u8* picture;
  int stride_bytes;
  __device__ int operator()(int x, int y) const {
    return picture[static_cast<i64>(y) * stride_bytes + x];
  }
};
struct FromTexture {
  u64 texture;
  __device__ int operator()(int x, int y) const {
    return static_cast<int>(
        fetch(texture, static_cast<float>(x) + 0.5F, static_cast<float>(y) + 0.5F) * 255.0F + 0.5F);
  }
};

PATTERND_DEVICE int difference(int a, int b) { return a > b ? a - b : b - a; }

// The smallest label of the pixel and its connected neighbours.
template <class Picture>
PATTERND_DEVICE u32 smallest_around(const PropagationParameters& p, const Picture& picture, int x,
                                    int y, u32 own) {
  const volatile u32* const labels = global<const u32>(p.labels);
  const int value = p.similarity >= 0 ? picture(x, y) : 0;
  u32 smallest = own;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (p.eight == 0 && dx != 0 && dy != 0) continue;
      const int nx = x + dx;
      const int ny = y + dy;
      if (nx < 0 || ny < 0 || nx >= p.width || ny >= p.height) continue;
      const u32 label = labels[static_cast<i64>(ny) * p.width + nx];
      if (label == 0 || label >= smallest) continue;
      if (p.similarity >= 0 && difference(value, picture(nx, ny)) > p.similarity) continue;
      smallest = label;
    }
  }
  return smallest;
}

PATTERND_DEVICE i64 pixel_of_thread() {
  return static_cast<i64>(block_x()) * threads_x() + thread_x();
}

template <class Picture>
PATTERND_DEVICE void number_pixel(const PropagationParameters& p, const Picture& picture) {
  u32* const labels = global<u32>(p.labels);
  const i64 at = pixel_of_thread();
  if (at >= static_cast<i64>(p.width) * p.height) return;
  const int value = picture(static_cast<int>(at % p.width), static_cast<int>(at / p.width));
  const bool on = p.similarity >= 0 || (value >= p.low && value <= p.high);
  labels[at] = on ? static_cast<u32>(at) + 1 : 0;
}

PATTERND_KERNEL __launch_bounds__(256) patternd_propagation_number(const PropagationParameters p) {
  number_pixel(p, FromMemory{global<const u8>(p.picture), p.picture_stride_bytes});
}

PATTERND_KERNEL __launch_bounds__(256) patternd_propagation_spread(const PropagationParameters p) {
  const FromMemory picture{global<const u8>(p.picture), p.picture_stride_bytes};
  u32* const labels = global<u32>(p.labels);
  u32* const changed = global<u32>(p.changed);
  const i64 at = pixel_of_thread();
  if (at >= static_cast<i64>(p.width) * p.height) return;
  const u32 own = labels[at];
  if (own == 0) return;
  const u32 smallest = smallest_around(p, picture, static_cast<int>(at % p.width),
                                       static_cast<int>(at / p.width), own);
  if (smallest == own) return;
  labels[at] = smallest;
  *changed = 1;
}

// Scan: the pixel that a label names learns of a smaller one.
template <class Picture>
PATTERND_DEVICE void scan_pixel(const PropagationParameters& p, const Picture& picture) {
  u32* const labels = global<u32>(p.labels);
  u32* const changed = global<u32>(p.changed);
  const i64 at = pixel_of_thread();
  if (at >= static_cast<i64>(p.width) * p.height) return;
  const u32 own = labels[at];
  if (own == 0) return;
  const u32 smallest = smallest_around(p, picture, static_cast<int>(at % p.width),
                                       static_cast<int>(at / p.width), own);
  if (smallest == own) return;
  atomic_minimum(labels + own - 1, smallest);
  *changed = 1;
}

PATTERND_KERNEL __launch_bounds__(256) patternd_equivalence_scan(const PropagationParameters p) {
  scan_pixel(p, FromMemory{global<const u8>(p.picture), p.picture_stride_bytes});
}
PATTERND_KERNEL __launch_bounds__(256) patternd_texture_scan(const PropagationParameters p) {
  scan_pixel(p, FromTexture{p.texture});
}

// Analysis and labelling: each pixel follows its label to the root.
PATTERND_KERNEL __launch_bounds__(256) patternd_equivalence_analyse(const PropagationParameters p) {
  u32* const labels = global<u32>(p.labels);
  const i64 at = pixel_of_thread();
  if (at >= static_cast<i64>(p.width) * p.height) return;
  const volatile u32* const now = labels;
  u32 label = now[at];
  if (label == 0) return;
  for (u32 next = now[label - 1]; next != label; next = now[label - 1]) label = next;
  labels[at] = label;
}

}  // namespace patternd::cuda
