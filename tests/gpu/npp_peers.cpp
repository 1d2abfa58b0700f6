#include "tests/gpu/npp_peers.h"

#include "cuda/look_up.h"
#include "cuda/study/npp.h"

namespace patternd::cuda::test {
namespace {

constexpr int kLinear = 2;  // NPPI_INTER_LINEAR

template <class Pixel>
using Remap = int (*)(const Pixel*, NppSize, int, NppRect, const float*, int, const float*, int,
                      Pixel*, int, NppSize, int, NppContext);
template <class Pixel>
using Warp = int (*)(const Pixel*, NppSize, int, NppRect, Pixel*, int, NppRect, const double (*)[3],
                     int, NppContext);

template <class Pixel>
Pixel* pointer(const DeviceView& view) {
  return reinterpret_cast<Pixel*>(static_cast<std::uintptr_t>(view.address));  // NOLINT: device's
}

Result<void> outcome(int status, const char* what) {
  // Positive numbers are remarks, such as that the output is not wholly covered.
  if (status >= 0) return {};
  return fail(ErrorCode::kDevice, std::string(what) + ": NPP status " + std::to_string(status));
}

template <class Pixel>
Result<void> remap_with(Remap<Pixel> function, const Stream& stream, const DeviceView& input,
                        const DeviceView& map_x, const DeviceView& map_y,
                        const DeviceView& output) {
  const NppSize size{input.width, input.height};
  return outcome(
      function(pointer<const Pixel>(input), size, input.stride_bytes,
               {0, 0, input.width, input.height}, pointer<const float>(map_x), map_x.stride_bytes,
               pointer<const float>(map_y), map_y.stride_bytes, pointer<Pixel>(output),
               output.stride_bytes, {output.width, output.height}, kLinear, npp_context_of(stream)),
      "nppiRemap");
}

template <class Pixel>
Result<void> warp_with(Warp<Pixel> function, const Stream& stream, const DeviceView& input,
                       const std::array<double, 9>& m, const DeviceView& output) {
  const double rows[3][3] = {{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}};
  return outcome(
      function(pointer<const Pixel>(input), {input.width, input.height}, input.stride_bytes,
               {0, 0, input.width, input.height}, pointer<Pixel>(output), output.stride_bytes,
               {0, 0, output.width, output.height}, rows, kLinear, npp_context_of(stream)),
      "nppiWarpPerspective");
}

}  // namespace

struct NppPeers::Functions {
  void* library = nullptr;
  Remap<std::uint8_t> remap_gray8 = nullptr;
  Remap<float> remap_f32 = nullptr;
  Warp<std::uint8_t> warp_gray8 = nullptr;
  Warp<float> warp_f32 = nullptr;
};

NppPeers::NppPeers() : functions_(std::make_unique<Functions>()) {}
NppPeers::~NppPeers() {
  if (functions_->library != nullptr) dlclose(functions_->library);
}

std::unique_ptr<NppPeers> NppPeers::open(const std::shared_ptr<const Device>& device,
                                         std::string& reason) {
  std::unique_ptr<NppPeers> peers(new NppPeers);
  peers->device_ = device;
  Functions& f = *peers->functions_;
  f.library = dlopen("libnppig.so.13", RTLD_NOW | RTLD_LOCAL);
  if (f.library == nullptr) {
    reason = dlerror();
    return nullptr;
  }
  if (!look_up(f.library, "nppiRemap_8u_C1R_Ctx", f.remap_gray8) ||
      !look_up(f.library, "nppiRemap_32f_C1R_Ctx", f.remap_f32) ||
      !look_up(f.library, "nppiWarpPerspective_8u_C1R_Ctx", f.warp_gray8) ||
      !look_up(f.library, "nppiWarpPerspective_32f_C1R_Ctx", f.warp_f32)) {
    reason = "libnppig.so.13 lacks a function";
    return nullptr;
  }
  return peers;
}

Result<void> NppPeers::remap(const Stream& stream, const DeviceView& input, const DeviceView& map_x,
                             const DeviceView& map_y, const DeviceView& output) const {
  if (input.format == PixelFormat::kGray8)
    return remap_with(functions_->remap_gray8, stream, input, map_x, map_y, output);
  return remap_with(functions_->remap_f32, stream, input, map_x, map_y, output);
}

Result<void> NppPeers::warp(const Stream& stream, const DeviceView& input,
                            const std::array<double, 9>& to_output,
                            const DeviceView& output) const {
  if (input.format == PixelFormat::kGray8)
    return warp_with(functions_->warp_gray8, stream, input, to_output, output);
  return warp_with(functions_->warp_f32, stream, input, to_output, output);
}

}  // namespace patternd::cuda::test
