// NPP's structures and how its functions are found, as its headers of CUDA 11 to 13 have them; for
// what measures beside it. Nothing of NVIDIA's is needed to build.
#pragma once

#include <cstddef>

#include "cuda/stream.h"

namespace patternd::cuda {

struct NppSize {
  int width;
  int height;
};
struct NppRect {
  int x;
  int y;
  int width;
  int height;
};
// NppStreamContext.
struct NppContext {
  StreamHandle stream;
  int device;
  int multiprocessors;
  int max_threads_per_multiprocessor;
  int max_threads_per_block;
  std::size_t shared_bytes_per_block;
  int major;
  int minor;
  unsigned stream_flags;
  int reserved;
};

inline NppContext npp_context_of(const Stream& stream) {
  const DeviceProperties& gpu = stream.device()->properties();
  return {stream.get(),
          gpu.ordinal,
          gpu.multiprocessors,
          2048,
          gpu.max_threads_per_block,
          static_cast<std::size_t>(gpu.max_shared_bytes_per_block),
          gpu.major,
          gpu.minor,
          kStreamNonBlocking,
          0};
}

}  // namespace patternd::cuda
