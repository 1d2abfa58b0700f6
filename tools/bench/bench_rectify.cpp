// Rectification beside cv::remap with ready maps, on one core; errors of both against
// double-precision positions and interpolation; and the share of a plain copy's speed (T18).
//
//   patternctl bench rectify --size 1024
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <opencv2/imgproc.hpp>

#include "calibration/camera_map.h"
#include "pipeline/rectify.h"
#include "tools/bench/bench.h"
#include "tools/bench/subjects.h"
#include "tools/synth/plane_camera.h"
#include "tools/usage_error.h"

namespace patternd::bench {
namespace {

cv::Mat as_mat(MutableImageView view) {
  const int type = view.format == PixelFormat::kGray8    ? CV_8U
                   : view.format == PixelFormat::kGray16 ? CV_16U
                                                         : CV_32F;
  return {view.height, view.width, type, view.data, view.stride_bytes};
}

// Blurred noise over the whole range: about as rough as a photograph.
Image make_picture(int size, PixelFormat format) {
  Image image = Image::create(size, size, format).value();
  cv::Mat noise(size, size, CV_32F);
  std::mt19937 random(1);
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      noise.at<float>(y, x) = static_cast<float>(random() % 65536) / 65536.0F;
    }
  }
  cv::GaussianBlur(noise, noise, cv::Size(), 1.0);
  cv::normalize(noise, noise, 0, 1, cv::NORM_MINMAX);
  const double scale = format == PixelFormat::kGray8    ? 255
                       : format == PixelFormat::kGray16 ? 65535
                                                        : 1;
  cv::Mat target = as_mat(image.view());
  noise.convertTo(target, target.type(), scale);
  return image;
}

double value_at(const ImageView& image, int x, int y) {
  if (image.format == PixelFormat::kGray8) return image.row<std::uint8_t>(y)[x];
  if (image.format == PixelFormat::kGray16) return image.row<std::uint16_t>(y)[x];
  return static_cast<double>(image.row<float>(y)[x]);
}

struct Deviation {
  double most = 0;
  double mean = 0;
};

Deviation deviation(const CameraModel& model, const ImageView& input, const ImageView& output) {
  const CameraMap camera(model);
  Deviation result;
  double count = 0;
  for (int y = 0; y < output.height; ++y) {
    for (int x = 0; x < output.width; ++x) {
      const auto p = camera.to_input({static_cast<double>(x), static_cast<double>(y)});
      if (!p || p->x < 0 || p->y < 0 || p->x >= input.width - 1 || p->y >= input.height - 1) {
        continue;
      }
      const int left = static_cast<int>(p->x);
      const int top = static_cast<int>(p->y);
      const double fx = p->x - left;
      const double fy = p->y - top;
      double expected =
          (value_at(input, left, top) * (1 - fx) + value_at(input, left + 1, top) * fx) * (1 - fy) +
          (value_at(input, left, top + 1) * (1 - fx) + value_at(input, left + 1, top + 1) * fx) *
              fy;
      if (input.format != PixelFormat::kGrayF32) expected = std::floor(expected + 0.5);
      const double off = std::abs(value_at(output, x, y) - expected);
      result.most = std::max(result.most, off);
      result.mean += off;
      ++count;
    }
  }
  result.mean /= std::max(count, 1.0);
  return result;
}

// The peer's maps, in both forms that it takes.
struct PeerMaps {
  cv::Mat x, y;
  cv::Mat fixed, fraction;
};

PeerMaps make_peer_maps(const CameraModel& model) {
  const CameraMap camera(model);
  PeerMaps maps;
  maps.x.create(model.output_height(), model.output_width(), CV_32F);
  maps.y.create(maps.x.size(), CV_32F);
  for (int y = 0; y < maps.x.rows; ++y) {
    for (int x = 0; x < maps.x.cols; ++x) {
      const auto p = camera.to_input({static_cast<double>(x), static_cast<double>(y)});
      maps.x.at<float>(y, x) = p ? static_cast<float>(p->x) : -1.0F;
      maps.y.at<float>(y, x) = p ? static_cast<float>(p->y) : -1.0F;
    }
  }
  cv::convertMaps(maps.x, maps.y, maps.fixed, maps.fraction, CV_16SC2);
  return maps;
}

void print_row(const Options& options, const std::string& scene, const Timing& timing,
               const Timing& ours, double copy_us, const Deviation* errors) {
  if (options.json) {
    nlohmann::json line = {{"bench", "rectify"},
                           {"scene", scene},
                           {"what", timing.name},
                           {"median_us", timing.median_us},
                           {"best_us", timing.best_us},
                           {"ratio", timing.median_us / ours.median_us},
                           {"ratio_best", timing.best_us / ours.best_us},
                           {"copy_share", copy_us / timing.best_us}};
    if (errors != nullptr) {
      line["error_max"] = errors->most;
      line["error_mean"] = errors->mean;
    }
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%-22s %-24s %9.0f %9.0f %7.1f %7.1f %7.2f", scene.c_str(), timing.name.c_str(),
              timing.median_us, timing.best_us, timing.median_us / ours.median_us,
              timing.best_us / ours.best_us, copy_us / timing.best_us);
  if (errors != nullptr) std::printf(" %10.3g %10.3g", errors->most, errors->mean);
  std::printf("\n");
}

void bench_scene(const Options& options, int size, PixelFormat format, bool turned) {
  const CameraModel model = synth::tilted_plane(size, turned);
  Image input = make_picture(size, format);
  Image ours = Image::create(size, size, format).value();
  Image by_fixed = Image::create(size, size, format).value();
  Image by_float = Image::create(size, size, format).value();
  Image copied = Image::create(size, size, format).value();
  const Rectifier rectifier = Rectifier::create(model, format).value();
  const PeerMaps maps = make_peer_maps(model);
  const cv::Mat source = as_mat(input.view());
  cv::Mat fixed = as_mat(by_fixed.view());
  cv::Mat floats = as_mat(by_float.view());

  std::vector<Contestant> contestants = {
      {"patternd", [&] { rectifier.process(input.view(), ours.view(), nullptr); }},
      {"cv::remap, fixed maps",
       [&] { cv::remap(source, fixed, maps.fixed, maps.fraction, cv::INTER_LINEAR); }},
      {"cv::remap, float maps",
       [&] { cv::remap(source, floats, maps.x, maps.y, cv::INTER_LINEAR); }},
      {"copy", [&] {
         for (int y = 0; y < size; ++y) {
           std::memcpy(copied.view().row_bytes(y), input.view().row_bytes(y),
                       static_cast<std::size_t>(size) * bytes_per_pixel(format));
         }
       }}};
  const std::vector<Timing> timings =
      compare(contestants, options.repetitions > 0 ? options.repetitions : 60);
  const std::string scene =
      std::string(name_of(format)) + (turned ? ", plane turned 90°" : ", straight");
  const Deviation errors[] = {deviation(model, input.view(), ours.view()),
                              deviation(model, input.view(), by_fixed.view()),
                              deviation(model, input.view(), by_float.view())};
  for (std::size_t i = 0; i < timings.size(); ++i) {
    print_row(options, scene, timings[i], timings[0], timings[3].best_us,
              i < 3 ? &errors[i] : nullptr);
  }
}

}  // namespace

void add_rectify(CLI::App& program, Options& options) {
  auto* command = program.add_subcommand(
      "rectify", "Rectification of a tilted plane, one core, beside cv::remap");
  auto size = std::make_shared<int>(1024);
  command->add_option("--size", *size, "Side of the square picture")
      ->check(tools::between(64, 8192))
      ->capture_default_str();
  command->callback([&options, size] {
    cv::setNumThreads(1);
    if (!options.json) {
      std::printf("%s; OpenCV %s\n%dx%d pixels\n\n", machine_line().c_str(), CV_VERSION, *size,
                  *size);
      std::printf("%-22s %-24s %9s %9s %7s %7s %7s %10s %10s\n", "scene", "what", "median us",
                  "best us", "ratio", "of best", "of copy", "error max", "mean");
    }
    for (const PixelFormat format :
         {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kGrayF32}) {
      for (const bool turned : {false, true}) bench_scene(options, *size, format, turned);
    }
  });
}

}  // namespace patternd::bench
