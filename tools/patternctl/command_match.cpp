// patternctl match: the service's search on pictures, a result line each.
#include "tools/patternctl/command_match.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/backend.h"
#include "daemon/result_line.h"
#include "pipeline/frame_processor.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "pipeline/matcher_plan.h"
#include "pipeline/pattern_calibration.h"
#include "pipeline/rectify.h"
#include "tools/patternctl/draw.h"
#include "tools/patternctl/number_list.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

// Pictures carry no stamps: number n gets n / 25 seconds since 1970, as in a replay.
constexpr std::int64_t kPictureIntervalNs = 1'000'000'000 / 25;

struct MatchArguments {
  std::vector<std::string> patterns;
  std::vector<std::string> images;
  SearchParams params;
  std::vector<double> angles;  // pairs
  std::vector<double> scale;
  std::vector<double> roi;
  std::string polarity = "same";
  std::string calibration;
  std::string backend = "auto";
  int threads = 0;
  std::string draw;
};

// Takes the options that are lists into the search parameters.
void complete(MatchArguments& arguments) {
  SearchParams& params = arguments.params;
  for (std::size_t i = 0; i + 1 < arguments.angles.size(); i += 2) {
    params.angle_deg.push_back({arguments.angles[i], arguments.angles[i + 1]});
  }
  if (!arguments.scale.empty()) params.scale = {arguments.scale[0], arguments.scale[1]};
  if (!arguments.roi.empty()) {
    params.roi = Roi{arguments.roi[0], arguments.roi[1], arguments.roi[2], arguments.roi[3]};
  }
  params.polarity = arguments.polarity == "any" ? Polarity::kAny : Polarity::kSame;
}

// What is out of range, by the name of its option.
Result<void> check_params(const SearchParams& params) {
  auto fault = find_fault(params);
  if (!fault) return {};
  std::replace(fault->key.begin(), fault->key.end(), '_', '-');
  return fail(ErrorCode::kInvalidArgument,
              "--" + fault->key + ": " + fault->value + "; " + fault->accepted);
}

// A match is told by its pattern's name, so no two may share one.
Result<std::vector<PatternSearch>> load_patterns(const MatchArguments& arguments) {
  std::vector<PatternSearch> searches;
  for (const std::string& path : arguments.patterns) {
    auto pattern = load_pattern(path, std::filesystem::path(path).stem().string());
    if (!pattern) return tl::make_unexpected(pattern.error());
    const std::string note = other_calibration(*pattern, path, arguments.calibration);
    if (!note.empty()) std::fprintf(stderr, "patternctl match: note: %s\n", note.c_str());
    for (const PatternSearch& other : searches) {
      if (other.pattern->name != pattern->name) continue;
      return fail(ErrorCode::kInvalidArgument,
                  "--pattern: " + path + ": the name \"" + pattern->name +
                      "\" comes a second time; it must differ for each pattern: rename the file");
    }
    searches.push_back({std::make_shared<const Pattern>(std::move(*pattern)), arguments.params});
  }
  return searches;
}

// Searches pictures one after another; the processor is made anew where their size or format
// changes.
class PictureSearch {
 public:
  PictureSearch(const MatchArguments& arguments, std::vector<PatternSearch> searches,
                std::optional<CameraModel> calibration)
      : arguments_(arguments), searches_(std::move(searches)), calibration_(calibration) {}

  [[nodiscard]] Result<void> run(const std::string& path, std::uint64_t index);

 private:
  [[nodiscard]] cuda::Choice make_processor(const ProcessorConfig& config) const;
  [[nodiscard]] Result<void> prepare(const RawImageView& frame, const std::string& path);
  [[nodiscard]] Result<Image> searched(const ImageView& picture) const;
  [[nodiscard]] Result<void> draw(const ImageView& picture) const;

  const MatchArguments& arguments_;
  std::vector<PatternSearch> searches_;
  std::optional<CameraModel> calibration_;
  std::unique_ptr<FrameProcessor> processor_;
  RawImageView prepared_for_;
  ResultFormat format_;
  FrameResult result_;
};

tl::unexpected<Error> in_picture(const std::string& path, const Error& error) {
  return fail(error.code, path + ": " + error.message);
}

cuda::Choice PictureSearch::make_processor(const ProcessorConfig& config) const {
  using Backend = cuda::ComputeOptions::Backend;
  cuda::ComputeOptions compute;
  compute.backend = arguments_.backend == "cuda"  ? Backend::kCuda
                    : arguments_.backend == "cpu" ? Backend::kCpu
                                                  : Backend::kAuto;
  compute.names.backend = "--backend";
  return cuda::make_processor(compute, config);
}

Result<void> PictureSearch::prepare(const RawImageView& frame, const std::string& path) {
  if (processor_ && frame.width == prepared_for_.width && frame.height == prepared_for_.height &&
      frame.format == prepared_for_.format) {
    return {};
  }
  ProcessorConfig config;
  config.width = frame.width;
  config.height = frame.height;
  config.stride_bytes = frame.stride_bytes;
  config.format = frame.format;
  config.calibration = calibration_;
  config.patterns = searches_;
  config.threads = arguments_.threads;
  auto chosen = make_processor(config);
  if (!chosen) {
    const cuda::Refusal& refusal = chosen.error();
    if (refusal.names_setting) return fail(refusal.code, refusal.message);
    return in_picture(path, refusal);
  }
  processor_ = std::move(chosen->processor);
  format_ = result_format(config);
  prepared_for_ = frame;
  return {};
}

Result<void> PictureSearch::run(const std::string& path, std::uint64_t index) {
  const auto picture = read_image(path);
  if (!picture) return tl::make_unexpected(picture.error());
  const ImageView view = picture->view();
  RawImageView frame;
  frame.data = view.data;
  frame.size_bytes = view.stride_bytes * static_cast<std::size_t>(view.height);
  frame.width = view.width;
  frame.height = view.height;
  frame.stride_bytes = view.stride_bytes;
  frame.format = view.format == PixelFormat::kGray16 ? RawFormat::kY16 : RawFormat::kGrey;
  if (auto ok = prepare(frame, path); !ok) return ok;
  const std::int64_t start_ns = monotonic_ns();
  if (auto ok = processor_->process(frame, result_); !ok) return in_picture(path, ok.error());
  result_.times[Stage::kTotal] = monotonic_ns() - start_ns;
  FrameInfo info;
  info.seq = index;
  info.captured_mono_ns = info.captured_unix_ns =
      static_cast<std::int64_t>(index) * kPictureIntervalNs;
  std::fputs(result_line(format_, info, result_, path).c_str(), stdout);
  if (!arguments_.draw.empty()) return draw(view);
  return {};
}

// The picture that was searched, rectified where there is a calibration; in colour.
Result<Image> PictureSearch::searched(const ImageView& picture) const {
  if (!calibration_) return to_rgb(picture);
  auto rectifier = Rectifier::create(*calibration_, picture.format);
  if (!rectifier) return tl::make_unexpected(rectifier.error());
  auto rectified =
      Image::create(calibration_->output_width(), calibration_->output_height(), picture.format);
  if (!rectified) return rectified;
  rectifier->process(picture, rectified->view(), nullptr);
  return to_rgb(std::as_const(*rectified).view());
}

Result<void> PictureSearch::draw(const ImageView& picture) const {
  auto rgb = searched(picture);
  if (!rgb) return tl::make_unexpected(rgb.error());
  for (const Match& match : result_.matches) {
    draw_match(rgb->view(), match, *searches_[static_cast<std::size_t>(match.pattern)].pattern,
               match.inverted ? Color{255, 128, 0} : Color{0, 255, 0});
  }
  return write_image(arguments_.draw, std::as_const(*rgb).view());
}

Result<void> match(MatchArguments& arguments) {
  complete(arguments);
  if (!arguments.draw.empty())
    if (auto named = check_image_file_name(arguments.draw, true); !named) return named;
  for (const auto* inputs : {&arguments.images, &arguments.patterns})
    if (auto kept = keep_inputs(arguments.draw, *inputs); !kept) return kept;
  if (auto sound = check_params(arguments.params); !sound) return sound;
  auto searches = load_patterns(arguments);
  if (!searches) return tl::make_unexpected(searches.error());
  std::optional<CameraModel> calibration;
  if (!arguments.calibration.empty()) {
    auto model = load_camera_model(arguments.calibration);
    if (!model) return tl::make_unexpected(model.error());
    calibration = *model;
  }
  if (!arguments.draw.empty() && arguments.images.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "--draw: writes one picture, but " +
                                                 std::to_string(arguments.images.size()) +
                                                 " were given; call it once for each");
  }
  PictureSearch search(arguments, std::move(*searches), calibration);
  for (std::size_t i = 0; i < arguments.images.size(); ++i) {
    if (auto ok = search.run(arguments.images[i], i); !ok) return ok;
  }
  return {};
}

}  // namespace

void add_match(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<MatchArguments>();
  SearchParams& params = arguments->params;
  CLI::App* command = program.add_subcommand("match", "Finds patterns in pictures");
  command
      ->add_option("--pattern", arguments->patterns,
                   "A pattern file from teach, or a plain picture; again for more")
      ->required()
      ->allow_extra_args(false);
  command->add_option("IMAGE", arguments->images, "Pictures: PNG, JPEG or PNM")->required();
  add_number_lists(command, "--angle", arguments->angles, 2, "A,B",
                   "Degrees from A to B; again for more ranges [all]");
  add_number_list(command, "--scale", arguments->scale, 2, "A,B", "Scales from A to B [1,1]");
  add_number_list(command, "--roi", arguments->roi, 4, "X,Y,W,H",
                  "Where the reference point may lie [all]");
  command->add_option("--min-score", params.min_score, "Least score, NCC")->capture_default_str();
  command->add_option("--max-matches", params.max_matches, "Most matches a pattern")
      ->capture_default_str();
  command
      ->add_option("--max-overlap", params.max_overlap,
                   "Overlap at which the better match stays alone")
      ->capture_default_str();
  command
      ->add_option("--min-visible", params.min_visible,
                   "Least share of the pattern inside the picture")
      ->capture_default_str();
  command
      ->add_option("--min-contrast", params.min_contrast,
                   "Least standard deviation, grey levels of 8 bit")
      ->capture_default_str();
  command->add_option("--polarity", arguments->polarity, "same, or any: inverted ones too")
      ->check(CLI::IsMember({"same", "any"}))
      ->capture_default_str();
  command
      ->add_option("--symmetry", params.symmetry, "n: the pattern looks alike after 360/n degrees")
      ->capture_default_str();
  command->add_option("--calibration", arguments->calibration,
                      "Rectify the pictures by this file first");
  command->add_option("--backend", arguments->backend, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Threads; 0: as many as there are")
      ->check(between(0, 256))
      ->capture_default_str();
  command->add_option("--draw", arguments->draw,
                      "Write the picture with the matches drawn in (one IMAGE)");
  command->callback([arguments, &context] {
    if (auto ok = match(*arguments); !ok) context.fail("match", ok.error());
  });
}

}  // namespace patternd::tools
