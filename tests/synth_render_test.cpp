// The renderer adds no bias: known shapes come out where the formulas put them, at every sub-pixel
// phase and angle; light, noise and the camera are what the scene says.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "tools/synth/random_scene.h"
#include "tools/synth/render.h"
#include "tools/synth/sensor.h"

namespace patternd::synth {
namespace {

constexpr double kPi = 3.141592653589793;

template <class Grey>
Photo photo_of(int width, int height, Grey grey) {
  Image picture = *Image::create(width, height, PixelFormat::kGrayF32);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) picture.row<float>(y)[x] = static_cast<float>(grey(x, y));
  }
  return *make_photo(picture.view());
}

Photo flat(double grey) {
  return photo_of(64, 64, [&](int, int) { return grey; });
}

// One pattern cut from `photo` on a black plane, without light or noise.
Scene plain_scene(int width, int height, const Photo& photo, int pattern_width,
                  int pattern_height) {
  Scene scene;
  scene.width = width;
  scene.height = height;
  scene.background.photo = flat(0);
  scene.patterns.push_back(*cut_pattern("p", photo, 0, 0, pattern_width, pattern_height));
  scene.instances.resize(1);
  scene.instances[0].pose = {width / 2.0, height / 2.0, 0, 1};
  return scene;
}

Image exact_picture(const Scene& scene, int frame = 0) {
  auto renderer = SceneRenderer::create(scene, nullptr);
  EXPECT_TRUE(renderer) << renderer.error().message;
  return std::move(*renderer->render_exact(frame));
}

struct Moments {
  double area = 0;
  double x = 0;
  double y = 0;
};
Moments moments_of(const Image& picture, double grey) {
  Moments m;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) {
      const double share = static_cast<double>(picture.row<float>(y)[x]) / grey;
      m.area += share;
      m.x += share * x;
      m.y += share * y;
    }
  }
  m.x /= m.area;
  m.y /= m.area;
  return m;
}

TEST(SceneRenderer, PutsARectanglesCentroidWhereItsPoseSays) {
  Scene scene = plain_scene(80, 70, flat(200), 31, 22);
  for (const double angle : {0.0, 0.01, 17.3, 45.0, 90.0, -133.0}) {
    for (int phase = 0; phase < 16; ++phase) {
      const double x = 40 + phase / 16.0 + 0.013;
      const double y = 35 - phase * 3 / 16.0;
      scene.instances[0].pose = {x, y, angle, 1};
      const Moments m = moments_of(exact_picture(scene), 200);
      EXPECT_NEAR(m.x, x, 3e-4) << angle << " " << phase;
      EXPECT_NEAR(m.y, y, 3e-4) << angle << " " << phase;
      EXPECT_NEAR(m.area, 31 * 22, 0.05) << angle << " " << phase;
    }
  }
}

// The area of the disc in the pixel at (x, y), by chords through a thousand slices of the pixel.
double disc_share(double x, double y, Point2 centre, double radius) {
  constexpr int kSlices = 1000;
  double area = 0;
  for (int i = 0; i < kSlices; ++i) {
    const double dx = x - 0.5 + (i + 0.5) / kSlices - centre.x;
    const double square = radius * radius - dx * dx;
    if (square <= 0) continue;
    const double chord = std::sqrt(square);
    const double low = std::max(y - 0.5, centre.y - chord);
    const double high = std::min(y + 0.5, centre.y + chord);
    area += std::max(0.0, high - low) / kSlices;
  }
  return area;
}

TEST(SceneRenderer, GivesEachPixelTheShareOfADiscThatLiesInIt) {
  Scene scene = plain_scene(90, 80, flat(200), 32, 32);
  scene.patterns[0].shape = ScenePattern::Shape::kEllipse;
  for (const double scale : {0.5, 1.0, 1.9}) {
    for (int phase = 0; phase < 8; ++phase) {
      const Point2 centre{45 + phase / 8.0, 40 + phase * 5 / 16.0 - 3};
      scene.instances[0].pose = {centre.x, centre.y, phase * 7.0, scale};
      const Image picture = exact_picture(scene);
      double worst = 0;
      for (int y = 0; y < 80; ++y) {
        for (int x = 0; x < 90; ++x) {
          const double share = static_cast<double>(picture.row<float>(y)[x]) / 200;
          worst = std::max(worst, std::abs(share - disc_share(x, y, centre, 16 * scale)));
        }
      }
      EXPECT_LT(worst, 2e-3) << scale << " " << phase;
    }
  }
}

// The shift of a cosine of the given period along x in rows and columns well inside a pattern.
double cosine_shift(const Image& picture, double period, int first, int end) {
  double c = 0;
  double s = 0;
  for (int y = first; y < end; ++y) {
    for (int x = first; x < end; ++x) {
      const auto grey = static_cast<double>(picture.row<float>(y)[x]);
      c += grey * std::cos(2 * kPi * x / period);
      s += grey * std::sin(2 * kPi * x / period);
    }
  }
  return std::atan2(s, c) * period / (2 * kPi);
}

TEST(SceneRenderer, MovesATextureByExactlyItsShiftAtEveryPhase) {
  // A cubic spline through a wave of period p has weak images of it at periods p/(p ± 1); what the
  // pixel's square leaves of them, (p ± 1)⁻⁵, is folded back by sampling, as in any camera: 0.003
  // px at period 4, next to nothing from 8 on. The midpoint rule adds a tenth, pixels in float
  // 1e-6.
  for (const double period : {4.0, 8.0, 16.0}) {
    const double tolerance =
        1e-6 + 1.1 * period / (2 * kPi) * (std::pow(period - 1, -5) + std::pow(period + 1, -5));
    const Photo photo =
        photo_of(128, 128, [&](int x, int) { return 128 + 80 * std::cos(2 * kPi * x / period); });
    Scene scene = plain_scene(128, 128, photo, 128, 128);
    for (int phase = 0; phase < 32; ++phase) {
      const double shift = phase / 32.0 - 0.5;
      scene.instances[0].pose = {63.5 + shift, 63.5, 0, 1};
      const double found = cosine_shift(exact_picture(scene), period, 32, 96);
      EXPECT_NEAR(found, shift, tolerance) << "period " << period;
    }
  }
}

TEST(SceneRenderer, MovesATextureUnderAnyTurnToWhereTheFormulaPutsIt) {
  // A slow wave: the mean over a pixel is its value at the centre but for 1e-3.
  const auto wave = [](double x, double y) {
    return 128 + 60 * std::cos(0.11 * x) * std::cos(0.07 * y + 1);
  };
  const Photo photo = photo_of(128, 128, wave);
  Scene scene = plain_scene(150, 140, photo, 96, 80);
  for (const double angle : {0.0, 30.0, 119.0, -77.5}) {
    scene.instances[0].pose = {75.3, 70.8, angle, 1.1};
    const Image picture = exact_picture(scene);
    for (double v = 8; v < 72; v += 5) {
      for (double u = 8; u < 88; u += 5) {
        const Point2 place = to_plane(scene.instances[0].pose, scene.patterns[0], {u, v});
        const int x = static_cast<int>(std::lround(place.x));
        const int y = static_cast<int>(std::lround(place.y));
        const Point2 back = to_pattern(scene.instances[0].pose, scene.patterns[0],
                                       {static_cast<double>(x), static_cast<double>(y)});
        EXPECT_NEAR(static_cast<double>(picture.row<float>(y)[x]), wave(back.x, back.y), 0.15);
      }
    }
  }
}

TEST(SceneRenderer, TurnsClockwiseOnTheScreenForAPositiveAngle) {
  const Photo photo = photo_of(64, 64, [](int x, int) { return x > 40 ? 200 : 50; });
  Scene scene = plain_scene(100, 100, photo, 64, 64);
  scene.instances[0].pose = {50, 50, 90, 1};
  const Image picture = exact_picture(scene);
  // The pattern's right side now points down.
  EXPECT_NEAR(static_cast<double>(picture.row<float>(75)[50]), 200, 1);
  EXPECT_NEAR(static_cast<double>(picture.row<float>(25)[50]), 50, 1);
}

TEST(SceneRenderer, CutsAPatternThatPastedUprightGivesItsOwnPicture) {
  const Photo photo = *make_photo(value_noise(80, 80, 16, 3)->view());
  Scene scene = plain_scene(64, 64, photo, 40, 32);
  scene.instances[0].pose = {12 + 19.5, 9 + 15.5, 0, 1};
  auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer);
  const Image picture = *renderer->render(0);
  const Image pattern = *picture_of(scene.patterns[0]);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 40; ++x)
      ASSERT_EQ(picture.row<std::uint8_t>(y + 9)[x + 12], pattern.row<std::uint8_t>(y)[x]);
  }
}

TEST(SceneRenderer, HidesTheShareThatIsCovered) {
  Scene scene = plain_scene(80, 70, flat(200), 40, 30);
  scene.instances[0].cover = 0.37;
  scene.instances[0].pose.angle_deg = 25;
  EXPECT_NEAR(moments_of(exact_picture(scene), 200).area, 40 * 30 * (1 - 0.37), 0.05);
}

TEST(SceneRenderer, MovesAnInstanceEachFrame) {
  Scene scene = plain_scene(120, 100, flat(200), 20, 20);
  scene.instances[0].pose = {30, 40, 10, 1};
  scene.instances[0].motion = {1.75, -0.5, 3, 1};
  const Moments m = moments_of(exact_picture(scene, 20), 200);
  EXPECT_NEAR(m.x, 30 + 20 * 1.75, 3e-4);
  EXPECT_NEAR(m.y, 40 - 20 * 0.5, 3e-4);
}

TEST(SceneRenderer, FallsOffInLightByTheGradientFromCornerToCorner) {
  Scene scene = plain_scene(101, 81, flat(0), 8, 8);
  scene.background.photo = flat(100);
  scene.instances.clear();
  scene.light = {0.4, 0};
  const Image picture = exact_picture(scene);
  EXPECT_NEAR(static_cast<double>(picture.row<float>(40)[100]), 100, 1e-3);
  EXPECT_NEAR(static_cast<double>(picture.row<float>(40)[50]), 100 / 1.4, 1e-3);
  EXPECT_NEAR(static_cast<double>(picture.row<float>(40)[0]), 100 * 0.6 / 1.4, 1e-3);
}

TEST(SceneRenderer, AddsNoiseOfTheStandardDeviationAskedFor) {
  SCOPED_TRACE("seed 1");
  Scene scene = plain_scene(256, 256, flat(0), 8, 8);
  scene.background.photo = flat(128);
  scene.instances.clear();
  scene.noise_sigma = 5;
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    scene.format = format;
    const double level = format == PixelFormat::kGray16 ? 257 : 1;
    const Image picture = *SceneRenderer::create(scene, nullptr)->render(0);
    double sum = 0;
    double squares = 0;
    for (int y = 0; y < 256; ++y) {
      for (int x = 0; x < 256; ++x) {
        const double value = (format == PixelFormat::kGray16 ? picture.row<std::uint16_t>(y)[x]
                                                             : picture.row<std::uint8_t>(y)[x]) /
                                 level -
                             128;
        sum += value;
        squares += value * value;
      }
    }
    EXPECT_NEAR(sum / 65536, 0, 0.08);
    EXPECT_NEAR(std::sqrt(squares / 65536), 5, 0.08);
  }
}

TEST(SceneRenderer, BlursWithoutMovingOrDarkening) {
  Scene scene = plain_scene(80, 70, flat(200), 21, 22);
  scene.instances[0].pose = {40.3, 34.6, 12, 1};
  scene.blur_sigma_px = 1.7;
  const Moments m = moments_of(exact_picture(scene), 200);
  EXPECT_NEAR(m.x, 40.3, 5e-4);
  EXPECT_NEAR(m.y, 34.6, 5e-4);
  EXPECT_NEAR(m.area, 21 * 22, 0.05);
}

std::uint64_t hash_of(const Image& picture) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const std::size_t row =
      static_cast<std::size_t>(picture.width()) * bytes_per_pixel(picture.format());
  for (int y = 0; y < picture.height(); ++y) {
    for (std::size_t i = 0; i < row; ++i)
      hash = (hash ^ picture.view().row_bytes(y)[i]) * 0x100000001b3U;
  }
  return hash;
}

Scene noisy_scene() {
  const Photo world = *make_photo(value_noise(300, 280, 16, 11)->view());
  RandomSceneOptions options;
  options.width = 400;
  options.height = 300;
  options.max_pattern_px = 96;
  options.frame_count = 5;
  options.max_speed_px = 2;
  options.max_speed_deg = 3;
  options.blur_sigma_px = 0.6;
  return *random_scene({world}, options, 7);
}

TEST(SceneRenderer, GivesTheSameBytesOnEveryMachineAndNumberOfThreads) {
  const Scene scene = noisy_scene();
  ASSERT_EQ(scene.instances.size(), 3U);
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    const auto renderer = SceneRenderer::create(scene, &pool);
    ASSERT_TRUE(renderer);
    EXPECT_EQ(hash_of(*renderer->render(0)), 8665516056123710630U) << threads;
    EXPECT_EQ(hash_of(*renderer->render(4)), 15929893323549084777U) << threads;
  }
}

CameraModel tilted_camera() {
  CameraModel camera;
  camera.image_width = 320;
  camera.image_height = 240;
  camera.lens.model = LensModel::kBrownConrady;
  camera.lens.camera_matrix = {300, 0, 161, 0, 302, 118, 0, 0, 1};
  camera.lens.distortion = {-0.21, 0.07, 0.0012, -0.0009, 0.01, 0, 0, 0};
  Plane plane;
  plane.width = 256;
  plane.height = 256;
  plane.homography = {1.0, 0.22, 20, -0.04, 0.72, 18, -0.0001, 0.0011, 1};
  camera.plane = plane;
  return camera;
}

TEST(SceneRenderer, ShowsThroughTheCameraWhatLiesAtEachPixelsPlaceOnThePlane) {
  const auto wave = [](double x, double y) {
    return 128 + 60 * std::cos(0.06 * x + 0.5) * std::cos(0.05 * y + 1);
  };
  Scene scene = plain_scene(256, 256, photo_of(256, 256, wave), 200, 200);
  scene.camera = tilted_camera();
  ASSERT_TRUE(check_camera_model(*scene.camera, "camera"));
  scene.instances[0].pose = {99.5, 99.5, 0, 1};  // upright: pattern pixels are plane pixels
  const Image picture = exact_picture(scene);
  ASSERT_EQ(picture.width(), 320);
  int compared = 0;
  for (int y = 0; y < 240; y += 7) {
    for (int x = 0; x < 320; x += 7) {
      const auto plane = scene.camera->to_output({static_cast<double>(x), static_cast<double>(y)});
      if (!plane || plane->x < 4 || plane->y < 4 || plane->x > 195 || plane->y > 195) continue;
      const auto back = scene.camera->to_input(*plane);
      ASSERT_TRUE(back);
      EXPECT_NEAR(back->x, x, 1e-7);
      EXPECT_NEAR(back->y, y, 1e-7);
      EXPECT_NEAR(static_cast<double>(picture.row<float>(y)[x]), wave(plane->x, plane->y), 0.3);
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(SceneRenderer, RefusesASceneThatCannotBe) {
  const Scene good = plain_scene(80, 70, flat(200), 21, 22);
  const auto refusal = [](const Scene& scene) {
    auto renderer = SceneRenderer::create(scene, nullptr);
    return renderer ? std::string("accepted") : renderer.error().message;
  };
  Scene scene = good;
  scene.instances[0].pattern = 3;
  EXPECT_EQ(refusal(scene), "scene: instance of pattern 3; the scene has 1");
  scene = good;
  scene.instances[0].pose.x_px = std::nan("");
  EXPECT_EQ(refusal(scene), "scene: an instance's pose or motion is not finite or beyond 1e6");
  scene = good;
  scene.width = 0;
  EXPECT_EQ(refusal(scene), "scene: size is 0x70; both sides must be 1 to 32767");
  scene = good;
  scene.camera = tilted_camera();
  EXPECT_EQ(refusal(scene), "scene: the camera's rectified picture is 256x256, the plane 80x70");
  scene = good;
  scene.light.gradient = 1;
  EXPECT_EQ(refusal(scene), "scene: light gradient is 1.000000; 0 up to 1, 1 excluded");
}

}  // namespace
}  // namespace patternd::synth
