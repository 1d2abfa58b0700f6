#include "cuda/device_image.h"

#include <algorithm>

#include "cuda/embedded_images.h"

namespace patternd::cuda {
namespace {

ImageKind kind_of(PatterndImageKind kind) {
  switch (kind) {
    case PATTERND_IMAGE_cubin:
      return ImageKind::kNative;
    case PATTERND_IMAGE_ptx:
      return ImageKind::kPtx;
    case PATTERND_IMAGE_universal:
      break;
  }
  return ImageKind::kUniversal;
}

// Tegra's GPUs: K1, TX1 and Nano, TX2, Xavier, Orin, Thor. Machine code is not exchanged between
// them and the discrete GPUs of the same major number.
bool is_tegra(int architecture) {
  constexpr int kTegra[] = {32, 53, 62, 72, 87, 101, 110};
  return std::find(std::begin(kTegra), std::end(kTegra), architecture) != std::end(kTegra);
}

// Since Volta the lanes of a warp run each by itself; PTX of before has no exchange among them that
// waits, and goes wrong there.
bool has_independent_lanes(int architecture) { return architecture >= 70; }

bool suits(const DeviceImage& image, int architecture) {
  switch (image.kind) {
    case ImageKind::kNative:
      if (image.architecture == architecture) return true;
      return image.architecture / 10 == architecture / 10 && image.architecture < architecture &&
             !is_tegra(image.architecture) && !is_tegra(architecture);
    case ImageKind::kPtx:
      return image.architecture <= architecture;
    case ImageKind::kUniversal:
      return image.architecture <= architecture &&
             has_independent_lanes(image.architecture) == has_independent_lanes(architecture);
  }
  return false;
}

// "universal_sm_30": one form of the universal image.
std::string form_name(const DeviceImage& image) {
  return image.name + "_sm_" + std::to_string(image.architecture);
}

// In their order; forms of one image have one name.
std::vector<std::string> unique_names(const std::vector<DeviceImage>& images) {
  std::vector<std::string> names;
  for (const DeviceImage& image : images)
    if (names.empty() || names.back() != image.name) names.push_back(image.name);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

// Nothing of `images` is for this GPU under the name asked for.
tl::unexpected<Error> nothing_suits(const std::vector<DeviceImage>& images, int major, int minor,
                                    const std::string& wanted, const std::string& name) {
  std::vector<DeviceImage> fitting;
  for (const DeviceImage& image : images)
    if (suits(image, 10 * major + minor)) fitting.push_back(image);
  const std::string gpu = std::to_string(major) + "." + std::to_string(minor);
  if (fitting.empty()) {
    return fail(ErrorCode::kUnsupported,
                "this build has no device image for a GPU of compute capability " + gpu +
                    "; it has " + listed(unique_names(images)));
  }
  return fail(ErrorCode::kInvalidArgument,
              name + ": is " + wanted +
                  ", of which this build has nothing for this GPU (compute capability " + gpu +
                  "); must be auto, or one of " + listed(unique_names(fitting)));
}

}  // namespace

std::vector<DeviceImage> images_of(const PatterndImageRow* row) {
  std::vector<DeviceImage> images;
  for (; row->name != nullptr; ++row) {
    images.push_back({row->name, kind_of(row->kind), row->architecture, row->begin,
                      static_cast<std::size_t>(row->end - row->begin)});
  }
  return images;
}

std::vector<DeviceImage> embedded_images() { return images_of(patternd_images_rows); }

std::vector<std::string> embedded_image_names() { return unique_names(embedded_images()); }

std::string described(const DeviceImage& image) {
  if (image.kind != ImageKind::kUniversal) return image.name;
  return image.name + " for sm_" + std::to_string(image.architecture);
}

Result<std::vector<DeviceImage>> images_for(const std::vector<DeviceImage>& images, int major,
                                            int minor, const std::string& wanted,
                                            const std::string& name) {
  const int architecture = 10 * major + minor;
  std::vector<DeviceImage> found;
  for (const DeviceImage& image : images) {
    if (image.kind == ImageKind::kUniversal && wanted == form_name(image)) {
      found.push_back(image);
      found.back().name = wanted;
    }
    if (wanted != "auto" && image.name != wanted) continue;
    if (suits(image, architecture)) found.push_back(image);
  }
  if (found.empty()) return nothing_suits(images, major, minor, wanted, name);
  std::sort(found.begin(), found.end(), [](const DeviceImage& a, const DeviceImage& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    if (a.architecture != b.architecture) return a.architecture > b.architecture;
    return a.name < b.name;
  });
  return found;
}

bool is_image_word(const std::string& word) {
  if (word == "auto" || word == "universal") return true;
  constexpr std::size_t kMostDigits = 4;
  for (const std::string prefix : {"sm_", "compute_"}) {
    if (word.compare(0, prefix.size(), prefix) != 0) continue;
    const std::size_t digits = word.size() - prefix.size();
    return digits >= 2 && digits <= kMostDigits &&
           word.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
  }
  return false;
}

const char* image_word_rule() {
  return "must be auto, universal, sm_NN or compute_NN, such as sm_87";
}

}  // namespace patternd::cuda
