#include "tools/patternctl/rectify_cuda.h"

#include "cuda/picture.h"
#include "cuda/rectify_stage.h"

namespace patternd::tools {

using cuda::DevicePicture;

Result<Image> rectify_on_cuda(const CameraModel& model, const ImageView& picture) {
  const auto stream = cuda::open_first_gpu();
  if (!stream) return cuda::not_available("--backend: cuda", stream.error(), "auto or cpu");
  const auto& device = stream->device();
  auto plan = cuda::plan_rectification(model);
  if (!plan) return tl::make_unexpected(plan.error());
  auto source = DevicePicture::create(device, picture.width, picture.height, picture.format);
  if (!source) return tl::make_unexpected(source.error());
  auto target = DevicePicture::create(device, plan->width, plan->height, picture.format);
  if (!target) return tl::make_unexpected(target.error());
  auto output = Image::create(plan->width, plan->height, picture.format);
  if (!output) return output;
  const cuda::DeviceView& view = source->view();
  auto texture = cuda::Texture::create(device, view.address, view.width, view.height,
                                       static_cast<std::size_t>(view.stride_bytes), view.format, 1,
                                       cuda::FilterMode::kPoint);
  if (!texture) return tl::make_unexpected(texture.error());
  auto stage = cuda::RectifyStage::create(device, *plan, picture.format, model.border, {});
  if (!stage) return tl::make_unexpected(stage.error());
  if (auto ok = cuda::upload(*stream, picture, view); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage->enqueue(*stream, *texture, target->view(), view); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (auto ok = cuda::download(*stream, target->view(), output->view()); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (auto ok = stream->wait(); !ok) return tl::make_unexpected(ok.error());
  return output;
}

}  // namespace patternd::tools
