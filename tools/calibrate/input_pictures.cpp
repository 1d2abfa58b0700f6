#include "tools/calibrate/input_pictures.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "pipeline/sources/frame_reader.h"

namespace patternd::calibrate {

namespace files = std::filesystem;

Result<std::vector<std::string>> picture_paths(const std::string& name, int every) {
  std::error_code ignored;
  if (!files::is_directory(name, ignored)) return std::vector<std::string>{name};
  std::vector<std::string> inside;
  for (const auto& entry : files::directory_iterator(name, ignored)) {
    if (is_picture_name(entry.path().filename().string())) inside.push_back(entry.path().string());
  }
  std::sort(inside.begin(), inside.end());
  if (inside.empty()) {
    return fail(ErrorCode::kNotFound,
                name + ": no recording and no pictures in this folder (PNG, JPEG, PGM, PPM)");
  }
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < inside.size(); i += static_cast<std::size_t>(every))
    paths.push_back(inside[i]);
  return paths;
}

Result<void> agree_on_size(CameraModel& model, const std::string& name, const ImageView& picture) {
  if (model.image_width == 0) {
    model.image_width = picture.width;
    model.image_height = picture.height;
  }
  if (picture.width == model.image_width && picture.height == model.image_height) return {};
  return fail(ErrorCode::kInvalidArgument, name + " has " +
                                               size_text(picture.width, picture.height) +
                                               " pixels, the pictures before it " +
                                               size_text(model.image_width, model.image_height) +
                                               "; all must come from one camera in one mode");
}

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

}  // namespace patternd::calibrate
