// The figures of cuda/PERFORMANCE.md: medians of many, by device events, the ceilings measured in
// the same run. `patternd_gpu_figures`; PATTERND_TEST_IMAGE chooses the image. With `frame`,
// `rectify` or `start` that part alone; `once` (`once16`: of 16 patterns) runs one frame to
// warm up and one more, for a profiler.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibration/matrix3.h"
#include "cuda/cuda_processor.h"
#include "cuda/rectify_stage.h"
#include "cuda/study/seeds_rectify_scene.h"
#include "cuda/study/study_image.h"
#include "cuda/study/study_parameters.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/npp_peers.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda::test {
namespace {

constexpr int kSide = 8192;

template <class T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}
void require(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

Image on_host(const Stream& stream, const DevicePicture& picture) {
  const DeviceView& view = picture.view();
  Image image = value_of(Image::create(view.width, view.height, view.format));
  require(download(stream, view, image.view()));
  require(stream.wait());
  return image;
}

double grey_at(const Image& image, int x, int y) {
  if (image.format() == PixelFormat::kGray8) return image.row<std::uint8_t>(y)[x];
  return static_cast<double>(image.row<float>(y)[x]);
}

// Over every 61st row and column.
double mean_difference(const Image& a, const Image& b) {
  double sum = 0;
  double count = 0;
  for (int y = 0; y < a.height(); y += 61) {
    for (int x = 0; x < a.width(); x += 61) {
      sum += std::abs(grey_at(a, x, y) - grey_at(b, x, y));
      ++count;
    }
  }
  return sum / count;
}

// Median of 51 runs after two to warm up, in microseconds.
double median_us(const Stream& stream, const std::function<Result<void>()>& enqueue) {
  const Event start = value_of(Event::create(device()));
  const Event end = value_of(Event::create(device()));
  std::vector<double> times;
  for (int i = -2; i < 51; ++i) {
    require(stream.record(start));
    require(enqueue());
    require(stream.record(end));
    require(stream.wait());
    if (i >= 0) times.push_back(static_cast<double>(value_of(end.ns_since(start))) / 1000);
  }
  std::nth_element(times.begin(), times.begin() + 25, times.end());
  return times[25];
}

// NPP's two ways to the same picture, beside our time for it. The lens is in the maps; the
// perspective warp leaves it out.
void peers(const StudyImage& study, const CameraModel& model, const Stream& stream,
           const DevicePicture& in, const DevicePicture& out, double ours_us) {
  std::string reason;
  const auto npp = NppPeers::open(device(), reason);
  if (!npp) {
    std::printf("    NPP: SKIPPED, %s\n", reason.c_str());
    return;
  }
  const DeviceView& view = in.view();
  const auto map = [&] {
    return value_of(
        DevicePicture::create(device(), view.width, view.height, PixelFormat::kGrayF32));
  };
  const DevicePicture map_x = map();
  const DevicePicture map_y = map();
  StudyMapParameters p{};
  p.map_x = map_x.view().address;
  p.map_y = map_y.view().address;
  p.stride_bytes = map_x.view().stride_bytes;
  p.width = view.width;
  p.height = view.height;
  p.camera = study_camera(model);
  Shape shape;
  shape.block_x = 32;
  shape.block_y = 8;
  shape.grid_x = static_cast<unsigned>((view.width + 31) / 32);
  shape.grid_y = static_cast<unsigned>((view.height + 7) / 8);
  require(stream.launch(value_of(study.kernel("patternd_study_map")), shape, p));

  const Image ours = on_host(stream, out);
  const double remap = median_us(
      stream, [&] { return npp->remap(stream, view, map_x.view(), map_y.view(), out.view()); });
  const double remap_off = mean_difference(ours, on_host(stream, out));
  const auto to_output = inverse(model.plane->homography);
  const double warp =
      median_us(stream, [&] { return npp->warp(stream, view, *to_output, out.view()); });
  std::printf(
      "    nppiRemap %.1f us, %.2f x ours (mean difference %.3f grey levels); "
      "nppiWarpPerspective %.1f us, %.2f x ours\n",
      remap, remap / ours_us, remap_off, warp, warp / ours_us);
}

void rectification(const StudyImage& study, PixelFormat format) {
  const Stream stream = value_of(Stream::create(device()));
  std::mt19937 random(1);
  const Image picture = make_picture(kSide, kSide, format, Content::kNoise, random);
  const DevicePicture in = value_of(DevicePicture::create(device(), kSide, kSide, format));
  const DevicePicture out = value_of(DevicePicture::create(device(), kSide, kSide, format));
  require(upload(stream, picture.view(), in.view()));
  require(stream.wait());
  const DeviceView& v = in.view();
  const Texture texture = value_of(Texture::create(device(), v.address, v.width, v.height,
                                                   static_cast<std::size_t>(v.stride_bytes), format,
                                                   1, FilterMode::kPoint));
  StudyParameters p{};
  p.texture = texture.get();
  p.input = v.address;
  p.output = out.view().address;
  p.stride_bytes = v.stride_bytes;
  p.width = p.height = kSide;
  p.count = static_cast<long long>(v.stride_bytes) * kSide / 16;
  p.scale = format == PixelFormat::kGray8 ? 255.0F : 1.0F;
  Shape pieces;
  pieces.block_x = 256;
  pieces.grid_x = static_cast<unsigned>(p.count / 256);
  const Kernel copy_kernel = value_of(study.kernel("patternd_study_copy"));
  const double copy = median_us(stream, [&] { return stream.launch(copy_kernel, pieces, p); });
  Shape tiles;
  tiles.block_x = 32;
  tiles.block_y = 8;
  const int pixels = format == PixelFormat::kGray8 ? 16 : 4;
  tiles.grid_x = static_cast<unsigned>(kSide / pixels / 32);
  tiles.grid_y = kSide / 8;
  const Kernel identity_kernel =
      value_of(study.kernel(format == PixelFormat::kGray8 ? "patternd_study_identity_gray8"
                                                          : "patternd_study_identity_gray_f32"));
  const double identity =
      median_us(stream, [&] { return stream.launch(identity_kernel, tiles, p); });
  std::printf("%s %d: copy %.1f us, identity fetch %.1f us\n", patternd::name_of(format), kSide,
              copy, identity);
  for (const bool turned : {false, true}) {
    const CameraModel model = patternd::test::tilted_plane(kSide, turned);
    const RectifyPlan plan = value_of(plan_rectification(model));
    const RectifyStage stage = value_of(RectifyStage::create(device(), plan, format, 0, {}));
    const double time =
        median_us(stream, [&] { return stage.enqueue(stream, texture, out.view(), in.view()); });
    std::printf("  rectify %s: %.1f us, share of the slower ceiling %.2f, squares of %d\n",
                turned ? "turned by 90" : "upright", time, std::max(copy, identity) / time,
                plan.side());
    peers(study, model, stream, in, out, time);
  }
}

// Frames a second of one processor with `streams` frames in flight, fed by one thread, as the
// service does.
double frames_per_second(const ProcessorConfig& config, const RawImageView& raw, int streams) {
  constexpr int kFrames = 2000;
  const auto processor = value_of(make_cuda_processor(device(), "auto", config, streams));
  FrameResult result;
  result.matches.reserve(1000);
  const auto feed = [&](int frames) {
    for (int submitted = 0, collected = 0; collected < frames; ++collected) {
      while (submitted < frames && submitted - collected < streams) {
        require(processor->submit(raw));
        ++submitted;
      }
      require(processor->collect(result));
    }
  };
  feed(50);
  const std::int64_t start_ns = monotonic_ns();
  feed(kFrames);
  return 1e9 * kFrames / static_cast<double>(monotonic_ns() - start_ns);
}

Scene frame_scene() {
  std::mt19937 random(7);
  SceneOptions options;
  options.width = options.height = 1024;
  options.pattern_width = options.pattern_height = 128;
  options.instances = 5;
  options.noise = 5;
  return make_scene(options, random);
}

// The frame in page-locked memory, and what is searched in it.
class FrameJob {
 public:
  explicit FrameJob(int patterns) {
    const Scene scene = frame_scene();
    const ImageView view = scene.picture.view();
    const std::size_t bytes = view.stride_bytes * 1024;
    std::uint8_t* frame = value_of(memory_.allocate(bytes));
    std::copy_n(view.data, bytes, frame);
    config.width = config.height = 1024;
    config.stride_bytes = view.stride_bytes;
    for (int i = 0; i < patterns; ++i) config.patterns.push_back({scene.pattern, {}});
    raw = {frame, bytes, 1024, 1024, view.stride_bytes, RawFormat::kGrey, BayerOrder::kRggb};
  }
  ProcessorConfig config;
  RawImageView raw;

 private:
  PageLockedFrameAllocator memory_{device()};
};

// A processor's start with 16 patterns: most of it is planning, so it says as much on a driver that
// is made for tests. Median of three.
void start() {
  const FrameJob job(16);
  for (const int streams : {1, 2, 4}) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t start_ns = monotonic_ns();
      const auto processor = value_of(make_cuda_processor(device(), "auto", job.config, streams));
      times.push_back(static_cast<double>(monotonic_ns() - start_ns) / 1e6);
    }
    std::sort(times.begin(), times.end());
    std::printf("start, 1024x1024, 16 patterns of 128x128, %d streams: %.0f ms\n", streams,
                times[1]);
  }
}

void two_frames(int patterns) {
  const FrameJob job(patterns);
  auto processor = value_of(make_cuda_processor(device(), "auto", job.config));
  FrameResult result;
  for (int i = 0; i < 2; ++i) require(processor->process(job.raw, result));
  std::printf("%zu matches\n", result.matches.size());
}

void whole_frame(int patterns) {
  const FrameJob job(patterns);
  const ProcessorConfig& config = job.config;
  const RawImageView& raw = job.raw;
  auto processor = value_of(make_cuda_processor(device(), "auto", config));
  FrameResult result;
  result.matches.reserve(1000);
  std::vector<double> times;
  std::array<std::vector<std::int64_t>, kStageCount> stages_ns;
  for (int i = -5; i < 201; ++i) {
    const std::int64_t start_ns = monotonic_ns();
    require(processor->process(raw, result));
    if (i < 0) continue;
    times.push_back(static_cast<double>(monotonic_ns() - start_ns) / 1000);
    for (std::size_t s = 0; s < kStageCount; ++s) stages_ns[s].push_back(result.times.ns[s]);
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "frame 1024x1024, %d patterns of 128x128, all angles: median %.1f us, p99 %.1f us, "
      "%zu matches\n  us:",
      patterns, times[100], times[198], result.matches.size());
  for (std::size_t s = 0; s < kStageCount; ++s) {
    std::nth_element(stages_ns[s].begin(), stages_ns[s].begin() + 100, stages_ns[s].end());
    std::printf(" %s %.1f", kStageNames[s], static_cast<double>(stages_ns[s][100]) / 1000);
  }
  std::printf("\n  %s\n", processor->description().c_str());
  if (patterns > 1) return;
  const double alone = frames_per_second(config, raw, 1);
  std::printf("  one in flight: %.0f frames/s\n", alone);
  for (const int streams : {2, 4, 8}) {
    const double rate = frames_per_second(config, raw, streams);
    std::printf("  %d in flight: %.0f frames/s, %.2f x\n", streams, rate, rate / alone);
  }
}

}  // namespace
}  // namespace patternd::cuda::test

int main(int argc, char** argv) {
  using namespace patternd::cuda::test;
  const std::string part = argc > 1 ? argv[1] : "";
  const std::array<std::string, 5> parts = {"frame", "rectify", "start", "once", "once16"};
  if (argc > 2 || (argc == 2 && std::find(parts.begin(), parts.end(), part) == parts.end())) {
    std::fprintf(stderr, "usage: patternd_gpu_figures [frame | rectify | start | once | once16]\n");
    return 2;
  }
  if (!device()) {
    std::fprintf(stderr, "patternd_gpu_figures: %s\n", why_no_device().c_str());
    return 2;
  }
  std::printf("%s\n", device()->description().c_str());
  if (part == "once" || part == "once16") {
    two_frames(part == "once" ? 1 : 16);
    return 0;
  }
  if (part.empty() || part == "start") start();
  if (part == "start") return 0;
  if (part != "rectify") {
    whole_frame(1);
    whole_frame(16);
  }
  if (part == "frame") return 0;
  const char* image = std::getenv("PATTERND_TEST_IMAGE");
  const auto study =
      value_of(patternd::cuda::StudyImage::load(device(), image != nullptr ? image : "auto"));
  rectification(study, patternd::PixelFormat::kGray8);
  rectification(study, patternd::PixelFormat::kGrayF32);
  return 0;
}
