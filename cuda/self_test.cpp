// The self-test at start: one small frame through every kernel, compared with the CPU.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "cuda/cuda_processor.h"

namespace patternd::cuda {
namespace {

constexpr int kWidth = 200;
constexpr int kHeight = 160;
constexpr int kPatternSide = 48;
constexpr int kPatternLeft = 84;
constexpr int kPatternTop = 60;
constexpr double kPosePx = 0.05;
constexpr double kAngleDeg = 0.1;
constexpr double kScore = 1e-3;
constexpr double kBlobThreshold = 150;

// A texture that looks like itself nowhere else.
Result<Image> made_frame() {
  auto frame = Image::create(kWidth, kHeight, PixelFormat::kGray8);
  if (!frame) return frame;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const double value = 128 + 40 * std::sin(0.21 * x + 0.003 * x * y) +
                           35 * std::sin(0.17 * y + 0.0021 * x * x) + 25 * std::sin(0.5 * x);
      frame->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(value);
    }
  }
  return frame;
}

CameraModel made_calibration() {
  CameraModel model;
  model.image_width = kWidth;
  model.image_height = kHeight;
  model.lens.model = LensModel::kBrownConrady;
  model.lens.camera_matrix = {200, 0, 100, 0, 200, 80, 0, 0, 1};
  model.lens.distortion = {0.05, 0.01, 0, 0, 0, 0, 0, 0};
  return model;
}

std::string place_of(const Match& match) {
  return std::to_string(match.x_px) + ", " + std::to_string(match.y_px) + " at " +
         std::to_string(match.angle_deg) + " degrees, score " + std::to_string(match.score);
}

ProcessorConfig config_for(const ImageView& frame) {
  ProcessorConfig config;
  config.width = kWidth;
  config.height = kHeight;
  config.stride_bytes = frame.stride_bytes;
  config.threads = 1;
  return config;
}

// The frame's results on both; the GPU's second.
Result<std::pair<FrameResult, FrameResult>> on_both(const std::shared_ptr<const Device>& device,
                                                    const std::string& memory,
                                                    const ProcessorConfig& config,
                                                    const ImageView& frame) {
  auto cpu = make_cpu_processor(config);
  if (!cpu) return tl::make_unexpected(cpu.error());
  auto gpu = make_cuda_processor(device, memory, config);
  if (!gpu) return tl::make_unexpected(gpu.error());
  const RawImageView raw{frame.data,       frame.stride_bytes * kHeight, kWidth,
                         kHeight,          frame.stride_bytes,           RawFormat::kGrey,
                         BayerOrder::kRggb};
  std::pair<FrameResult, FrameResult> results;
  if (auto ok = (*cpu)->process(raw, results.first); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = (*gpu)->process(raw, results.second); !ok) return tl::make_unexpected(ok.error());
  return results;
}

// Of the frame as it comes, so that both label the same values.
Result<void> test_blobs(const std::shared_ptr<const Device>& device, const std::string& memory,
                        const ImageView& frame) {
  ProcessorConfig config = config_for(frame);
  config.blobs = BlobParams();
  config.blobs->threshold = kBlobThreshold;
  const auto results = on_both(device, memory, config, frame);
  if (!results) return tl::make_unexpected(results.error());
  const auto& [expected, found] = *results;
  const auto same = [](const Blob& a, const Blob& b) {
    return a.area_px == b.area_px && a.x_px == b.x_px && a.y_px == b.y_px && a.mean == b.mean &&
           a.major_px == b.major_px;
  };
  if (expected.blobs_total == found.blobs_total &&
      std::equal(expected.blobs.begin(), expected.blobs.end(), found.blobs.begin(),
                 found.blobs.end(), same))
    return {};
  return fail(ErrorCode::kUnsupported,
              "self-test failed: the GPU found " + std::to_string(found.blobs_total) +
                  " blobs, not the CPU's " + std::to_string(expected.blobs_total) +
                  ", or others than these");
}

// A pattern behind a calibration.
Result<void> test_search(const std::shared_ptr<const Device>& device, const std::string& memory,
                         const ImageView& frame) {
  auto pattern = teach_pattern(
      "self-test", frame.crop(kPatternLeft, kPatternTop, kPatternSide, kPatternSide), {}, {});
  if (!pattern) return tl::make_unexpected(pattern.error());
  ProcessorConfig config = config_for(frame);
  config.calibration = made_calibration();
  SearchParams params;
  params.min_score = 0.6;
  config.patterns.push_back({std::make_shared<const Pattern>(std::move(*pattern)), params});
  const auto results = on_both(device, memory, config, frame);
  if (!results) return tl::make_unexpected(results.error());
  const auto& [expected, found] = *results;
  if (expected.matches.empty() || found.matches.empty()) {
    return fail(ErrorCode::kUnsupported,
                "self-test failed: the GPU found " + std::to_string(found.matches.size()) +
                    " patterns where the CPU found " + std::to_string(expected.matches.size()));
  }
  const Match& a = expected.matches[0];
  const Match& b = found.matches[0];
  if (std::hypot(a.x_px - b.x_px, a.y_px - b.y_px) > kPosePx ||
      std::abs(a.angle_deg - b.angle_deg) > kAngleDeg || std::abs(a.score - b.score) > kScore) {
    return fail(ErrorCode::kUnsupported, "self-test failed: the GPU found " + place_of(b) +
                                             " where the CPU found " + place_of(a));
  }
  return {};
}

}  // namespace

Result<void> self_test(const std::shared_ptr<const Device>& device, const std::string& memory) {
  const auto frame = made_frame();
  if (!frame) return tl::make_unexpected(frame.error());
  if (auto ok = test_search(device, memory, frame->view()); !ok) return ok;
  return test_blobs(device, memory, frame->view());
}

}  // namespace patternd::cuda
