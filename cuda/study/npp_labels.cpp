#include "cuda/study/npp_labels.h"

#include <string>

#include "cuda/look_up.h"
#include "cuda/study/npp.h"

namespace patternd::cuda {

namespace {

constexpr int kNormInfinity = 0;  // NppiNorm: connectivity 8

Result<void> check(int status, const char* call) {
  if (status == 0) return {};
  return fail(ErrorCode::kDevice, std::string(call) + " failed with " + std::to_string(status));
}

void* open_library() {
  for (const char* name : {"libnppif.so.13", "libnppif.so.12", "libnppif.so.11", "libnppif.so"})
    if (void* library = dlopen(name, RTLD_NOW); library != nullptr) return library;
  return nullptr;
}

}  // namespace

struct NppLabels::Functions {
  int (*label_bytes)(NppSize, int*) = nullptr;
  int (*compress_bytes)(int, int*) = nullptr;
  int (*label)(std::uint8_t*, int, std::uint32_t*, int, NppSize, int, std::uint8_t*,
               NppContext) = nullptr;
  int (*compress)(std::uint32_t*, int, NppSize, int, int*, std::uint8_t*, NppContext) = nullptr;
};

Result<NppLabels> NppLabels::create(const std::shared_ptr<const Device>& device, int width,
                                    int height) {
  void* const library = open_library();
  if (library == nullptr)
    return fail(ErrorCode::kUnsupported, "NPP: libnppif cannot be opened here");
  auto functions = std::make_shared<Functions>();
  if (!look_up(library, "nppiLabelMarkersUFGetBufferSize_32u_C1R", functions->label_bytes) ||
      !look_up(library, "nppiCompressMarkerLabelsGetBufferSize_32u_C1R",
               functions->compress_bytes) ||
      !look_up(library, "nppiLabelMarkersUF_8u32u_C1R_Ctx", functions->label) ||
      !look_up(library, "nppiCompressMarkerLabelsUF_32u_C1IR_Ctx", functions->compress))
    return fail(ErrorCode::kUnsupported, "NPP: libnppif lacks the functions of CUDA 11 to 13");
  int bytes = 0;
  int compress_bytes = 0;
  if (auto ok = check(functions->label_bytes({width, height}, &bytes), "NPP's buffer size"); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = check(functions->compress_bytes(width * height, &compress_bytes),
                      "NPP's buffer size for compression");
      !ok)
    return tl::make_unexpected(ok.error());
  NppLabels npp;
  npp.functions_ = std::move(functions);
  npp.width_ = width;
  npp.height_ = height;
  const std::size_t label_bytes =
      sizeof(std::uint32_t) * static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  for (const auto& [buffer, size] :
       {std::pair{&npp.labels_, label_bytes},
        {&npp.scratch_, static_cast<std::size_t>(bytes)},
        {&npp.compress_scratch_, static_cast<std::size_t>(compress_bytes)}}) {
    auto made = DeviceBuffer::create(device, size);
    if (!made) return tl::make_unexpected(made.error());
    *buffer = std::move(*made);
  }
  return npp;
}

Result<void> NppLabels::label(const Stream& stream, const DeviceView& picture) const {
  return check(functions_->label(
                   reinterpret_cast<std::uint8_t*>(picture.address), picture.stride_bytes,
                   reinterpret_cast<std::uint32_t*>(labels_.address()), 4 * width_,
                   {width_, height_}, kNormInfinity,
                   reinterpret_cast<std::uint8_t*>(scratch_.address()), npp_context_of(stream)),
               "nppiLabelMarkersUF_8u32u_C1R_Ctx");
}

Result<int> NppLabels::compress(const Stream& stream) const {
  int largest = 0;
  const auto ok =
      check(functions_->compress(reinterpret_cast<std::uint32_t*>(labels_.address()), 4 * width_,
                                 {width_, height_}, width_ * height_, &largest,
                                 reinterpret_cast<std::uint8_t*>(compress_scratch_.address()),
                                 npp_context_of(stream)),
            "nppiCompressMarkerLabelsUF_32u_C1IR_Ctx");
  if (!ok) return tl::make_unexpected(ok.error());
  return largest;
}

}  // namespace patternd::cuda
