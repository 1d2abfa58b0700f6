// Connected components against OpenCV's (issue: one core, 2048×2048), the report's table (R7), and
// time against size.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "cuda/study/report_programs.h"
#include "pipeline/components.h"
#include "pipeline/image_file.h"
#include "tools/bench/bench.h"
#include "tools/bench/label_pictures.h"
#include "tools/bench/linear_fit.h"
#include "tools/bench/subjects.h"
#include "tools/usage_error.h"

namespace patternd::bench {
namespace {

constexpr double kThreshold = 127;
constexpr std::uint32_t kSeed = 1;

struct Arguments {
  int size = 2048;
  bool report = false;
  bool sizes = false;
  std::string photo = "/usr/share/doc/opencv-doc/examples/data/fruits.jpg";
};

cv::Mat mat_of(Image& image, int type) {
  return {image.height(), image.width(), type, image.view().data, image.view().stride_bytes};
}

Result<Image> photo_of_size(const std::string& path, ReadAs as, int width, int height) {
  auto photo = read_image(path, as);
  if (!photo) return photo;
  auto image = Image::create(width, height, photo->format());
  if (!image) return image;
  const int type = photo->format() == PixelFormat::kRgb8 ? CV_8UC3 : CV_8UC1;
  cv::Mat resized = mat_of(*image, type);
  cv::resize(mat_of(*photo, type), resized, resized.size(), 0, 0, cv::INTER_CUBIC);
  return image;
}

struct NamedPicture {
  std::string name;
  Image image;
};

// The made pictures, and a photograph thresholded in two ways.
Result<std::vector<NamedPicture>> make_pictures(const Arguments& a) {
  std::vector<NamedPicture> pictures;
  for (const std::string& name : label_picture_names())
    pictures.push_back({name, make_label_picture(name, a.size, a.size, kSeed)});
  for (const bool otsu : {true, false}) {
    auto photo = photo_of_size(a.photo, ReadAs::kGray, a.size, a.size);
    if (!photo) return tl::make_unexpected(photo.error());
    cv::Mat mat = mat_of(*photo, CV_8UC1);
    if (otsu)
      cv::threshold(mat, mat, 0, 255, cv::THRESH_BINARY | cv::THRESH_OTSU);
    else
      cv::adaptiveThreshold(mat, mat, 255, cv::ADAPTIVE_THRESH_MEAN_C, cv::THRESH_BINARY, 31, 0);
    pictures.push_back({otsu ? "photo, Otsu" : "photo, adaptive", std::move(*photo)});
  }
  return pictures;
}

// Ours for one picture: labels with area, box and centroid; these statistics alone; and all the
// statistics of a service.
class Ours {
 public:
  static Result<Ours> create(const Image& image) {
    BlobParams params;
    params.threshold = kThreshold;
    LabelOptions options;
    options.intensity = options.moments = false;
    options.labels = true;
    auto both =
        ComponentLabeller::create(image.width(), image.height(), image.format(), params, options);
    options.labels = false;
    auto boxes =
        ComponentLabeller::create(image.width(), image.height(), image.format(), params, options);
    options.intensity = options.moments = true;
    auto all =
        ComponentLabeller::create(image.width(), image.height(), image.format(), params, options);
    auto labels = Image::create(image.width(), image.height(), PixelFormat::kLabel32);
    if (!both || !boxes || !all || !labels)
      return fail(ErrorCode::kExhausted, "no memory for the labellers");
    return Ours{std::move(*both), std::move(*boxes), std::move(*all), std::move(*labels)};
  }

  void label_and_measure(const Image& image) {
    (void)both_.process(image.view(), labels_.view());
    read_boxes(both_);
  }
  void measure(const Image& image) {
    (void)boxes_only_.process(image.view());
    read_boxes(boxes_only_);
  }
  void serve(const Image& image) {
    (void)all_.process(image.view());
    all_.largest(blobs_);
  }
  [[nodiscard]] std::int64_t count() const { return both_.count(); }
  [[nodiscard]] Image& labels() { return labels_; }

 private:
  Ours(ComponentLabeller both, ComponentLabeller boxes_only, ComponentLabeller all, Image labels)
      : both_(std::move(both)),
        boxes_only_(std::move(boxes_only)),
        all_(std::move(all)),
        labels_(std::move(labels)) {}
  void read_boxes(const ComponentLabeller& labeller) {
    if (static_cast<std::int64_t>(out_.size()) < labeller.count())
      out_.resize(static_cast<std::size_t>(labeller.count()));
    labeller.boxes(out_.data(), labeller.count());
  }

  ComponentLabeller both_;
  ComponentLabeller boxes_only_;
  ComponentLabeller all_;
  Image labels_;
  std::vector<ComponentBox> out_;
  std::vector<Blob> blobs_;
};

struct Row {
  std::string picture;
  std::int64_t components = 0;
  double peer_us = 0;  // the fastest of OpenCV's algorithms for this picture
  double both_us = 0;
  double boxes_us = 0;
  double service_us = 0;
};

void print(const Row& row, bool json) {
  if (json) {
    const nlohmann::ordered_json line = {{"type", "components"},
                                         {"picture", row.picture},
                                         {"components", row.components},
                                         {"opencv_us", row.peer_us},
                                         {"labels_and_boxes_us", row.both_us},
                                         {"boxes_us", row.boxes_us},
                                         {"service_us", row.service_us}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%-16s %9lld %10.0f %10.0f %6.1fx %10.0f %6.1fx %10.0f\n", row.picture.c_str(),
              static_cast<long long>(row.components), row.peer_us, row.both_us,
              row.peer_us / row.both_us, row.boxes_us, row.peer_us / row.boxes_us, row.service_us);
}

Result<Row> measure_picture(NamedPicture& picture, int repetitions) {
  auto made = Ours::create(picture.image);
  if (!made) return tl::make_unexpected(made.error());
  Ours& ours = *made;
  cv::Mat binary = mat_of(picture.image, CV_8UC1);
  cv::Mat labels;
  cv::Mat statistics;
  cv::Mat centroids;
  std::vector<Contestant> contestants = {{"both", [&] { ours.label_and_measure(picture.image); }},
                                         {"boxes", [&] { ours.measure(picture.image); }},
                                         {"service", [&] { ours.serve(picture.image); }}};
  for (const int algorithm : {cv::CCL_SAUF, cv::CCL_BBDT, cv::CCL_SPAGHETTI}) {
    contestants.push_back({"peer", [&, algorithm] {
                             cv::connectedComponentsWithStats(binary, labels, statistics, centroids,
                                                              8, CV_32S, algorithm);
                           }});
  }
  const std::vector<Timing> times = compare(contestants, repetitions, Clock::kThreadCpu);
  if (statistics.rows - 1 != ours.count())
    return fail(ErrorCode::kInternal, picture.name + ": OpenCV finds another number of components");
  Row row;
  row.picture = picture.name;
  row.components = ours.count();
  row.both_us = times[0].median_us;
  row.boxes_us = times[1].median_us;
  row.service_us = times[2].median_us;
  row.peer_us = std::min({times[3].median_us, times[4].median_us, times[5].median_us});
  return row;
}

Result<void> run_pictures(const Arguments& a, const Options& options) {
  auto pictures = make_pictures(a);
  if (!pictures) return tl::make_unexpected(pictures.error());
  if (!options.json) {
    std::printf("%s; one core, %dx%d, connectivity 8, microseconds of processor time, medians\n",
                machine_line().c_str(), a.size, a.size);
    std::printf("%-16s %9s %10s %10s %7s %10s %7s %10s\n", "picture", "count", "OpenCV",
                "labels+box", "", "boxes", "", "service");
  }
  for (NamedPicture& picture : *pictures) {
    const auto row = measure_picture(picture, options.repetitions > 0 ? options.repetitions : 9);
    if (!row) return tl::make_unexpected(row.error());
    print(*row, options.json);
  }
  return {};
}

struct ReportLine {
  int width = 0;
  double a_s = 0;
  double runs_s = 0;
  std::optional<cuda::ReportTimes> gpu;
};

void print(const ReportLine& line, const cuda::ReportRow& report, bool json) {
  if (json) {
    nlohmann::ordered_json object = {{"type", "components_report"},
                                     {"width", line.width},
                                     {"a_s", line.a_s},
                                     {"runs_s", line.runs_s}};
    if (line.gpu) {
      object["b_ms"] = line.gpu->ms[0];
      object["c_ms"] = line.gpu->ms[1];
      object["d_ms"] = line.gpu->ms[2];
    }
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  std::printf("%6d %9.4f %9.6f %8.0f %12.1f", line.width, line.a_s, line.runs_s,
              line.a_s / line.runs_s, report.a_s / report.b_k20_s);
  if (line.gpu) {
    const auto& ms = line.gpu->ms;
    std::printf(" %10.3f %10.3f %10.3f %8.1f %8.1f", ms[0], ms[1], ms[2], line.a_s * 1e3 / ms[0],
                ms[0] / ms[1]);
  }
  std::printf("\n");
}

Result<ReportLine> measure_report_line(const Arguments& a, const Options& options, int width,
                                       const Result<cuda::Stream>& gpu) {
  auto photo = photo_of_size(a.photo, ReadAs::kGray, width, width * 3 / 4);
  if (!photo) return tl::make_unexpected(photo.error());
  BlobParams params;
  params.mode = BlobParams::Mode::kSimilarity;
  params.similarity = 10;
  std::vector<Contestant> contestants;
  for (const LabelMethod method : {LabelMethod::kPropagation, LabelMethod::kRuns}) {
    LabelOptions label_options;
    label_options.method = method;
    auto labeller = ComponentLabeller::create(photo->width(), photo->height(), photo->format(),
                                              params, label_options);
    if (!labeller) return tl::make_unexpected(labeller.error());
    auto shared = std::make_shared<ComponentLabeller>(std::move(*labeller));
    contestants.push_back(
        {name_of(method), [shared, &photo] { (void)shared->process(photo->view()); }});
  }
  const int repetitions = options.repetitions > 0 ? options.repetitions : 1;
  const auto times = compare(contestants, repetitions, Clock::kThreadCpu);
  ReportLine line;
  line.width = width;
  line.a_s = times[0].median_us * 1e-6;
  line.runs_s = times[1].median_us * 1e-6;
  if (gpu) {
    auto on_gpu = cuda::time_report_programs(*gpu, *photo, params, std::max(repetitions, 5));
    if (!on_gpu) return tl::make_unexpected(on_gpu.error());
    line.gpu = *on_gpu;
  }
  return line;
}

// R7: a photograph at four widths, similarity, 8 neighbours; programs A to D and the service's own.
Result<void> run_report(const Arguments& a, const Options& options) {
  const auto gpu = cuda::open_first_gpu();
  if (!options.json) {
    std::printf("%s; one core, grey photograph, similarity 10, connectivity 8, processor time\n",
                machine_line().c_str());
    std::printf("B to D: %s\n",
                gpu ? gpu->device()->description().c_str() : gpu.error().message.c_str());
    std::printf("%6s %9s %9s %8s %12s %10s %10s %10s %8s %8s\n", "width", "A, s", "runs, s",
                "A/runs", "report's A/B", "B, ms", "C, ms", "D, ms", "A/B", "B/C");
  }
  for (const cuda::ReportRow& row : cuda::kReportRows) {
    const auto line = measure_report_line(a, options, row.width, gpu);
    if (!line) return tl::make_unexpected(line.error());
    print(*line, row, options.json);
  }
  return {};
}

// Time of labels with boxes, of one picture at one size.
Result<TimedSize> time_size(const Options& options, const char* name, int side) {
  const Image image = make_label_picture(name, side, side, kSeed);
  auto ours = Ours::create(image);
  if (!ours) return tl::make_unexpected(ours.error());
  const int repetitions = options.repetitions > 0 ? options.repetitions : side < 2000 ? 9 : 3;
  const auto times =
      compare({{"both", [&] { ours->label_and_measure(image); }}}, repetitions, Clock::kThreadCpu);
  return TimedSize{static_cast<double>(side) * side, times[0].median_us};
}

void print_fit(const char* name, const LinearFit& fit, bool json) {
  if (json) {
    const nlohmann::ordered_json line = {{"type", "components_fit"},
                                         {"picture", name},
                                         {"start_us", fit.start_us},
                                         {"ns_per_pixel", fit.us_per_pixel * 1e3},
                                         {"largest_deviation", fit.largest_deviation}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%s: %.0f us + %.3f ns a pixel, times at most %.0f %% off\n", name, fit.start_us,
                fit.us_per_pixel * 1e3, fit.largest_deviation * 100);
  }
}

// Time against pixels, 0.1 to 100 megapixels, and the line through the times.
Result<void> run_sizes(const Options& options) {
  constexpr const char* kNames[] = {"noise50", "spots"};
  std::vector<TimedSize> times[std::size(kNames)];
  if (!options.json) {
    std::printf(
        "%s; one core, labels with boxes, microseconds of processor time"
        " (nanoseconds a pixel)\n%7s %20s %20s\n",
        machine_line().c_str(), "Mpixel", kNames[0], kNames[1]);
  }
  for (const int side : kSizeSides) {
    nlohmann::ordered_json line = {{"type", "components_sizes"},
                                   {"megapixels", static_cast<double>(side) * side * 1e-6}};
    if (!options.json) std::printf("%7.1f", static_cast<double>(side) * side * 1e-6);
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const auto time = time_size(options, kNames[i], side);
      if (!time) return tl::make_unexpected(time.error());
      times[i].push_back(*time);
      line[kNames[i] + std::string("_us")] = time->us;
      if (!options.json) std::printf(" %10.0f (%7.3f)", time->us, time->us * 1e3 / time->pixels);
    }
    std::printf("%s\n", options.json ? line.dump().c_str() : "");
    std::fflush(stdout);
  }
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    print_fit(kNames[i], fit_line(times[i]), options.json);
  return {};
}

}  // namespace

void add_components(CLI::App& program, Options& options) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("components", "Connected components beside OpenCV's, on one core");
  command->add_option("--size", arguments->size, "Side of the pictures")
      ->check(tools::between(64, 16384))
      ->capture_default_str();
  command->add_option("--photo", arguments->photo, "The photograph")->capture_default_str();
  command->add_flag("--report", arguments->report, "The report's table instead (minutes)");
  command->add_flag("--sizes", arguments->sizes, "Time against size instead");
  command->callback([arguments, &options] {
    cv::setNumThreads(1);
    const auto done = arguments->report  ? run_report(*arguments, options)
                      : arguments->sizes ? run_sizes(options)
                                         : run_pictures(*arguments, options);
    if (done) return;
    std::fprintf(stderr, "patternctl bench components: %s\n", done.error().message.c_str());
    options.exit_code = 1;
  });
}

}  // namespace patternd::bench
