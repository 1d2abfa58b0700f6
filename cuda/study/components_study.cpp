// Measures connected components on a GPU: the service's own from a picture in device memory to
// labels and statistics there, and the statistics on the host, beside NPP's where that is here;
// time against size; and the report's table (R7) for its programs A to D. Needs a GPU and nothing
// else.
//   patternd-components-study [REPETITIONS [PICTURE…]]
// With pictures named (label_pictures.h), these alone; "sizes": time against size alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "cuda/components_stage.h"
#include "cuda/study/npp_labels.h"
#include "cuda/study/report_programs.h"
#include "tools/bench/label_pictures.h"
#include "tools/bench/linear_fit.h"

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

BlobParams threshold_params() {
  BlobParams params;
  params.threshold = 127;
  return params;
}

Result<ComponentsStage> make_stage(const Stream& stream, const Image& image, bool labels,
                                   const BlobParams& params = threshold_params()) {
  ComponentsOptions options;
  options.labels = labels;
  return ComponentsStage::create(stream.device(), image.width(), image.height(), image.format(),
                                 params, options);
}

// NPP's labelling, and that with its compression, where NPP is here.
void measure_npp(const Stream& stream, const DeviceView& picture, const NppLabels& npp,
                 int repetitions) {
  const auto labels = time_stream(stream, repetitions, [&] { return npp.label(stream, picture); });
  const auto both = time_stream(stream, repetitions, [&]() -> Result<void> {
    if (auto ok = npp.label(stream, picture); !ok) return ok;
    if (auto ok = npp.compress(stream); !ok) return tl::make_unexpected(ok.error());
    return {};
  });
  if (labels && both)
    std::printf(" %9.1f %9.1f", labels->median_us, both->median_us);
  else
    std::printf(" %s", (!labels ? labels : both).error().message.c_str());
}

Result<void> measure_picture(Stream& stream, const std::string& name, int repetitions,
                             const Result<NppLabels>& npp) {
  const Image image = bench::make_label_picture(name, kSide, kSide, kSeed);
  auto picture = on_device(stream, image);
  if (!picture) return tl::make_unexpected(picture.error());
  auto both = make_stage(stream, image, true);
  auto alone = make_stage(stream, image, false);
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
  std::printf("%-14s %9llu %9.1f %9.1f %11.1f %13.1f", name.c_str(),
              static_cast<unsigned long long>(total), labels->median_us, labels->worst_us,
              statistics->median_us, fetched->median_us - labels->median_us);
  if (npp) measure_npp(stream, picture->view(), *npp, std::min(repetitions, 20));
  std::printf("\n");
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

// The service's own, labels and statistics, in device memory.
Result<Spread> time_own(Stream& stream, const Image& image, const BlobParams& params,
                        int repetitions) {
  auto picture = on_device(stream, image);
  if (!picture) return tl::make_unexpected(picture.error());
  auto stage = make_stage(stream, image, true, params);
  if (!stage) return tl::make_unexpected(stage.error());
  const auto enqueue = [&] { return stage->enqueue(stream, picture->view()); };
  auto graph = Replay::create(stream, enqueue);
  if (!graph) return tl::make_unexpected(graph.error());
  return time_stream(stream, repetitions, [&] { return graph->run(stream, enqueue); });
}

Result<void> measure_report(Stream& stream) {
  BlobParams params;
  params.mode = BlobParams::Mode::kSimilarity;
  params.similarity = 4;
  std::printf(
      "\nThe report's programs: similarity, connectivity 8, milliseconds, B to D with all "
      "questions "
      "of the host (rounds); in the report: A/B on its K20, C 90 times as fast as B at 2048\n"
      "%6s %10s %18s %18s %18s %8s %8s %12s %10s %8s\n",
      "width", "A", "B", "C", "D", "B/C", "A/B", "report's A/B", "ours", "C/ours");
  for (const ReportRow& row : kReportRows) {
    const Image image = soft_picture(row.width, row.width * 3 / 4);
    const auto times = time_report_programs(stream, image, params, 5);
    if (!times) return tl::make_unexpected(times.error());
    const auto a_ms = time_report_program_a(image, params);
    if (!a_ms) return tl::make_unexpected(a_ms.error());
    const auto own = time_own(stream, image, params, 20);
    if (!own) return tl::make_unexpected(own.error());
    const double own_ms = own->median_us * 1e-3;
    const auto& gpu = times->ms;
    const auto& rounds = times->rounds;
    std::printf(
        "%6d %10.1f %11.3f (%4d) %11.3f (%4d) %11.3f (%4d) %8.1f %8.1f %12.1f %10.3f %8.1f\n",
        row.width, *a_ms, gpu[0], rounds[0], gpu[1], rounds[1], gpu[2], rounds[2], gpu[0] / gpu[1],
        *a_ms / gpu[0], row.a_s / row.b_k20_s, own_ms, gpu[1] / own_ms);
    std::fflush(stdout);
  }
  return {};
}

// Time against pixels, and the line through the times.
Result<void> measure_sizes(Stream& stream) {
  constexpr const char* kNames[] = {"noise50", "spots"};
  std::vector<bench::TimedSize> times[std::size(kNames)];
  std::printf(
      "\nTime against size: labels and statistics, microseconds (nanoseconds a pixel)\n"
      "%10s %22s %22s\n",
      "megapixels", kNames[0], kNames[1]);
  for (const int side : bench::kSizeSides) {
    const double pixels = static_cast<double>(side) * side;
    std::printf("%10.1f", pixels * 1e-6);
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const Image image = bench::make_label_picture(kNames[i], side, side, kSeed);
      const auto time = time_own(stream, image, threshold_params(), 20);
      if (!time) return tl::make_unexpected(time.error());
      times[i].push_back({pixels, time->median_us});
      std::printf(" %11.1f (%8.4f)", time->median_us, time->median_us * 1e3 / pixels);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    const bench::LinearFit fit = bench::fit_line(times[i]);
    std::printf("%s: %.1f us + %.4f ns a pixel, times at most %.0f %% off\n", kNames[i],
                fit.start_us, fit.us_per_pixel * 1e3, fit.largest_deviation * 100);
  }
  return {};
}

Result<void> run(int repetitions, const std::vector<std::string>& pictures) {
  auto stream = open_first_gpu();
  if (!stream) return tl::make_unexpected(stream.error());
  const auto& device = stream->device();
  std::printf("%s; %dx%d, connectivity 8, microseconds by device events, %d repetitions\n",
              device->description().c_str(), kSide, kSide, repetitions);
  const auto npp = NppLabels::create(device, kSide, kSide);
  if (!npp) std::printf("%s\n", npp.error().message.c_str());
  std::printf("%-14s %9s %9s %9s %11s %13s %9s %9s\n", "picture", "count", "median", "worst",
              "statistics", "+ to the host", npp ? "NPP" : "", npp ? "compress" : "");
  if (pictures == std::vector<std::string>{"sizes"}) return measure_sizes(*stream);
  for (const auto& name : pictures.empty() ? bench::label_picture_names() : pictures)
    if (auto ok = measure_picture(*stream, name, repetitions, npp); !ok) return ok;
  if (!pictures.empty()) return {};
  if (auto ok = measure_sizes(*stream); !ok) return ok;
  return measure_report(*stream);
}

}  // namespace
}  // namespace patternd::cuda

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  const std::vector<std::string> pictures(argv + std::min(argc, 2), argv + argc);
  const auto done = patternd::cuda::run(repetitions, pictures);
  if (done) return 0;
  std::fprintf(stderr, "patternd-components-study: %s\n", done.error().message.c_str());
  return 1;
}
