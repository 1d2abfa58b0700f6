// What the tests on a GPU share: the device, opened once with the image that PATTERND_TEST_IMAGE
// names (auto; universal_sm_30 for the form that Tegra K1 runs) through the driver that
// PATTERND_TEST_DRIVER names (the system's), and pictures.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>

#include "calibration/camera_model.h"
#include "cuda/device.h"
#include "pipeline/frame.h"
#include "pipeline/frame_processor.h"
#include "pipeline/image.h"
#include "pipeline/pattern.h"

namespace patternd::cuda::test {

// The device, current for this thread; null where there is none, with the reason.
[[nodiscard]] std::shared_ptr<const Device> device();
[[nodiscard]] const std::string& why_no_device();

// Opens it again with another image, or says why not.
struct Opened {
  std::shared_ptr<const Device> device;
  std::string reason;
};
[[nodiscard]] Opened open(const std::string& image);

// At the head of a test: SKIPPED by name on a machine without a GPU.
#define PATTERND_NEEDS_GPU()                       \
  if (::patternd::cuda::test::device() == nullptr) \
  GTEST_SKIP() << ::patternd::cuda::test::why_no_device()

// Pictures of the kinds that parity is tested on.
enum class Content { kNoise, kBlack, kWhite, kStripes, kOnePixel, kTexture };
[[nodiscard]] const char* name_of(Content content);
[[nodiscard]] Image make_picture(int width, int height, PixelFormat format, Content content,
                                 std::mt19937& random);

// The picture as a camera would give it, and a configuration for frames like it that computes
// nothing yet.
[[nodiscard]] RawImageView raw_of(const Image& image);
[[nodiscard]] ProcessorConfig config_of(const RawImageView& frame);

// A scene: texture, with a pattern cut from other texture pasted at given poses, noise on top.
struct Pose {
  double x = 0;
  double y = 0;
  double angle_deg = 0;
  double scale = 1;
};
struct Scene {
  Image picture;
  std::shared_ptr<const Pattern> pattern;
  std::vector<Pose> truth;
};
struct SceneOptions {
  int width = 640;
  int height = 480;
  int pattern_width = 64;
  int pattern_height = 64;
  int instances = 3;
  PixelFormat format = PixelFormat::kGray8;
  double noise = 3;
  double low_scale = 1;
  double high_scale = 1;
  bool at_border = false;  // instances hang over the picture's edge
  bool masked = false;     // the pattern is a disc
  bool inverted = false;   // every second instance is a negative
};
// Small enough for kernels that are emulated on the CPU.
[[nodiscard]] SceneOptions small_scene();
[[nodiscard]] Scene make_scene(const SceneOptions& options, std::mt19937& random);

// A pattern cut from the middle of the rectified picture, so that there is something to find behind
// any calibration. Pictures of kGray8.
[[nodiscard]] std::shared_ptr<const Pattern> cut_from_rectified(const ImageView& picture,
                                                                const CameraModel& model);

}  // namespace patternd::cuda::test
