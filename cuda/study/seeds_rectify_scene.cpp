#include "cuda/study/seeds_rectify_scene.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "calibration/camera_map.h"
#include "calibration/matrix3.h"
#include "cuda/study/seeds_bench.h"
#include "tools/synth/plane_camera.h"
#include "tools/synth/sensor.h"

namespace patternd::cuda {
namespace {

// Blurred noise over the whole range: about as rough as a photograph.
Image make_picture(int size) {
  Image image = value_of(Image::create(size, size, PixelFormat::kGrayF32));
  std::mt19937 random(1);
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      image.row<float>(y)[x] = static_cast<float>(random() % 65536) / 65536.0F;
  require(synth::blur(image.view(), 1.0));
  float low = 1;
  float high = 0;
  for (int y = 0; y < size; ++y) {
    const auto [least, most] = std::minmax_element(image.row<float>(y), image.row<float>(y) + size);
    low = std::min(low, *least);
    high = std::max(high, *most);
  }
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      image.row<float>(y)[x] = (image.row<float>(y)[x] - low) / (high - low);
  return image;
}

float expected_at(const Image& picture, const std::optional<Point2>& source) {
  constexpr double kNearEdge = 0.01;  // pixels; single precision resolves 0.0005 at 8192
  const double last = picture.width() - 1;
  if (!source) return RectifyScene::kUndecided;
  const double inset = std::min({source->x, source->y, last - source->x, last - source->y});
  if (std::abs(inset) < kNearEdge) return RectifyScene::kUndecided;
  if (inset < 0) return RectifyScene::kOutside;
  const int left = static_cast<int>(source->x);
  const int top = static_cast<int>(source->y);
  const double fx = source->x - left;
  const double fy = source->y - top;
  const float* upper = picture.row<float>(top) + left;
  const float* lower = picture.row<float>(top + 1) + left;
  const auto mix = [&](const float* row) {
    return static_cast<double>(row[0]) * (1 - fx) + static_cast<double>(row[1]) * fx;
  };
  return static_cast<float>(mix(upper) * (1 - fy) + mix(lower) * fy);
}

}  // namespace

StudyCamera study_camera(const CameraModel& model) {
  const auto& k = model.lens.camera_matrix;
  const Matrix3 normalised = product(*inverse(k), model.plane->homography);
  StudyCamera camera{};
  for (std::size_t i = 0; i < 9; ++i) camera.homography[i] = static_cast<float>(normalised[i]);
  camera.k1 = static_cast<float>(model.lens.distortion[0]);
  camera.k2 = static_cast<float>(model.lens.distortion[1]);
  camera.fx = static_cast<float>(k[0]);
  camera.fy = static_cast<float>(k[4]);
  camera.cx = static_cast<float>(k[2]);
  camera.cy = static_cast<float>(k[5]);
  return camera;
}

RectifyScene make_rectify_scene(int size, bool turned) {
  RectifyScene scene;
  scene.model = synth::tilted_plane(size, turned);
  scene.camera = study_camera(scene.model);
  scene.picture = make_picture(size);
  scene.expected.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  const CameraMap map(scene.model);
  auto* out = scene.expected.data();
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      *out++ = expected_at(scene.picture,
                           map.to_input({static_cast<double>(x), static_cast<double>(y)}));
  return scene;
}

double check_rectified(const RectifyScene& scene, const ImageView& output,
                       const std::string& what) {
  constexpr double kGreyLevel = 1.0 / 255;
  double most = 0;
  const float* expected = scene.expected.data();
  for (int y = 0; y < output.height; ++y) {
    for (int x = 0; x < output.width; ++x, ++expected) {
      if (*expected == RectifyScene::kUndecided) continue;
      const float wanted = *expected == RectifyScene::kOutside ? 0.0F : *expected;
      const double off = std::abs(static_cast<double>(output.row<float>(y)[x] - wanted));
      if (!(off <= kGreyLevel)) {
        refuse(what + ": pixel (" + std::to_string(x) + ", " + std::to_string(y) + ") is " +
               std::to_string(output.row<float>(y)[x]) + ", the CPU's is " +
               std::to_string(wanted));
      }
      most = std::max(most, off);
    }
  }
  return most;
}

}  // namespace patternd::cuda
