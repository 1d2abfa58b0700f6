// The device images embedded in this binary, and which of them suit a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/embedded_images.h"
#include "cuda/setting_names.h"
#include "pipeline/result.h"

namespace patternd::cuda {

enum class ImageKind {
  kNative,     // machine code for one architecture
  kPtx,        // the newest architecture's PTX: for GPUs younger than the toolkit
  kUniversal,  // PTX of three forms: ISA 4.1 for sm_30, for GPUs since Kepler; ISA 6.0 for sm_70,
               // for those since Volta, whose warps run otherwise; ISA 7.4 for sm_80, for those
               // since Ampere, whose matrix units it uses
};

struct DeviceImage {
  std::string name;  // "sm_90", "compute_120", "universal"
  ImageKind kind = ImageKind::kUniversal;
  int architecture = 30;       // 10 · major + minor
  const void* data = nullptr;  // a cubin, or PTX that ends in a zero byte
  std::size_t size_bytes = 0;
};

// Whether its kernels wait for the launch before theirs, so that they may be launched before that
// one has ended (kernels/device.h, await_launch_before): native code and PTX since Hopper.
[[nodiscard]] inline bool waits_for_launches(const DeviceImage& image) {
  return image.kind != ImageKind::kUniversal && image.architecture >= 90;
}

// Those of a generated table, in its order.
[[nodiscard]] std::vector<DeviceImage> images_of(const PatterndImageRow* row);

// The service's in this binary, in the order of architectures, the universal one last. Empty where
// none could be compiled.
[[nodiscard]] std::vector<DeviceImage> embedded_images();

// Their names, for --version.
[[nodiscard]] std::vector<std::string> embedded_image_names();

// Its name, of the universal image with the form: "universal for sm_80".
[[nodiscard]] std::string described(const DeviceImage& image);

// Those of `images` that a GPU of compute capability major.minor can run, best first: native code
// of its own architecture, then of an older one of the same major number (Tegra's and the others'
// are not exchanged), PTX no newer than the GPU, the universal image's forms for it, the newest
// first: a driver older than one may take the next. `wanted` is compute.image: "auto", or a name;
// asked for by name, that image alone. A test may also name a form of the universal image,
// "universal_sm_30", and gets it whether it suits the GPU or not, under that name; the
// configuration takes no such name. Where nothing suits: kInvalidArgument that begins with `name`
// and says what would, or kUnsupported where nothing of this build would.
//   images_for(embedded_images(), 9, 0, "auto")  ->  sm_90, universal, universal
[[nodiscard]] Result<std::vector<DeviceImage>> images_for(
    const std::vector<DeviceImage>& images, int major, int minor, const std::string& wanted,
    const std::string& name = SettingNames().image);

// Whether a user may ask for an image by this word: "auto", "universal", "sm_87", "compute_120". It
// need not be in this build.
[[nodiscard]] bool is_image_word(const std::string& word);
// The same, for messages.
[[nodiscard]] const char* image_word_rule();

}  // namespace patternd::cuda
