// NVIDIA's NPP beside our rectification: found at run time (libnppig.so.13), in declarations of our
// own, as nothing of CUDA's is linked. Its structures are those of NPP 13's nppdefs.h.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "cuda/picture.h"
#include "cuda/stream.h"

namespace patternd::cuda::test {

class NppPeers {
 public:
  // Null where the library is not here, with the reason.
  [[nodiscard]] static std::unique_ptr<NppPeers> open(const std::shared_ptr<const Device>& device,
                                                      std::string& reason);
  ~NppPeers();
  NppPeers(const NppPeers&) = delete;
  NppPeers& operator=(const NppPeers&) = delete;

  // nppiRemap_{8u,32f}_C1R with bilinear interpolation: `map_x`, `map_y` (kGrayF32) say where each
  // output pixel's source lies. Enqueues.
  [[nodiscard]] Result<void> remap(const Stream& stream, const DeviceView& input,
                                   const DeviceView& map_x, const DeviceView& map_y,
                                   const DeviceView& output) const;
  // nppiWarpPerspective: `to_output` takes input pixels to output pixels, row by row. Enqueues.
  [[nodiscard]] Result<void> warp(const Stream& stream, const DeviceView& input,
                                  const std::array<double, 9>& to_output,
                                  const DeviceView& output) const;

 private:
  struct Functions;
  NppPeers();
  std::shared_ptr<const Device> device_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace patternd::cuda::test
