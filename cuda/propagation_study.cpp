#include "cuda/propagation_study.h"

#include <cmath>
#include <vector>

#include "pipeline/components_threshold.h"

namespace patternd::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct KernelNames {
  const char* scan;
  const char* analyse;  // null: the program has none
};
KernelNames names_of(PropagationProgram program) {
  switch (program) {
    case PropagationProgram::kPropagation:
      return {"patternd_propagation_spread", nullptr};
    case PropagationProgram::kEquivalence:
      return {"patternd_equivalence_scan", "patternd_equivalence_analyse"};
    case PropagationProgram::kTexture:
      return {"patternd_texture_scan", "patternd_equivalence_analyse"};
  }
  return {"", nullptr};
}

}  // namespace

Result<PropagationStudy> PropagationStudy::create(const std::shared_ptr<const Device>& device,
                                                  PropagationProgram program, int width, int height,
                                                  const BlobParams& params) {
  const bool similarity = params.mode == BlobParams::Mode::kSimilarity;
  if (!similarity && params.mode != BlobParams::Mode::kThreshold)
    return fail(ErrorCode::kUnsupported,
                "the report's programs take a fixed threshold or similarity");
  PropagationStudy study;
  study.device_ = device;
  study.program_ = program;
  const KernelNames names = names_of(program);
  auto number = device->kernel("patternd_propagation_number");
  auto scan = device->kernel(names.scan);
  auto analyse = device->kernel(names.analyse != nullptr ? names.analyse : names.scan);
  if (!number || !scan || !analyse)
    return tl::make_unexpected((!number ? number : !scan ? scan : analyse).error());
  study.number_ = *number;
  study.scan_ = *scan;
  study.analyse_ = *analyse;
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  auto labels = DeviceBuffer::create(device, 4 * pixels);
  if (!labels) return tl::make_unexpected(labels.error());
  auto changed = SharedBuffer::create(device, MemoryMode::kCopy, sizeof(std::uint32_t));
  if (!changed) return tl::make_unexpected(changed.error());
  study.labels_ = std::move(*labels);
  study.changed_ = std::move(*changed);
  study.shape_.grid_x = static_cast<unsigned>((pixels + kThreads - 1) / kThreads);
  study.shape_.block_x = kThreads;
  const auto range = components::foreground_range(params.threshold, params.below, 255);
  PropagationParameters& p = study.parameters_;
  p.labels = study.labels_.address();
  p.changed = study.changed_.device();
  p.width = width;
  p.height = height;
  p.low = range.low;
  p.high = range.high;
  p.similarity = similarity ? static_cast<int>(std::fmin(params.similarity, 255)) : -1;
  p.eight = params.connectivity == 8 ? 1 : 0;
  return study;
}

Result<bool> PropagationStudy::round(const Stream& stream, const PropagationParameters& p) {
  *changed_.host_as<std::uint32_t>() = 0;
  if (auto ok = changed_.upload(stream, sizeof(std::uint32_t)); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stream.launch(scan_, shape_, p); !ok) return tl::make_unexpected(ok.error());
  if (program_ != PropagationProgram::kPropagation)
    if (auto ok = stream.launch(analyse_, shape_, p); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = changed_.download(stream, sizeof(std::uint32_t)); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stream.wait(); !ok) return tl::make_unexpected(ok.error());
  return *changed_.host_as<std::uint32_t>() != 0;
}

Result<int> PropagationStudy::run(const Stream& stream, const DeviceView& picture) {
  PropagationParameters p = parameters_;
  p.picture = picture.address;
  p.picture_stride_bytes = picture.stride_bytes;
  Texture texture;
  if (program_ == PropagationProgram::kTexture) {
    auto made = Texture::create(device_, picture.address, picture.width, picture.height,
                                static_cast<std::size_t>(picture.stride_bytes), picture.format, 1,
                                FilterMode::kPoint);
    if (!made) return tl::make_unexpected(made.error());
    texture = std::move(*made);
    p.texture = texture.get();
  }
  if (auto ok = stream.launch(number_, shape_, p); !ok) return tl::make_unexpected(ok.error());
  for (int rounds = 1;; ++rounds) {
    auto moved = round(stream, p);
    if (!moved) return tl::make_unexpected(moved.error());
    if (!*moved) return rounds;
  }
}

Result<void> PropagationStudy::download(const Stream& stream, MutableImageView labels) const {
  const std::size_t pixels =
      static_cast<std::size_t>(parameters_.width) * static_cast<std::size_t>(parameters_.height);
  std::vector<std::uint32_t> places(pixels);
  const Driver& api = device_->driver();
  if (auto ok = api.check(
          api.memcpy_d2h_async(places.data(), labels_.pointer(), 4 * pixels, stream.get()),
          "cuMemcpyDtoHAsync of labels");
      !ok)
    return ok;
  if (auto ok = stream.wait(); !ok) return ok;
  // A label is 1 + the place of the component's first pixel.
  std::vector<std::int32_t> numbers(pixels + 1, 0);
  std::int32_t count = 0;
  for (std::size_t at = 0; at < pixels; ++at) {
    if (places[at] == at + 1) numbers[at + 1] = ++count;
    const auto width = static_cast<std::size_t>(labels.width);
    labels.row<std::int32_t>(static_cast<int>(at / width))[at % width] = numbers[places[at]];
  }
  return {};
}

}  // namespace patternd::cuda
