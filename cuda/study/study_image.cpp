#include "cuda/study/study_image.h"

#include <utility>

namespace patternd::cuda {

std::vector<DeviceImage> study_images() { return images_of(patternd_study_images_rows); }

Result<StudyImage> StudyImage::load(const std::shared_ptr<const Device>& device,
                                    const std::string& wanted, const std::string& name) {
  const DeviceProperties& gpu = device->properties();
  const auto images = images_for(study_images(), gpu.major, gpu.minor, wanted, name);
  if (!images) return tl::make_unexpected(images.error());
  const Driver& api = device->driver();
  std::string reasons;
  for (const DeviceImage& image : *images) {
    ModuleHandle module = nullptr;
    const Status status = api.module_load_data(&module, image.data);
    if (status != kSuccess) {
      reasons += "; " + api.error(status, image.name).message;
      continue;
    }
    StudyImage study;
    study.device_ = device;
    study.module_ = Owner<ModuleHandle>(device, module, &Driver::module_unload);
    study.name_ = image.name;
    return study;
  }
  return fail(ErrorCode::kUnsupported,
              gpu.name + ": the driver loads none of the study's images" + reasons);
}

Result<Kernel> StudyImage::kernel(const char* name) const {
  Kernel kernel{nullptr, name};
  const Driver& api = device_->driver();
  const Status status = api.module_get_function(&kernel.function, module_.get(), name);
  if (status != kSuccess) {
    return tl::make_unexpected(
        api.error(status, std::string("kernel ") + name + " of the study's image " + name_));
  }
  return kernel;
}

}  // namespace patternd::cuda
