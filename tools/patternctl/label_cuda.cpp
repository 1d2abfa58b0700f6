#include "tools/patternctl/label_cuda.h"

#include <algorithm>
#include <utility>

#include "cuda/components_stage.h"
#include "cuda/propagation_study.h"

namespace patternd::tools {
namespace {

using cuda::ComponentsStage;
using cuda::DevicePicture;
using cuda::PropagationProgram;
using cuda::PropagationStudy;
using cuda::Stream;

// As many labels as a picture of 32 megapixels can have with connectivity 8.
constexpr int kMostLabels = 1 << 23;

BlobParams without_filters(const BlobParams& params) {
  BlobParams plain;
  plain.mode = params.mode;
  plain.threshold = params.threshold;
  plain.adaptive_radius = params.adaptive_radius;
  plain.adaptive_offset = params.adaptive_offset;
  plain.similarity = params.similarity;
  plain.below = params.below;
  plain.connectivity = params.connectivity;
  plain.roi = params.roi;
  plain.max_blobs = 0;  // the largest are not asked for
  return plain;
}

Result<void> label_by_runs(const Stream& stream, const cuda::DeviceView& picture,
                           const BlobParams& params, Labelled& labelled) {
  cuda::ComponentsOptions options;
  options.labels = true;
  options.capacity = static_cast<int>(std::min<std::int64_t>(
      kMostLabels, static_cast<std::int64_t>(picture.width) * picture.height));
  auto stage = ComponentsStage::create(stream.device(), picture.width, picture.height,
                                       picture.format, params, options);
  if (!stage) return tl::make_unexpected(stage.error());
  if (auto ok = stage->enqueue(stream, picture); !ok) return ok;
  if (auto ok = stage->enqueue_download(stream); !ok) return ok;
  if (auto ok = cuda::download(stream, stage->labels(), labelled.labels.view()); !ok) return ok;
  if (auto ok = stream.wait(); !ok) return ok;
  std::vector<Blob> none;
  std::uint64_t total = 0;
  if (auto ok = stage->collect(stream, none, total); !ok) return ok;
  for (std::int64_t label = 1; label <= static_cast<std::int64_t>(total); ++label)
    labelled.blobs.push_back(stage->blob(label));
  return {};
}

Result<void> label_by_program(const Stream& stream, const cuda::DeviceView& picture,
                              const ImageView& image, const BlobParams& params,
                              PropagationProgram program, Labelled& labelled) {
  if (image.format != PixelFormat::kGray8 || params.roi)
    return fail(ErrorCode::kUnsupported,
                "the report's programs label whole 8-bit grey pictures on the GPU; use --method "
                "runs, or --backend cpu");
  auto study =
      PropagationStudy::create(stream.device(), program, image.width, image.height, params);
  if (!study) return tl::make_unexpected(study.error());
  if (auto rounds = study->run(stream, picture); !rounds)
    return tl::make_unexpected(rounds.error());
  if (auto ok = study->download(stream, labelled.labels.view()); !ok) return ok;
  auto cpu = ComponentLabeller::create(image.width, image.height, image.format, params, {});
  if (!cpu) return tl::make_unexpected(cpu.error());
  if (auto ok = cpu->process(image); !ok) return ok;
  for (std::int64_t label = 1; label <= cpu->count(); ++label)
    labelled.blobs.push_back(cpu->blob(label));
  return {};
}

}  // namespace

Result<Labelled> label_on_cuda(const ImageView& image, const BlobParams& params,
                               const std::string& method) {
  const auto stream = cuda::open_first_gpu();
  if (!stream) {
    const bool by_method = method == "equivalence" || method == "texture";
    return by_method
               ? cuda::not_available("--method: " + method, stream.error(), "runs or propagation")
               : cuda::not_available("--backend: cuda", stream.error(), "auto or cpu");
  }
  auto labels = Image::create(image.width, image.height, PixelFormat::kLabel32);
  if (!labels) return tl::make_unexpected(labels.error());
  auto picture = DevicePicture::create(stream->device(), image.width, image.height, image.format);
  if (!picture) return tl::make_unexpected(picture.error());
  if (auto ok = cuda::upload(*stream, image, picture->view()); !ok)
    return tl::make_unexpected(ok.error());
  Labelled labelled;
  labelled.labels = std::move(*labels);
  const BlobParams plain = without_filters(params);
  const auto done =
      method == "runs"
          ? label_by_runs(*stream, picture->view(), plain, labelled)
          : label_by_program(*stream, picture->view(), image, plain,
                             method == "texture"       ? PropagationProgram::kTexture
                             : method == "equivalence" ? PropagationProgram::kEquivalence
                                                       : PropagationProgram::kPropagation,
                             labelled);
  if (!done) return tl::make_unexpected(done.error());
  return labelled;
}

}  // namespace patternd::tools
