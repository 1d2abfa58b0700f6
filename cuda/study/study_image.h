// The study's kernels on a device that is open for the service's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/device_image.h"

namespace patternd::cuda {

// The images that this binary embeds of the study.
[[nodiscard]] std::vector<DeviceImage> study_images();

class StudyImage {
 public:
  // Loads the best image for the device (`wanted`: as compute.image), the next where that fails.
  // Errors: kInvalidArgument that begins with `name` where nothing suits what is asked for, else
  // the driver's.
  //   auto study = StudyImage::load(device, "auto");
  //   auto copy = study->kernel("patternd_study_copy");
  [[nodiscard]] static Result<StudyImage> load(const std::shared_ptr<const Device>& device,
                                               const std::string& wanted,
                                               const std::string& name = SettingNames().image);

  [[nodiscard]] Result<Kernel> kernel(const char* name) const;
  // "sm_90", "universal".
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::shared_ptr<const Device> device_;
  Owner<ModuleHandle> module_;
  std::string name_;
};

}  // namespace patternd::cuda
