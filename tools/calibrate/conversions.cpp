#include "tools/calibrate/conversions.h"

#include <algorithm>

#include <opencv2/core.hpp>

#include "pipeline/input_file.h"
#include "pipeline/utf8.h"
#include "pipeline/yaml_reader.h"

namespace patternd::calibrate {
namespace {

// Lens and size put together and checked; `distortion` in the model's order.
Result<CameraModel> assembled(const std::string& path, int width, int height, LensModel model,
                              const std::vector<double>& matrix,
                              const std::vector<double>& distortion) {
  const std::size_t count = distortion.size();
  const bool fits = model == LensModel::kFisheye
                        ? count == 4
                        : count == 0 || count == 4 || count == 5 || count == 8;
  if (!fits) {
    return fail(ErrorCode::kUnsupported,
                path + ": " + std::to_string(count) + " distortion coefficients; " +
                    (model == LensModel::kFisheye
                         ? "a fisheye lens has 4 (k1, k2, k3, k4)"
                         : "4, 5 or 8 are understood (k1, k2, p1, p2, k3, k4, k5, k6)"));
  }
  if (matrix.size() != 9) {
    return fail(ErrorCode::kParse, path + ": camera_matrix has " + std::to_string(matrix.size()) +
                                       " numbers; 9 by rows");
  }
  CameraModel camera;
  camera.image_width = width;
  camera.image_height = height;
  camera.lens.model = model;
  std::copy(matrix.begin(), matrix.end(), camera.lens.camera_matrix.begin());
  std::copy(distortion.begin(), distortion.end(), camera.lens.distortion.begin());
  if (auto sound = check_camera_model(camera, path); !sound) {
    return tl::make_unexpected(sound.error());
  }
  return camera;
}

std::vector<double> numbers_in(const cv::FileNode& node) {
  if (node.empty()) return {};
  cv::Mat values;
  node >> values;
  values.convertTo(values, CV_64F);
  return {values.begin<double>(), values.end<double>()};
}

// Any number of numbers in a sequence.
std::vector<double> numbers_in(const YamlNode& node) {
  std::vector<double> values;
  for (std::size_t i = 0; i < node.size(); ++i)
    values.push_back(node.item(i).number(0, -1e300, 1e300));
  return values;
}

// Takes every key below as known: the file is another program's, and says more than we read.
void accept_all(const YamlNode& node) {
  if (!node.is_map()) return;
  for (const auto& [key, value] : node.entries()) accept_all(value);
}

}  // namespace

Result<CameraModel> from_opencv(const std::string& path) {
  if (const auto readable = InputFile::open(path); !readable)
    return tl::make_unexpected(readable.error());
  try {
    const cv::FileStorage file(path, cv::FileStorage::READ);
    if (!file.isOpened()) return fail(ErrorCode::kParse, path + ": not a file of OpenCV's");
    if (file["camera_matrix"].empty() || file["image_width"].empty()) {
      return fail(ErrorCode::kParse,
                  path +
                      ": image_width, image_height, camera_matrix and distortion_coefficients "
                      "are expected, as OpenCV's calibration sample writes them");
    }
    const bool fisheye = static_cast<int>(file["fisheye_model"]) != 0;
    return assembled(
        path, static_cast<int>(file["image_width"]), static_cast<int>(file["image_height"]),
        fisheye ? LensModel::kFisheye : LensModel::kBrownConrady, numbers_in(file["camera_matrix"]),
        numbers_in(file["distortion_coefficients"]));
  } catch (const cv::Exception& fault) {
    return fail(ErrorCode::kParse, path + ": " + printable(fault.what()));
  }
}

Result<void> to_opencv(const CameraModel& model, const std::string& path) {
  if (model.lens.model != LensModel::kBrownConrady && model.lens.model != LensModel::kFisheye) {
    return fail(ErrorCode::kUnsupported, std::string("OpenCV has no lens model ") +
                                             name_of(model.lens.model) +
                                             "; brown_conrady and fisheye can be written");
  }
  const bool fisheye = model.lens.model == LensModel::kFisheye;
  int count = fisheye ? 4 : 5;
  for (std::size_t i = 5; i < 8; ++i) {
    if (!fisheye && model.lens.distortion[i] != 0) count = 8;
  }
  try {
    cv::FileStorage file(path, cv::FileStorage::WRITE);
    if (!file.isOpened()) return fail(ErrorCode::kIo, path + ": cannot be written");
    cv::Mat matrix(3, 3, CV_64F);
    std::copy(model.lens.camera_matrix.begin(), model.lens.camera_matrix.end(),
              matrix.begin<double>());
    cv::Mat distortion(count, 1, CV_64F);
    std::copy_n(model.lens.distortion.begin(), count, distortion.begin<double>());
    file << "image_width" << model.image_width << "image_height" << model.image_height;
    if (fisheye) file << "fisheye_model" << 1;
    file << "camera_matrix" << matrix << "distortion_coefficients" << distortion;
  } catch (const cv::Exception& fault) {
    return fail(ErrorCode::kIo, path + ": " + printable(fault.what()));
  }
  return {};
}

Result<CameraModel> from_ros(const std::string& path) {
  auto reader = YamlReader::load(path);
  if (!reader) return tl::make_unexpected(reader.error());
  const YamlNode root = reader->root();
  accept_all(root);
  const int width = static_cast<int>(root.required("image_width", "pixels").integer(1, 1, 32767));
  const int height = static_cast<int>(root.required("image_height", "pixels").integer(1, 1, 32767));
  const std::vector<std::string_view> models = {"plumb_bob", "rational_polynomial", "equidistant"};
  const std::size_t model =
      root.required("distortion_model", "plumb_bob, rational_polynomial, equidistant")
          .choice(0, models);
  const std::vector<double> matrix =
      numbers_in(root.required("camera_matrix", "rows, cols, data").required("data", "9 numbers"));
  const std::vector<double> distortion = numbers_in(
      root.required("distortion_coefficients", "rows, cols, data").required("data", "numbers"));
  if (auto sound = reader->finish(); !sound) return tl::make_unexpected(sound.error());
  return assembled(path, width, height, model == 2 ? LensModel::kFisheye : LensModel::kBrownConrady,
                   matrix, distortion);
}

}  // namespace patternd::calibrate
