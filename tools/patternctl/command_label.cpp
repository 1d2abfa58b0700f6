// patternctl label: connected components of one picture, as labels, statistics, or both.
#include "tools/patternctl/command_label.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/configuration_keys.h"
#include "daemon/result_line.h"
#include "pipeline/components.h"
#include "pipeline/components_selection.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "tools/patternctl/label_cuda.h"
#include "tools/patternctl/label_files.h"
#include "tools/patternctl/number_list.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

struct LabelArguments {
  BlobParams params;
  bool otsu = false;
  std::vector<double> adaptive;
  std::vector<double> roi;
  std::string method = "runs";
  std::string backend = "auto";
  std::int64_t largest = 0;  // 0: all
  int threads = 1;
  bool statistics = false;
  std::string draw;
  std::string colours = "distinct";
  std::string input;
  std::string output;
  CLI::Option* by_threshold = nullptr;
  CLI::Option* by_similarity = nullptr;
};

// As in the configuration (daemon/configuration_blobs.cpp).
Result<void> check_adaptive(double radius, double offset) {
  if (!(radius >= 1 && radius <= 1000) || radius != static_cast<int>(radius))
    return fail(ErrorCode::kInvalidArgument,
                "--adaptive: the radius must be a whole number, 1 to 1000");
  const double most = configuration_key("blobs.threshold").high;
  if (offset >= -most && offset <= most) return {};
  return fail(ErrorCode::kInvalidArgument,
              "--adaptive: the offset must be -65535 to 65535 grey levels");
}

Result<void> check_order(const BlobParams& p) {
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument,
                "--max-" + what + ": is less than the least; it must not be below --min-" + what);
  };
  if (p.max_area < p.min_area) return wrong("area");
  if (p.max_width < p.min_width) return wrong("width");
  if (p.max_height < p.min_height) return wrong("height");
  if (p.max_elongation < p.min_elongation) return wrong("elongation");
  return {};
}

Result<BlobParams> params_of(const LabelArguments& a) {
  BlobParams params = a.params;
  using Mode = BlobParams::Mode;
  if (a.otsu) {
    params.mode = Mode::kOtsu;
  } else if (!a.adaptive.empty()) {
    params.mode = Mode::kAdaptive;
    if (auto ok = check_adaptive(a.adaptive[0], a.adaptive[1]); !ok)
      return tl::make_unexpected(ok.error());
    params.adaptive_radius = static_cast<int>(a.adaptive[0]);
    params.adaptive_offset = a.adaptive[1];
  } else if (a.by_similarity->count() > 0) {
    params.mode = Mode::kSimilarity;
    if (params.below) {
      return fail(
          ErrorCode::kInvalidArgument,
          "--below: stands beside --similarity, which has no threshold; keep one of the two");
    }
  }
  if (auto ok = check_order(params); !ok) return tl::make_unexpected(ok.error());
  if (!a.roi.empty()) {
    params.roi = Roi{a.roi[0], a.roi[1], a.roi[2], a.roi[3]};
    if (!(params.roi->width > 0 && params.roi->height > 0)) {
      return fail(ErrorCode::kInvalidArgument,
                  "--roi: has no area; it must be X,Y,W,H with a width and height above 0");
    }
  }
  return params;
}

// Leaves out the components that `keep` does not name (one flag a blob), and numbers the others
// anew.
void keep_some(Labelled& labelled, const std::vector<bool>& keep) {
  std::vector<std::int32_t> renumbered(labelled.blobs.size() + 1, 0);
  std::vector<Blob> kept;
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    kept.push_back(labelled.blobs[i]);
    kept.back().id = static_cast<std::int64_t>(kept.size());
    renumbered[i + 1] = static_cast<std::int32_t>(kept.size());
  }
  for (int y = 0; y < labelled.labels.height(); ++y) {
    auto* row = labelled.labels.row<std::int32_t>(y);
    std::transform(row, row + labelled.labels.width(), row,
                   [&](std::int32_t label) { return renumbered[static_cast<std::size_t>(label)]; });
  }
  labelled.blobs = std::move(kept);
}

// The `most` largest, of equal ones the first.
void keep_largest(Labelled& labelled, std::size_t most) {
  if (labelled.blobs.size() <= most) return;
  std::vector<std::size_t> order(labelled.blobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Blob& one = labelled.blobs[a];
    const Blob& other = labelled.blobs[b];
    return one.area_px != other.area_px ? one.area_px > other.area_px : a < b;
  });
  std::vector<bool> keep(order.size(), false);
  for (std::size_t i = 0; i < most; ++i) keep[order[i]] = true;
  keep_some(labelled, keep);
}

Result<Labelled> label_on_cpu(const ImageView& image, const BlobParams& params,
                              const LabelArguments& a) {
  ThreadPool pool(a.threads);
  LabelOptions options;
  options.method = a.method == "propagation" ? LabelMethod::kPropagation : LabelMethod::kRuns;
  options.labels = true;
  options.pool = &pool;
  auto labeller =
      ComponentLabeller::create(image.width, image.height, image.format, params, options);
  if (!labeller) return tl::make_unexpected(labeller.error());
  auto labels = Image::create(image.width, image.height, PixelFormat::kLabel32);
  if (!labels) return tl::make_unexpected(labels.error());
  if (auto ok = labeller->process(image, labels->view()); !ok)
    return tl::make_unexpected(ok.error());
  Labelled labelled;
  labelled.labels = std::move(*labels);
  labelled.blobs.reserve(static_cast<std::size_t>(labeller->count()));
  for (std::int64_t label = 1; label <= labeller->count(); ++label)
    labelled.blobs.push_back(labeller->blob(label));
  return labelled;
}

Result<Labelled> label_filtered_on_cuda(const ImageView& image, const BlobParams& params,
                                        const std::string& method) {
  auto labelled = label_on_cuda(image, params, method);
  if (!labelled || !components::has_filters(params)) return labelled;
  std::vector<bool> keep;
  for (const Blob& blob : labelled->blobs) keep.push_back(components::passes(blob, params));
  keep_some(*labelled, keep);
  return labelled;
}

Result<Labelled> label_picture(const LabelArguments& a) {
  auto params = params_of(a);
  if (!params) return tl::make_unexpected(params.error());
  const bool cuda_alone = a.method == "equivalence" || a.method == "texture";
  if (cuda_alone && a.backend == "cpu") {
    return fail(
        ErrorCode::kInvalidArgument,
        "--method " + a.method + " runs on the GPU; the CPU's methods are runs and propagation");
  }
  const bool similarity = params->mode == BlobParams::Mode::kSimilarity;
  auto image = read_image(a.input, similarity ? ReadAs::kAsIs : ReadAs::kGray);
  if (!image) return tl::make_unexpected(image.error());
  // One picture is labelled sooner than a GPU is woken.
  const bool on_cuda = a.backend == "cuda" || cuda_alone;
  auto labelled = on_cuda ? label_filtered_on_cuda(image->view(), *params, a.method)
                          : label_on_cpu(image->view(), *params, a);
  if (labelled && a.largest > 0) keep_largest(*labelled, static_cast<std::size_t>(a.largest));
  return labelled;
}

// A blob as in a result line, and what only this command tells of it.
void write_whole_blob(LineWriter& line, const Blob& blob) {
  write_blob(line, blob);
  line.cut(line.size() - 1);  // its '}'
  line.raw(",\"peak_x\":");
  line.integer(static_cast<std::int64_t>(blob.peak_x));
  line.raw(",\"peak_y\":");
  line.integer(static_cast<std::int64_t>(blob.peak_y));
  line.raw(",\"angle_deg\":");
  line.real(blob.angle_deg, 3);
  line.raw(",\"major_px\":");
  line.real(blob.major_px, 3);
  line.raw(",\"minor_px\":");
  line.real(blob.minor_px, 3);
  line.raw(blob.touches_border ? ",\"touches_border\":true}" : ",\"touches_border\":false}");
}

// {"type":"labels","count":N,"blobs":[…]}, each blob as in a result line. A line of a million blobs
// is long, so it goes out blob by blob.
void print_json(const std::vector<Blob>& blobs) {
  std::printf("{\"type\":\"labels\",\"count\":%zu,\"blobs\":[", blobs.size());
  char memory[1024];
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    LineWriter writer(memory, sizeof memory);
    if (i > 0) writer.raw(",");
    write_whole_blob(writer, blobs[i]);
    std::fwrite(writer.view().data(), 1, writer.view().size(), stdout);
  }
  std::printf("]}\n");
}

void print_text(const std::vector<Blob>& blobs, bool statistics) {
  std::printf("%zu component%s\n", blobs.size(), blobs.size() == 1 ? "" : "s");
  if (!statistics || blobs.empty()) return;
  std::printf("%8s %10s %10s %10s %7s %7s %7s %7s %9s %7s %7s %7s %8s %9s %9s %7s\n", "label",
              "area_px", "x_px", "y_px", "left", "top", "width", "height", "mean", "peak", "peak_x",
              "peak_y", "angle", "major_px", "minor_px", "border");
  for (const Blob& b : blobs) {
    std::printf(
        "%8lld %10lld %10.3f %10.3f %7d %7d %7d %7d %9.2f %7.0f %7d %7d %8.2f %9.2f %9.2f %7s\n",
        static_cast<long long>(b.id), static_cast<long long>(b.area_px), b.x_px, b.y_px, b.left,
        b.top, b.width, b.height, b.mean, b.peak, b.peak_x, b.peak_y, b.angle_deg, b.major_px,
        b.minor_px, b.touches_border ? "yes" : "no");
  }
}

Result<void> write_pictures(const LabelArguments& a, const Labelled& labelled) {
  const ImageView labels = labelled.labels.view();
  if (!a.output.empty())
    if (auto ok = write_label_file(a.output, labels); !ok) return ok;
  if (a.draw.empty()) return {};
  auto picture =
      colour_labels(labels, a.colours == "hash" ? LabelColours::kHash : LabelColours::kDistinct);
  if (!picture) return tl::make_unexpected(picture.error());
  return write_image(a.draw, picture->view());
}

Result<void> label(const LabelArguments& a, bool json) {
  if (!a.output.empty())
    if (auto ok = check_label_file_name(a.output); !ok) return ok;
  if (!a.draw.empty())
    if (auto ok = check_image_file_name(a.draw, true); !ok) return ok;
  for (const std::string& written : {a.output, a.draw})
    if (auto ok = keep_inputs(written, {a.input}); !ok) return ok;
  auto labelled = label_picture(a);
  if (!labelled) return tl::make_unexpected(labelled.error());
  if (auto ok = write_pictures(a, *labelled); !ok) return ok;
  if (json)
    print_json(labelled->blobs);
  else
    print_text(labelled->blobs, a.statistics);
  return {};
}

// A number within the bounds of its key in the configuration.
template <class Value>
CLI::Option* add_bounded(CLI::App* command, const std::string& name, Value& value,
                         std::string_view key, const std::string& description) {
  const ConfigurationKey& row = configuration_key(key);
  return command->add_option(name, value, description)->check(between(row.low, row.high));
}

void add_foreground_options(CLI::App* command, LabelArguments& a) {
  auto* what = command->add_option_group("Foreground", "What belongs to components; one of");
  a.by_threshold = add_bounded(what, "--threshold", a.params.threshold, "blobs.threshold",
                               "Pixels above this grey level");
  what->add_flag("--otsu", a.otsu, "Pixels above Otsu's threshold");
  add_number_list(what, "--adaptive", a.adaptive, 2, "RADIUS,OFFSET",
                  "Pixels above the mean of the square around them, plus OFFSET (--below: below "
                  "it, minus OFFSET)");
  a.by_similarity = add_bounded(what, "--similarity", a.params.similarity, "blobs.similarity",
                                "Every pixel; neighbours connect whose grey (colour: largest "
                                "channel) difference is at most this");
  what->require_option(1);
  command->add_flag("--below", a.params.below, "Pixels below the threshold instead of above");
  command->add_option("--connectivity", a.params.connectivity, "Neighbours of a pixel")
      ->check(CLI::IsMember({4, 8}))
      ->capture_default_str();
}

void add_filter_options(CLI::App* command, LabelArguments& a) {
  BlobParams& p = a.params;
  add_bounded(command, "--min-area", p.min_area, "blobs.min_area",
              "Leave out components of fewer pixels")
      ->capture_default_str();
  add_bounded(command, "--max-area", p.max_area, "blobs.max_area",
              "Leave out components of more pixels");
  add_bounded(command, "--min-width", p.min_width, "blobs.min_width",
              "Of the bounding box, pixels");
  add_bounded(command, "--max-width", p.max_width, "blobs.max_width",
              "Of the bounding box, pixels");
  add_bounded(command, "--min-height", p.min_height, "blobs.min_height",
              "Of the bounding box, pixels");
  add_bounded(command, "--max-height", p.max_height, "blobs.max_height",
              "Of the bounding box, pixels");
  add_bounded(command, "--min-elongation", p.min_elongation, "blobs.min_elongation",
              "Major over minor axis");
  add_bounded(command, "--max-elongation", p.max_elongation, "blobs.max_elongation",
              "Major over minor axis");
  add_bounded(command, "--min-peak", p.min_peak, "blobs.min_peak",
              "Leave out components without a pixel this bright");
  command->add_option("--largest", a.largest, "Keep so many, the largest")->check(above_zero());
  add_number_list(command, "--roi", a.roi, 4, "X,Y,W,H", "Label this part alone");
}

}  // namespace

void add_label(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<LabelArguments>();
  LabelArguments& a = *arguments;
  CLI::App* command =
      program.add_subcommand("label", "Labels the connected components of a picture");
  add_foreground_options(command, a);
  add_filter_options(command, a);
  command
      ->add_option("--method", a.method,
                   "runs: the service's own; for measuring: propagation, and on a GPU equivalence "
                   "and texture")
      ->check(CLI::IsMember({"runs", "propagation", "equivalence", "texture"}))
      ->capture_default_str();
  command
      ->add_option("--backend", a.backend,
                   "Where to label; auto: the CPU, unless the method needs a GPU")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", a.threads, "0: as many as there are")
      ->check(between(0, 1024))
      ->capture_default_str();
  command->add_flag("--stats", a.statistics, "Print a line a component");
  command->add_option("--draw", a.draw, "Write a picture with a colour a component");
  command
      ->add_option("--colours", a.colours,
                   "distinct: neighbours differ; hash: remainders of the place of its first pixel")
      ->check(CLI::IsMember({"distinct", "hash"}))
      ->capture_default_str();
  command->add_option("IN", a.input, "PNG, JPEG, PGM or PPM, also plain text")->required();
  command->add_option("LABELS", a.output,
                      "Labels: .npy (32 bit), .png (16 bit) or .pgm (plain text)");
  command->callback([arguments, &context] {
    if (auto ok = label(*arguments, context.json); !ok) context.fail("label", ok.error());
  });
}

}  // namespace patternd::tools
