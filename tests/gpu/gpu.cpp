#include "tests/gpu/gpu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "pipeline/rectify.h"

namespace patternd::cuda::test {
namespace {

const Opened& opened() {
  static const Opened result = [] {
    const char* image = std::getenv("PATTERND_TEST_IMAGE");
    return open(image != nullptr ? image : "auto");
  }();
  return result;
}

void put(Image& image, int x, int y, double grey8) {
  const double level = std::clamp(grey8, 0.0, 255.0);
  switch (image.format()) {
    case PixelFormat::kGray16:
      image.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(std::lround(level * 257));
      break;
    case PixelFormat::kGrayF32:
      image.row<float>(y)[x] = static_cast<float>(level);
      break;
    default:
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(level));
  }
}

// Smooth random texture: waves of random direction, length and phase.
class Texture {
 public:
  explicit Texture(std::mt19937& random) {
    std::uniform_real_distribution<double> unit(0, 1);
    for (Wave& wave : waves_) {
      const double direction = 6.283185307 * unit(random);
      const double frequency = 6.283185307 / (7 + 40 * unit(random));
      wave = {frequency * std::cos(direction), frequency * std::sin(direction),
              6.283185307 * unit(random), 12 + 14 * unit(random)};
    }
  }
  [[nodiscard]] double at(double x, double y) const {
    double sum = 128;
    for (const Wave& wave : waves_)
      sum += wave.size * std::sin(wave.fx * x + wave.fy * y + wave.at);
    return sum;
  }

 private:
  struct Wave {
    double fx, fy, at, size;
  };
  Wave waves_[12];
};

}  // namespace

Opened open(const std::string& image) {
  const char* library = std::getenv("PATTERND_TEST_DRIVER");
  const auto driver = Driver::open(library != nullptr ? library : "libcuda.so.1");
  if (!driver) return {nullptr, driver.error().message};
  const auto device = Device::open(*driver, 0, image);
  if (!device) return {nullptr, device.error().message};
  return {*device, ""};
}

std::shared_ptr<const Device> device() {
  if (opened().device) {
    EXPECT_TRUE(opened().device->make_current());
  }
  return opened().device;
}
const std::string& why_no_device() { return opened().reason; }

const char* name_of(Content content) {
  constexpr const char* kNames[] = {"noise", "black", "white", "stripes", "one pixel", "texture"};
  return kNames[static_cast<int>(content)];
}

RawImageView raw_of(const Image& image) {
  const ImageView view = image.view();
  return {
      view.data,         view.stride_bytes * static_cast<std::size_t>(view.height),
      view.width,        view.height,
      view.stride_bytes, view.format == PixelFormat::kGray16 ? RawFormat::kY16 : RawFormat::kGrey,
      BayerOrder::kRggb};
}

ProcessorConfig config_of(const RawImageView& frame) {
  ProcessorConfig config;
  config.width = frame.width;
  config.height = frame.height;
  config.stride_bytes = frame.stride_bytes;
  config.format = frame.format;
  return config;
}

Image make_picture(int width, int height, PixelFormat format, Content content,
                   std::mt19937& random) {
  auto image = Image::create(width, height, format);
  EXPECT_TRUE(image);
  image->fill_bytes(0);
  std::uniform_real_distribution<double> grey(0, 255);
  const Texture texture(random);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double value = 0;
      if (content == Content::kNoise) value = grey(random);
      if (content == Content::kWhite) value = 255;
      if (content == Content::kStripes) value = x % 2 == 0 ? 255 : 0;
      if (content == Content::kOnePixel) value = x == width / 2 && y == height / 2 ? 255 : 0;
      if (content == Content::kTexture) value = texture.at(x, y);
      put(*image, x, y, value);
    }
  }
  return std::move(*image);
}

SceneOptions small_scene() {
  SceneOptions options;
  options.width = 131;
  options.height = 117;
  options.pattern_width = 40;
  options.pattern_height = 36;
  options.instances = 1;
  return options;
}

Scene make_scene(const SceneOptions& o, std::mt19937& random) {
  const Texture background(random);
  const Texture pattern(random);
  Scene scene;
  auto picture = Image::create(o.pattern_width, o.pattern_height, o.format);
  auto mask = Image::create(o.pattern_width, o.pattern_height, PixelFormat::kGray8);
  EXPECT_TRUE(picture && mask);
  const double cx = (o.pattern_width - 1) / 2.0;
  const double cy = (o.pattern_height - 1) / 2.0;
  const auto in_mask = [&](double x, double y) {
    if (std::abs(x) > cx + 0.5 || std::abs(y) > cy + 0.5) return false;
    return !o.masked || std::hypot(x / (cx + 0.5), y / (cy + 0.5)) <= 1;
  };
  for (int y = 0; y < o.pattern_height; ++y) {
    for (int x = 0; x < o.pattern_width; ++x) {
      put(*picture, x, y, pattern.at(x - cx, y - cy));
      mask->row<std::uint8_t>(y)[x] = in_mask(x - cx, y - cy) ? 255 : 0;
    }
  }
  const ImageView used_mask = o.masked ? ImageView(mask->view()) : ImageView{};
  auto taught = teach_pattern("made", picture->view(), used_mask, {});
  EXPECT_TRUE(taught) << taught.error().message;
  scene.pattern = std::make_shared<const Pattern>(std::move(*taught));

  std::uniform_real_distribution<double> unit(0, 1);
  const double reach = 0.5 * std::hypot(o.pattern_width, o.pattern_height) * o.high_scale;
  const double inset = o.at_border ? 0.35 * std::min(o.pattern_width, o.pattern_height) : reach + 1;
  for (int tries = 0; tries < 1000 && static_cast<int>(scene.truth.size()) < o.instances; ++tries) {
    Pose pose{inset + unit(random) * (o.width - 1 - 2 * inset),
              inset + unit(random) * (o.height - 1 - 2 * inset), 360 * unit(random) - 180,
              o.low_scale + (o.high_scale - o.low_scale) * unit(random)};
    const bool free = std::all_of(scene.truth.begin(), scene.truth.end(), [&](const Pose& other) {
      return std::hypot(pose.x - other.x, pose.y - other.y) > 2 * reach;
    });
    if (free) scene.truth.push_back(pose);
  }
  auto image = Image::create(o.width, o.height, o.format);
  EXPECT_TRUE(image);
  std::normal_distribution<double> noise(0, o.noise);
  for (int y = 0; y < o.height; ++y) {
    for (int x = 0; x < o.width; ++x) {
      double value = background.at(x, y);
      for (std::size_t i = 0; i < scene.truth.size(); ++i) {
        const Pose& pose = scene.truth[i];
        const double c = std::cos(pose.angle_deg * 0.017453292519943295) / pose.scale;
        const double s = std::sin(pose.angle_deg * 0.017453292519943295) / pose.scale;
        const double px = c * (x - pose.x) + s * (y - pose.y);
        const double py = c * (y - pose.y) - s * (x - pose.x);
        if (!in_mask(px, py)) continue;
        value = pattern.at(px, py);
        if (o.inverted && i % 2 == 1) value = 255 - value;
      }
      put(*image, x, y, value + noise(random));
    }
  }
  scene.picture = std::move(*image);
  return scene;
}

std::shared_ptr<const Pattern> cut_from_rectified(const ImageView& picture,
                                                  const CameraModel& model) {
  const auto rectifier = Rectifier::create(model, PixelFormat::kGray8);
  auto rectified = Image::create(model.output_width(), model.output_height(), PixelFormat::kGray8);
  EXPECT_TRUE(rectifier && rectified);
  rectifier->process(picture, rectified->view(), nullptr);
  constexpr int kSide = 64;
  ImageView middle = std::as_const(*rectified).view();
  middle.data += static_cast<std::size_t>((middle.height - kSide) / 2) * middle.stride_bytes +
                 static_cast<std::size_t>((middle.width - kSide) / 2);
  middle.width = middle.height = kSide;
  auto taught = teach_pattern("middle", middle, {}, {});
  EXPECT_TRUE(taught) << taught.error().message;
  return std::make_shared<const Pattern>(std::move(*taught));
}

}  // namespace patternd::cuda::test
