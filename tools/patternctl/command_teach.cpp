// patternctl teach: a rectangle of a picture becomes a pattern file.
#include "tools/patternctl/command_teach.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "calibration/camera_model.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "pipeline/matcher.h"
#include "pipeline/pattern.h"
#include "pipeline/rectify.h"
#include "pipeline/utf8.h"
#include "tools/patternctl/number_list.h"

namespace patternd::tools {
namespace {

struct TeachArguments {
  std::string image;
  std::vector<double> roi;
  std::string mask;
  std::vector<double> ref;
  std::string calibration;
  std::string output;
  std::optional<int> levels;
  std::optional<double> angle_step_deg;
};

// `file` as it must be written into `naming_file`, whose relative paths count from its own folder.
std::string path_from(const std::string& naming_file, const std::string& file) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(naming_file, ignored).parent_path();
  return std::filesystem::absolute(file, ignored).lexically_relative(folder).string();
}

// The rectangle in whole pixels, inside the picture.
Result<ImageView> cut(const ImageView& picture, const std::vector<double>& roi) {
  for (const double value : roi) {
    if (!(std::abs(value) <= kMaxImageSide) || value != std::floor(value)) {
      return fail(ErrorCode::kInvalidArgument,
                  "--roi: X,Y,WIDTH,HEIGHT are whole numbers of pixels");
    }
  }
  const int x = static_cast<int>(roi[0]);
  const int y = static_cast<int>(roi[1]);
  const int width = static_cast<int>(roi[2]);
  const int height = static_cast<int>(roi[3]);
  if (x < 0 || y < 0 || width < 1 || height < 1 || x + width > picture.width ||
      y + height > picture.height) {
    return fail(ErrorCode::kInvalidArgument,
                "--roi: " + std::to_string(x) + "," + std::to_string(y) + "," +
                    std::to_string(width) + "," + std::to_string(height) +
                    " does not lie inside the picture of " + std::to_string(picture.width) + "x" +
                    std::to_string(picture.height));
  }
  return picture.crop(x, y, width, height);
}

// A mask as large as the picture is cut like it; one as large as the rectangle is taken as it is.
Result<Image> load_mask(const TeachArguments& arguments, const ImageView& picture,
                        const ImageView& part) {
  auto mask = read_image(arguments.mask);
  if (!mask) return mask;
  if (mask->format() != PixelFormat::kGray8) {
    return fail(ErrorCode::kInvalidArgument, arguments.mask + ": a mask is an 8-bit picture");
  }
  if (mask->width() == part.width && mask->height() == part.height) return mask;
  if (mask->width() == picture.width && mask->height() == picture.height) {
    const auto view = cut(mask->view(), arguments.roi);
    if (!view) return tl::make_unexpected(view.error());
    return Image::copy_of(*view);
  }
  return fail(ErrorCode::kInvalidArgument,
              arguments.mask + ": is " + std::to_string(mask->width()) + "x" +
                  std::to_string(mask->height()) + "; the size of the picture (" +
                  std::to_string(picture.width) + "x" + std::to_string(picture.height) +
                  ") or of the rectangle (" + std::to_string(part.width) + "x" +
                  std::to_string(part.height) + ") is expected");
}

// How long a search of the picture takes on one thread of this machine, in milliseconds: the
// shorter of two, of which the first finds the caches cold. A prediction by counting would have to
// know the processor, and the picture, which decides how many candidates are followed.
double search_ms(Matcher& matcher, const ImageView& picture) {
  constexpr std::int64_t kLongNs = 500'000'000;
  std::vector<Match> matches;
  std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 2 && (i == 0 || best_ns < kLongNs); ++i) {
    StageTimes times;
    const std::int64_t start_ns = monotonic_ns();
    matcher.match(picture, matches, times);
    best_ns = std::min(best_ns, monotonic_ns() - start_ns);
  }
  return static_cast<double>(best_ns) * 1e-6;
}

void print_taught(const Pattern& pattern, const SearchCost& cost, double time_ms,
                  const ImageView& picture, const std::string& output, bool json) {
  if (json) {
    nlohmann::ordered_json line = {{"type", "taught"},
                                   {"file", output},
                                   {"name", pattern.name},
                                   {"width", pattern.picture.width()},
                                   {"height", pattern.picture.height()},
                                   {"levels", pattern.levels},
                                   {"angle_step_deg", pattern.angle_step_deg},
                                   {"contrast", pattern.contrast},
                                   {"memory_bytes", cost.memory_bytes},
                                   {"operations", cost.operations},
                                   {"search_ms", time_ms}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf(
      "%s: %dx%d pixels, contrast %.1f grey levels\n"
      "  levels          %d\n"
      "  angle step      %.2f deg at the coarsest level\n"
      "  a search of a %dx%d picture over all angles takes %.1f MB and about %.0f million "
      "multiply-adds,\n"
      "                  %.3g ms here on one thread\n",
      output.c_str(), pattern.picture.width(), pattern.picture.height(), pattern.contrast,
      pattern.levels, pattern.angle_step_deg, picture.width, picture.height,
      static_cast<double>(cost.memory_bytes) * 1e-6, cost.operations * 1e-6, time_ms);
}

// Its name is the file's, and the file names its picture.
Result<std::string> name_of_output(const std::string& output) {
  std::string name = std::filesystem::path(output).stem().string();
  if (is_name(name)) return name;
  return fail(ErrorCode::kInvalidArgument, "--output: the pattern's name would be " +
                                               in_quotes(name) + "; it " + name_rule() +
                                               " of UTF-8");
}

// Before anything is read: a picture is not lost to its own pattern.
Result<void> keep_what_is_read(const TeachArguments& arguments) {
  const auto files = pattern_files(arguments.output, !arguments.mask.empty());
  if (!files) return tl::make_unexpected(files.error());
  for (const std::string& written : {files->yaml, files->picture, files->mask}) {
    auto kept = keep_inputs(written, {arguments.image, arguments.mask, arguments.calibration});
    if (!kept) return kept;
  }
  return {};
}

Result<void> teach(const TeachArguments& arguments, bool json) {
  const auto name = name_of_output(arguments.output);
  if (!name) return tl::make_unexpected(name.error());
  if (auto kept = keep_what_is_read(arguments); !kept) return kept;
  auto picture = read_image(arguments.image);
  if (!picture) return tl::make_unexpected(picture.error());
  TeachOptions options;
  options.levels = arguments.levels;
  options.angle_step_deg = arguments.angle_step_deg;
  if (!arguments.ref.empty()) {
    options.ref_x = arguments.ref[0];
    options.ref_y = arguments.ref[1];
  }
  if (!arguments.calibration.empty()) {
    auto rectified = rectify_picture(arguments.calibration, picture->view());
    if (!rectified) return tl::make_unexpected(rectified.error());
    picture = std::move(rectified);
    options.calibration = path_from(arguments.output, arguments.calibration);
  }
  const ImageView view = std::as_const(*picture).view();
  const auto part = cut(view, arguments.roi);
  if (!part) return tl::make_unexpected(part.error());
  Image mask;
  if (!arguments.mask.empty()) {
    auto loaded = load_mask(arguments, view, *part);
    if (!loaded) return tl::make_unexpected(loaded.error());
    mask = std::move(*loaded);
  }
  auto taught = teach_pattern(*name, *part, std::as_const(mask).view(), options);
  if (!taught) return tl::make_unexpected(taught.error());
  if (auto ok = save_pattern(arguments.output, *taught); !ok) return ok;
  const auto pattern = std::make_shared<const Pattern>(std::move(*taught));
  auto matcher =
      Matcher::create({view.width, view.height, view.format, {{pattern, {}}}, {}}, nullptr);
  if (!matcher) return tl::make_unexpected(matcher.error());
  print_taught(*pattern, matcher->cost(), search_ms(*matcher, view), view, arguments.output, json);
  return {};
}

}  // namespace

Result<Image> rectify_picture(const std::string& calibration, const ImageView& picture) {
  const auto model = load_camera_model(calibration);
  if (!model) return tl::make_unexpected(model.error());
  if (model->image_width != picture.width || model->image_height != picture.height) {
    return fail(ErrorCode::kInvalidArgument,
                calibration + ": is for pictures of " + std::to_string(model->image_width) + "x" +
                    std::to_string(model->image_height) + ", this one is " +
                    std::to_string(picture.width) + "x" + std::to_string(picture.height));
  }
  const auto rectifier = Rectifier::create(*model, picture.format);
  if (!rectifier) return tl::make_unexpected(rectifier.error());
  auto rectified = Image::create(model->output_width(), model->output_height(), picture.format);
  if (rectified) rectifier->process(picture, rectified->view(), nullptr);
  return rectified;
}

void add_teach(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<TeachArguments>();
  CLI::App* command = program.add_subcommand("teach", "Makes a pattern of a part of a picture");
  command->add_option("IMAGE", arguments->image, "The picture: PNG, JPEG or PNM")->required();
  add_number_list(command, "--roi", arguments->roi, 4, "X,Y,W,H",
                  "Where the pattern lies in IMAGE, pixels")
      ->required();
  command->add_option(
      "--mask", arguments->mask,
      "Picture whose black pixels do not count, as large as IMAGE or the rectangle");
  add_number_list(command, "--ref", arguments->ref, 2, "X,Y",
                  "Reference point in pattern pixels [the centre]");
  command->add_option("--calibration", arguments->calibration, "Rectify IMAGE by this file first");
  command->add_option("--levels", arguments->levels,
                      "Pyramid levels above level 0; default: chosen");
  command->add_option("--angle-step", arguments->angle_step_deg,
                      "Degrees at the coarsest level; default: chosen");
  command
      ->add_option("-o,--output", arguments->output,
                   "The pattern file to write: NAME.yaml; NAME.png, and NAME_mask.png with --mask, "
                   "are written beside it")
      ->required();
  command->callback([arguments, &context] {
    if (auto ok = teach(*arguments, context.json); !ok) context.fail("teach", ok.error());
  });
}

}  // namespace patternd::tools
