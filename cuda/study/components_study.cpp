// Measures connected components on a GPU: the service's own from a picture in device memory to
// labels and statistics there, and the statistics on the host; and the report's table (R7) for its
// programs B, C and D. Needs a GPU and nothing else.
//   patternd-components-study [REPETITIONS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/components_stage.h"
#include "cuda/propagation_study.h"
#include "pipeline/stage.h"
#include "tools/bench/label_pictures.h"

namespace patternd::cuda {
namespace {

constexpr int kSide = 2048;
constexpr std::uint32_t kSeed = 1;

// What one picture's repetitions came to.
struct Spread {
  double median_us = 0;
  double worst_us = 0;
};

Spread spread_of(std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  return {times_us[times_us.size() / 2], times_us.back()};
}

// The time between two events around what `enqueue` enqueues, again and again.
template <class Enqueue>
Result<Spread> time_stream(const Stream& stream, int repetitions, const Enqueue& enqueue) {
  auto start = Event::create(stream.device());
  auto end = Event::create(stream.device());
  if (!start) return tl::make_unexpected(start.error());
  if (!end) return tl::make_unexpected(end.error());
  std::vector<double> times_us;
  for (int i = -10; i < repetitions; ++i) {
    if (auto ok = stream.record(*start); !ok) return tl::make_unexpected(ok.error());
    if (auto ok = enqueue(); !ok) return tl::make_unexpected(ok.error());
    if (auto ok = stream.record(*end); !ok) return tl::make_unexpected(ok.error());
    if (auto ok = end->wait(); !ok) return tl::make_unexpected(ok.error());
    auto ns = end->ns_since(*start);
    if (!ns) return tl::make_unexpected(ns.error());
    if (i >= 0) times_us.push_back(static_cast<double>(*ns) * 1e-3);
  }
  return spread_of(times_us);
}

Result<DevicePicture> on_device(const Stream& stream, const Image& image) {
  auto picture =
      DevicePicture::create(stream.device(), image.width(), image.height(), image.format());
  if (!picture) return picture;
  if (auto ok = upload(stream, image.view(), picture->view()); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stream.wait(); !ok) return tl::make_unexpected(ok.error());
  return picture;
}

// Replays the launches as a graph where the driver has them: the gaps between launches shrink.
class Replay {
 public:
  template <class Enqueue>
  static Result<Replay> create(Stream& stream, const Enqueue& enqueue) {
    Replay replay;
    if (!stream.device()->driver().has_graphs()) return replay;
    auto graph = Graph::record(stream, enqueue);
    if (!graph) return tl::make_unexpected(graph.error());
    replay.graph_ = std::move(*graph);
    replay.recorded_ = true;
    return replay;
  }
  template <class Enqueue>
  Result<void> run(const Stream& stream, const Enqueue& enqueue) const {
    return recorded_ ? graph_.replay(stream) : enqueue();
  }

 private:
  Graph graph_;
  bool recorded_ = false;
};

Result<void> measure_picture(Stream& stream, const std::string& name, int repetitions) {
  const Image image = bench::make_label_picture(name, kSide, kSide, kSeed);
  auto picture = on_device(stream, image);
  if (!picture) return tl::make_unexpected(picture.error());
  BlobParams params;
  params.threshold = 127;
  ComponentsOptions options;
  options.labels = true;
  auto both =
      ComponentsStage::create(stream.device(), kSide, kSide, image.format(), params, options);
  options.labels = false;
  auto alone =
      ComponentsStage::create(stream.device(), kSide, kSide, image.format(), params, options);
  if (!both) return tl::make_unexpected(both.error());
  if (!alone) return tl::make_unexpected(alone.error());

  const auto enqueue_both = [&] { return both->enqueue(stream, picture->view()); };
  const auto enqueue_alone = [&] { return alone->enqueue(stream, picture->view()); };
  auto both_graph = Replay::create(stream, enqueue_both);
  auto alone_graph = Replay::create(stream, enqueue_alone);
  if (!both_graph) return tl::make_unexpected(both_graph.error());
  if (!alone_graph) return tl::make_unexpected(alone_graph.error());
  const auto labels =
      time_stream(stream, repetitions, [&] { return both_graph->run(stream, enqueue_both); });
  const auto statistics =
      time_stream(stream, repetitions, [&] { return alone_graph->run(stream, enqueue_alone); });
  const auto fetched = time_stream(stream, repetitions, [&]() -> Result<void> {
    if (auto ok = both_graph->run(stream, enqueue_both); !ok) return ok;
    return both->enqueue_download(stream);
  });
  if (!labels) return tl::make_unexpected(labels.error());
  if (!statistics) return tl::make_unexpected(statistics.error());
  if (!fetched) return tl::make_unexpected(fetched.error());
  std::vector<Blob> blobs;
  std::uint64_t total = 0;
  if (auto ok = both->collect(stream, blobs, total); !ok) return ok;
  std::printf("%-14s %9llu %9.1f %9.1f %11.1f %13.1f\n", name.c_str(),
              static_cast<unsigned long long>(total), labels->median_us, labels->worst_us,
              statistics->median_us, fetched->median_us - labels->median_us);
  std::fflush(stdout);
  return {};
}

// Where the report's photograph is not at hand: soft spots of light, whose components by similarity
// reach across the picture as its do.
Image soft_picture(int width, int height) {
  Image image = std::move(*Image::create(width, height, PixelFormat::kGray8));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int u = 64 * x / width % 16 - 8;
      const int v = 48 * y / height % 16 - 8;
      const unsigned hash =
          static_cast<unsigned>(64 * x / width / 16 * 7 + 48 * y / height / 16 * 13);
      image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::max(0, 200 - (u * u + v * v)) +
                                                                static_cast<int>(hash % 50));
    }
  }
  return image;
}

Result<double> time_program(const Stream& stream, PropagationProgram program, const Image& image,
                            const DeviceView& picture, int& rounds) {
  BlobParams params;
  params.mode = BlobParams::Mode::kSimilarity;
  params.similarity = 4;
  auto study =
      PropagationStudy::create(stream.device(), program, image.width(), image.height(), params);
  if (!study) return tl::make_unexpected(study.error());
  std::vector<double> times_us;
  for (int i = -1; i < 5; ++i) {
    const std::int64_t start_ns = monotonic_ns();
    auto done = study->run(stream, picture);
    if (!done) return tl::make_unexpected(done.error());
    rounds = *done;
    if (i >= 0) times_us.push_back(static_cast<double>(monotonic_ns() - start_ns) * 1e-3);
  }
  return spread_of(times_us).median_us;
}

Result<void> measure_report(const Stream& stream) {
  std::printf(
      "\nThe report's table: similarity, connectivity 8, milliseconds with all questions of "
      "the host (rounds)\n%6s %18s %18s %18s %8s\n",
      "width", "B", "C", "D", "B/C");
  for (const int width : {2048, 1080, 640, 320}) {
    const Image image = soft_picture(width, width * 3 / 4);
    auto picture = on_device(stream, image);
    if (!picture) return tl::make_unexpected(picture.error());
    double us[3] = {};
    int rounds[3] = {};
    for (int i = 0; i < 3; ++i) {
      const auto time = time_program(stream, static_cast<PropagationProgram>(i), image,
                                     picture->view(), rounds[i]);
      if (!time) return tl::make_unexpected(time.error());
      us[i] = *time;
    }
    std::printf("%6d %11.3f (%4d) %11.3f (%4d) %11.3f (%4d) %8.1f\n", width, us[0] * 1e-3,
                rounds[0], us[1] * 1e-3, rounds[1], us[2] * 1e-3, rounds[2], us[0] / us[1]);
    std::fflush(stdout);
  }
  return {};
}

Result<void> run(int repetitions) {
  auto driver = Driver::open();
  if (!driver) return tl::make_unexpected(driver.error());
  auto device = Device::open(*driver, 0, "auto");
  if (!device) return tl::make_unexpected(device.error());
  if (auto ok = (*device)->make_current(); !ok) return ok;
  auto stream = Stream::create(*device);
  if (!stream) return tl::make_unexpected(stream.error());
  std::printf("%s; %dx%d, connectivity 8, microseconds by device events, %d repetitions\n",
              (*device)->description().c_str(), kSide, kSide, repetitions);
  std::printf("%-14s %9s %9s %9s %11s %13s\n", "picture", "count", "median", "worst", "statistics",
              "+ to the host");
  for (const auto& name : bench::label_picture_names())
    if (auto ok = measure_picture(*stream, name, repetitions); !ok) return ok;
  return measure_report(*stream);
}

}  // namespace
}  // namespace patternd::cuda

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  const auto done = patternd::cuda::run(repetitions);
  if (done) return 0;
  std::fprintf(stderr, "patternd-components-study: %s\n", done.error().message.c_str());
  return 1;
}
