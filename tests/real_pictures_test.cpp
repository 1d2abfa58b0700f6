// Real photographs and a real video, from Debian's opencv-doc: what no program made.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/image_file.h"
#include "pipeline/matcher.h"
#include "pipeline/rectify.h"
#include "pipeline/sources/replay_source.h"
#include "tests/support/frame_memory.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

constexpr double kRadiansPerDegree = 0.017453292519943295;
constexpr int kPatienceMs = 20'000;

// The sample's picture; empty where opencv-doc is not installed.
Image sample_picture(const std::string& name) {
  const std::string path = test::opencv_sample(name);
  auto picture = path.empty() ? Result<Image>(Image()) : read_image(path);
  EXPECT_TRUE(picture) << (picture ? "" : picture.error().message);
  return picture ? std::move(*picture) : Image();
}

std::shared_ptr<const Pattern> teach_part(const ImageView& picture, int x, int y, int width,
                                          int height) {
  auto pattern = teach_pattern("part", picture.crop(x, y, width, height), {}, {});
  EXPECT_TRUE(pattern) << (pattern ? "" : pattern.error().message);
  return pattern ? std::make_shared<const Pattern>(std::move(*pattern)) : nullptr;
}

std::vector<Match> matches_in(const ImageView& picture, std::shared_ptr<const Pattern> pattern,
                              const SearchParams& params) {
  MatcherConfig config;
  config.width = picture.width;
  config.height = picture.height;
  config.patterns = {{std::move(pattern), params}};
  auto matcher = Matcher::create(config, nullptr);
  EXPECT_TRUE(matcher) << (matcher ? "" : matcher.error().message);
  std::vector<Match> matches;
  StageTimes times;
  if (matcher) matcher->match(picture, matches, times);
  return matches;
}

// graf3 as seen from where graf1 was taken: graf3's pixels through the homography that OpenCV gives
// with the pair (H1to3p.xml, graf1 -> graf3).
CameraModel graf3_onto_graf1() {
  CameraModel model;
  model.image_width = 800;
  model.image_height = 640;
  Plane plane;
  plane.homography = {7.6285898e-01,  -2.9922929e-01, 2.2567123e+02,  3.3443473e-01, 1.0143901e+00,
                      -7.6999973e+01, 3.4663091e-04,  -1.4364524e-05, 1.0000000e+00};
  plane.width = 800;
  plane.height = 640;
  model.plane = plane;
  return model;
}

TEST(RealPictures, FindsPartsOfAWallInAnObliqueViewOfItOnceRectified) {
  const Image graf1 = sample_picture("graf1.png");
  const Image graf3 = sample_picture("graf3.png");
  if (graf1.empty() || graf3.empty()) GTEST_SKIP() << "opencv-doc's graf1.png is not installed";
  const CameraModel model = graf3_onto_graf1();
  ASSERT_TRUE(check_camera_model(model, "H1to3p"));
  const auto rectifier = Rectifier::create(model, PixelFormat::kGray8);
  ASSERT_TRUE(rectifier) << rectifier.error().message;
  Image rectified = *Image::create(800, 640, PixelFormat::kGray8);
  rectifier->process(graf3.view(), rectified.view(), nullptr);
  for (const auto& [x, y] : {std::pair{200, 150}, std::pair{330, 220}, std::pair{420, 300},
                             std::pair{250, 350}, std::pair{480, 180}, std::pair{150, 250}}) {
    SCOPED_TRACE(testing::Message() << "part at " << x << ", " << y);
    const auto matches =
        matches_in(std::as_const(rectified).view(), teach_part(graf1.view(), x, y, 128, 128), {});
    ASSERT_EQ(matches.size(), 1U);
    // The homography was estimated from the pair and is itself good to about half a pixel.
    EXPECT_NEAR(matches[0].x_px, x + 63.5, 1);
    EXPECT_NEAR(matches[0].y_px, y + 63.5, 1);
    EXPECT_NEAR(matches[0].angle_deg, 0, 1);
    EXPECT_GT(matches[0].score, 0.95);
  }
}

TEST(RealPictures, FindsPartsOfABoxSmallerAndTurnedInItsScene) {
  const Image box = sample_picture("box.png");
  const Image scene = sample_picture("box_in_scene.png");
  if (box.empty() || scene.empty()) GTEST_SKIP() << "opencv-doc's box.png is not installed";
  // The box lies tilted and half hidden: a search without perspective finds its parts, each a
  // little differently scaled, not the whole.
  SearchParams params;
  params.scale = {0.4, 0.65};
  params.min_score = 0.6;
  params.max_matches = 1;
  std::vector<std::pair<Point2, Match>> parts;  // the part's centre on the box, and where it is
  for (const Roi& roi : {Roi{30, 40, 110, 60}, Roi{60, 30, 120, 150}, Roi{150, 30, 150, 170}}) {
    const auto matches =
        matches_in(scene.view(),
                   teach_part(box.view(), static_cast<int>(roi.x), static_cast<int>(roi.y),
                              static_cast<int>(roi.width), static_cast<int>(roi.height)),
                   params);
    ASSERT_EQ(matches.size(), 1U) << roi.x << ", " << roi.y;
    EXPECT_NEAR(matches[0].angle_deg, 8, 3);
    EXPECT_NEAR(matches[0].scale, 0.53, 0.04);
    parts.push_back({{roi.x + (roi.width - 1) / 2, roi.y + (roi.height - 1) / 2}, matches[0]});
  }
  // Each part's pose says where the others must lie; the tilt moves them by some pixels.
  for (const auto& [from, match] : parts) {
    const double c = match.scale * std::cos(match.angle_deg * kRadiansPerDegree);
    const double s = match.scale * std::sin(match.angle_deg * kRadiansPerDegree);
    for (const auto& [to, other] : parts) {
      const double dx = to.x - from.x;
      const double dy = to.y - from.y;
      EXPECT_NEAR(other.x_px, match.x_px + c * dx - s * dy, 6);
      EXPECT_NEAR(other.y_px, match.y_px + s * dx + c * dy, 6);
    }
  }
}

// The first frames of a video as 8-bit pictures, or why there are none.
Result<std::vector<Image>> frames_of(const std::string& path, std::size_t count) {
  CameraConfig config;
  config.path = path;
  config.realtime = false;
  test::FrameMemory memory;
  ReplaySource source(config);
  const auto format = source.start(memory, 2);
  if (!format) return tl::make_unexpected(format.error());
  auto scratch = Image::create(format->width, format->height, PixelFormat::kGray8);
  if (!scratch) return tl::make_unexpected(scratch.error());
  std::vector<Image> frames;
  while (frames.size() < count) {
    const auto frame = source.next(kPatienceMs, false);
    if (!frame) return tl::make_unexpected(frame.error());
    auto copy = Image::copy_of(to_luma((*frame)->image, scratch->view()));
    source.release(*frame);
    if (!copy) return tl::make_unexpected(copy.error());
    frames.push_back(std::move(*copy));
  }
  return frames;
}

TEST(RealPictures, KeepsAStillThingInAVideoInPlaceWhilePeopleWalk) {
  const std::string path = test::opencv_sample("vtest.avi");
  if (path.empty()) GTEST_SKIP() << "opencv-doc's vtest.avi is not installed";
  const auto frames = frames_of(path, 40);
  if (!frames && frames.error().code == ErrorCode::kUnsupported)
    GTEST_SKIP() << "cannot decode it here: " << frames.error().message;
  ASSERT_TRUE(frames) << frames.error().message;
  SearchParams params;
  params.max_matches = 1;
  params.angle_deg = {{-20, 20}};
  for (const auto& [x, y] :
       {std::pair{20, 320}, std::pair{260, 380}, std::pair{500, 380}, std::pair{320, 20}}) {
    const auto pattern = teach_part((*frames)[0].view(), x, y, 96, 96);
    for (std::size_t i = 0; i < frames->size(); i += 5) {
      SCOPED_TRACE(testing::Message() << "part at " << x << ", " << y << " in frame " << i);
      const auto matches = matches_in((*frames)[i].view(), pattern, params);
      ASSERT_EQ(matches.size(), 1U);
      EXPECT_NEAR(matches[0].x_px, x + 47.5, 0.1);
      EXPECT_NEAR(matches[0].y_px, y + 47.5, 0.1);
      EXPECT_NEAR(matches[0].angle_deg, 0, 0.1);
      EXPECT_GT(matches[0].score, 0.9);
    }
  }
}

}  // namespace
}  // namespace patternd
