// The reference of blobs: what a picture shows beyond another one (pipeline/blob_stage.cpp).

#include "cuda/kernels/components_parameters.h"
#include "cuda/kernels/device.h"

namespace patternd::cuda {

template <class Pixel>
PATTERND_DEVICE void subtract_row(const SubtractParameters& p, int y) {
  const auto* const picture = reinterpret_cast<const Pixel*>(
      global<const u8>(p.picture) + static_cast<i64>(y) * p.picture_stride_bytes);
  auto* const reference = reinterpret_cast<Pixel*>(global<u8>(p.reference) +
                                                   static_cast<i64>(y) * p.reference_stride_bytes);
  auto* const difference = reinterpret_cast<Pixel*>(
      global<u8>(p.difference) + static_cast<i64>(y) * p.difference_stride_bytes);
  const int end = minimum((block_x() + 1) * kSubtractColumns, p.width);
  for (int x = block_x() * kSubtractColumns + thread_x(); x < end; x += kSubtractThreads) {
    const Pixel value = picture[x];
    const Pixel before = reference[x];
    difference[x] = static_cast<Pixel>(value > before ? value - before : 0);
    if (p.keep != 0) reference[x] = value;
  }
}

// grid: (groups of kSubtractColumns, rows).
PATTERND_KERNEL __launch_bounds__(kSubtractThreads)
    patternd_blobs_subtract(const SubtractParameters p) {
  if (p.deep != 0)
    subtract_row<u16>(p, block_y());
  else
    subtract_row<u8>(p, block_y());
}

}  // namespace patternd::cuda
