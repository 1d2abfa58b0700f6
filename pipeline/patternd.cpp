// The C API over the C++ library: checks arguments, turns errors into codes, lets no exception out.
#include "pipeline/patternd.h"

#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "calibration/camera_model.h"
#include "generated_version.h"
#include "pipeline/components.h"
#include "pipeline/matcher.h"
#include "pipeline/pattern.h"
#include "pipeline/rectify.h"
#include "pipeline/thread_pool.h"
#include "pipeline/utf8.h"

struct patternd_rectifier {
  patternd::CameraModel model;
  patternd::PixelFormat format;
  patternd::Rectifier rectifier;
};

struct patternd_pattern {
  std::shared_ptr<const patternd::Pattern> pattern;
};

struct patternd_matcher {
  std::unique_ptr<patternd::ThreadPool> pool;
  patternd::Matcher matcher;
  std::vector<patternd::Match> matches;
  int width;
  int height;
  patternd::PixelFormat format;
};

struct patternd_labeller {
  std::unique_ptr<patternd::ThreadPool> pool;
  patternd::ComponentLabeller labeller;
};

namespace patternd {
namespace {

thread_local std::string last_error;

patternd_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return PATTERND_INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return PATTERND_NOT_FOUND;
    case ErrorCode::kIo:
      return PATTERND_IO;
    case ErrorCode::kParse:
      return PATTERND_PARSE;
    case ErrorCode::kUnsupported:
      return PATTERND_UNSUPPORTED;
    case ErrorCode::kExhausted:
      return PATTERND_EXHAUSTED;
    default:
      return PATTERND_INTERNAL;
  }
}

// Runs `body`, which returns Result<void>, and makes a status of whatever comes of it.
template <class Body>
patternd_status guarded(Body&& body) {
  try {
    last_error.clear();
    const Result<void> result = body();
    if (result) return PATTERND_OK;
    last_error = result.error().message;
    return status_of(result.error().code);
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";  // short enough to need no memory itself
    return PATTERND_EXHAUSTED;
  } catch (const std::exception& fault) {
    last_error = fault.what();
    return PATTERND_INTERNAL;
  }
}

tl::unexpected<Error> null_argument(const char* name) {
  return fail(ErrorCode::kInvalidArgument, std::string(name) + " is NULL");
}

// A file's name that the caller gave.
Result<void> check_path(const char* path) {
  if (path == nullptr) return null_argument("path");
  if (*path != '\0') return {};
  return fail(ErrorCode::kInvalidArgument, "path is empty; a file's name is expected");
}

Result<void> check_threads(std::int32_t threads) {
  constexpr std::int32_t kMost = 256;
  if (threads >= 0 && threads <= kMost) return {};
  return fail(ErrorCode::kInvalidArgument,
              "threads is " + std::to_string(threads) + "; 0 to 256 is expected");
}

// A struct that its _init function filled.
Result<void> check_struct(const std::string& name, std::size_t size, std::size_t expected,
                          const char* init) {
  if (size == expected) return {};
  return fail(ErrorCode::kInvalidArgument, name + ".struct_size is " + std::to_string(size) +
                                               "; fill it with " + init + " first");
}

Result<PixelFormat> format_of(int format) {
  switch (format) {
    case PATTERND_GRAY8:
      return PixelFormat::kGray8;
    case PATTERND_GRAY16:
      return PixelFormat::kGray16;
    case PATTERND_GRAYF32:
      return PixelFormat::kGrayF32;
    default:
      return fail(ErrorCode::kInvalidArgument,
                  "format is " + std::to_string(format) +
                      "; PATTERND_GRAY8, PATTERND_GRAY16 or PATTERND_GRAYF32 is expected");
  }
}

// The view of a C picture, checked; `Byte` as in BasicImageView.
template <class Byte, class CImage>
Result<BasicImageView<Byte>> view_of(const CImage* image, const char* name) {
  if (image == nullptr) return null_argument(name);
  const auto format = format_of(image->format);
  if (!format) return fail(format.error().code, std::string(name) + ": " + format.error().message);
  const BasicImageView<Byte> view{static_cast<Byte*>(image->data), image->width, image->height,
                                  image->stride_bytes, *format};
  if (auto ok = check_view(view, name); !ok) return tl::make_unexpected(ok.error());
  return view;
}

Result<void> expect_view(const ImageView& view, int width, int height, PixelFormat format,
                         const char* name) {
  if (view.width == width && view.height == height && view.format == format) return {};
  return fail(ErrorCode::kInvalidArgument, std::string(name) + " is " + std::to_string(view.width) +
                                               "x" + std::to_string(view.height) + " " +
                                               name_of(view.format) + "; " + std::to_string(width) +
                                               "x" + std::to_string(height) + " " +
                                               name_of(format) + " is expected");
}

// The two pictures share no byte.
Result<void> expect_apart(const ImageView& a, const ImageView& b, const char* message) {
  const auto begin = [](const ImageView& view) {
    return reinterpret_cast<std::uintptr_t>(view.data);
  };
  const auto end = [&begin](const ImageView& view) {
    return begin(view) + static_cast<std::uintptr_t>(view.height - 1) * view.stride_bytes +
           static_cast<std::uintptr_t>(view.width) * bytes_per_pixel(view.format);
  };
  if (end(a) <= begin(b) || end(b) <= begin(a)) return {};
  return fail(ErrorCode::kInvalidArgument, message);
}

Result<BlobParams> blob_params_of(const patternd_label_params& from) {
  using Mode = BlobParams::Mode;
  constexpr Mode kModes[] = {Mode::kThreshold, Mode::kOtsu, Mode::kAdaptive, Mode::kSimilarity};
  if (from.foreground < PATTERND_BY_THRESHOLD || from.foreground > PATTERND_BY_SIMILARITY) {
    return fail(ErrorCode::kInvalidArgument,
                "foreground is " + std::to_string(from.foreground) +
                    "; one of patternd_foreground, 0 to 3, is expected");
  }
  BlobParams params;
  params.mode = kModes[from.foreground];
  params.below = from.below != 0;
  params.threshold = from.threshold;
  params.adaptive_radius = from.local_mean_radius;
  params.adaptive_offset = from.local_mean_offset;
  params.similarity = from.similarity;
  params.connectivity = from.connectivity;
  params.min_area = from.min_area;
  if (from.roi[2] != 0) params.roi = Roi{from.roi[0], from.roi[1], from.roi[2], from.roi[3]};
  return params;
}

patternd_blob c_blob_of(const Blob& from) {
  return {from.area_px,
          from.x_px,
          from.y_px,
          from.left,
          from.top,
          from.width,
          from.height,
          from.mean,
          from.peak,
          from.peak_x,
          from.peak_y,
          from.angle_deg,
          from.major_px,
          from.minor_px,
          from.touches_border ? 1 : 0,
          0};
}

SearchParams search_params_of(const patternd_search_params& from) {
  SearchParams params;
  params.min_score = from.min_score;
  params.max_matches = from.max_matches;
  for (std::size_t i = 0; from.angle_ranges_deg != nullptr && i < from.angle_range_count; ++i) {
    params.angle_deg.push_back({from.angle_ranges_deg[2 * i], from.angle_ranges_deg[2 * i + 1]});
  }
  params.scale = {from.scale_low, from.scale_high};
  params.max_overlap = from.max_overlap;
  params.min_visible = from.min_visible;
  params.min_contrast = from.min_contrast;
  params.polarity = from.polarity_any != 0 ? Polarity::kAny : Polarity::kSame;
  params.symmetry = from.symmetry;
  if (from.levels >= 0) params.levels = from.levels;
  if (from.angle_step_deg != 0) params.angle_step_deg = from.angle_step_deg;
  if (from.roi[2] != 0) params.roi = Roi{from.roi[0], from.roi[1], from.roi[2], from.roi[3]};
  return params;
}

patternd_match c_match_of(const Match& match) {
  return {match.pattern,  match.inverted ? 1 : 0, match.x_px,
          match.y_px,     match.angle_deg,        match.scale,
          match.score,    match.runner_up,        match.visible,
          match.x_std_px, match.y_std_px,         match.angle_std_deg};
}

Result<std::vector<PatternSearch>> searches_of(patternd_pattern* const* patterns,
                                               const patternd_search_params* params,
                                               std::size_t count) {
  if (patterns == nullptr) return null_argument("patterns");
  if (count == 0)
    return fail(ErrorCode::kInvalidArgument,
                "pattern_count is 0; at least one pattern is expected");
  std::vector<PatternSearch> searches;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string where = "patterns[" + std::to_string(i) + "]";
    if (patterns[i] == nullptr) return null_argument(where.c_str());
    PatternSearch search{patterns[i]->pattern, {}};
    if (params != nullptr) {
      const std::string which = "params[" + std::to_string(i) + "]";
      if (auto ok = check_struct(which, params[i].struct_size, sizeof *params,
                                 "patternd_search_params_init");
          !ok) {
        return tl::make_unexpected(ok.error());
      }
      if (params[i].levels < -1) {
        return fail(ErrorCode::kInvalidArgument,
                    which + ".levels is " + std::to_string(params[i].levels) +
                        "; -1 (the taught ones) or a number of levels is expected");
      }
      search.params = search_params_of(params[i]);
    }
    searches.push_back(std::move(search));
  }
  return searches;
}

template <class Transform>
patternd_status transform_points(const patternd_rectifier* rectifier, double* xy, std::size_t count,
                                 Transform&& transform) {
  return guarded([&]() -> Result<void> {
    if (rectifier == nullptr) return null_argument("rectifier");
    if (xy == nullptr && count > 0) return null_argument("xy");
    for (std::size_t i = 0; i < count; ++i) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const Point2 to = transform(Point2{xy[2 * i], xy[2 * i + 1]}).value_or(Point2{nan, nan});
      xy[2 * i] = to.x;
      xy[2 * i + 1] = to.y;
    }
    return {};
  });
}

}  // namespace
}  // namespace patternd

using patternd::ErrorCode;
using patternd::guarded;
using patternd::null_argument;
using patternd::Result;

const char* patternd_version(void) { return PATTERND_VERSION; }

const char* patternd_last_error(void) { return patternd::last_error.c_str(); }

patternd_status patternd_rectifier_load(const char* path, patternd_format format,
                                        patternd_rectifier** rectifier) {
  return guarded([&]() -> Result<void> {
    if (auto ok = patternd::check_path(path); !ok) return ok;
    if (rectifier == nullptr) return null_argument("rectifier");
    const auto pixel_format = patternd::format_of(format);
    if (!pixel_format) return tl::make_unexpected(pixel_format.error());
    auto model = patternd::load_camera_model(path);
    if (!model) return tl::make_unexpected(model.error());
    auto created = patternd::Rectifier::create(*model, *pixel_format);
    if (!created) return tl::make_unexpected(created.error());
    *rectifier = new patternd_rectifier{*model, *pixel_format, std::move(*created)};
    return {};
  });
}

patternd_status patternd_rectifier_size(const patternd_rectifier* rectifier, int32_t* input_width,
                                        int32_t* input_height, int32_t* output_width,
                                        int32_t* output_height) {
  return guarded([&]() -> Result<void> {
    if (rectifier == nullptr) return null_argument("rectifier");
    const auto& model = rectifier->model;
    if (input_width != nullptr) *input_width = model.image_width;
    if (input_height != nullptr) *input_height = model.image_height;
    if (output_width != nullptr) *output_width = model.output_width();
    if (output_height != nullptr) *output_height = model.output_height();
    return {};
  });
}

patternd_status patternd_rectify(patternd_rectifier* rectifier, const patternd_image* input,
                                 const patternd_mutable_image* output) {
  return guarded([&]() -> Result<void> {
    if (rectifier == nullptr) return null_argument("rectifier");
    const auto in = patternd::view_of<const std::uint8_t>(input, "input");
    if (!in) return tl::make_unexpected(in.error());
    const auto out = patternd::view_of<std::uint8_t>(output, "output");
    if (!out) return tl::make_unexpected(out.error());
    const auto& model = rectifier->model;
    if (auto ok = patternd::expect_view(*in, model.image_width, model.image_height,
                                        rectifier->format, "input");
        !ok) {
      return ok;
    }
    if (auto ok = patternd::expect_view(*out, model.output_width(), model.output_height(),
                                        rectifier->format, "output");
        !ok) {
      return ok;
    }
    if (auto ok = patternd::expect_apart(*in, *out,
                                         "output shares memory with input; it must have its own");
        !ok) {
      return ok;
    }
    rectifier->rectifier.process(*in, *out, nullptr);
    return {};
  });
}

patternd_status patternd_points_to_input(const patternd_rectifier* rectifier, double* xy,
                                         size_t count) {
  return patternd::transform_points(rectifier, xy, count, [&](patternd::Point2 point) {
    return rectifier->model.to_input(point);
  });
}

patternd_status patternd_points_to_output(const patternd_rectifier* rectifier, double* xy,
                                          size_t count) {
  return patternd::transform_points(rectifier, xy, count, [&](patternd::Point2 point) {
    return rectifier->model.to_output(point);
  });
}

void patternd_rectifier_free(patternd_rectifier* rectifier) { delete rectifier; }

patternd_status patternd_pattern_teach(const char* name, const patternd_image* picture,
                                       const patternd_image* mask, const double* ref_xy,
                                       patternd_pattern** pattern) {
  return guarded([&]() -> Result<void> {
    if (name == nullptr) return null_argument("name");
    if (!patternd::is_name(name)) {
      return patternd::fail(
          ErrorCode::kInvalidArgument,
          "name is " + patternd::in_quotes(name) + "; it " + patternd::name_rule() + " of UTF-8");
    }
    if (pattern == nullptr) return null_argument("pattern");
    const auto view = patternd::view_of<const std::uint8_t>(picture, "picture");
    if (!view) return tl::make_unexpected(view.error());
    patternd::ImageView mask_view;
    if (mask != nullptr) {
      const auto checked = patternd::view_of<const std::uint8_t>(mask, "mask");
      if (!checked) return tl::make_unexpected(checked.error());
      mask_view = *checked;
    }
    patternd::TeachOptions options;
    if (ref_xy != nullptr) {
      options.ref_x = ref_xy[0];
      options.ref_y = ref_xy[1];
    }
    auto taught = patternd::teach_pattern(name, *view, mask_view, options);
    if (!taught) return tl::make_unexpected(taught.error());
    *pattern = new patternd_pattern{std::make_shared<patternd::Pattern>(std::move(*taught))};
    return {};
  });
}

patternd_status patternd_pattern_load(const char* path, patternd_pattern** pattern) {
  return guarded([&]() -> Result<void> {
    if (auto ok = patternd::check_path(path); !ok) return ok;
    if (pattern == nullptr) return null_argument("pattern");
    auto loaded = patternd::load_pattern(path, std::filesystem::path(path).stem().string());
    if (!loaded) return tl::make_unexpected(loaded.error());
    *pattern = new patternd_pattern{std::make_shared<patternd::Pattern>(std::move(*loaded))};
    return {};
  });
}

patternd_status patternd_pattern_save(const patternd_pattern* pattern, const char* path) {
  return guarded([&]() -> Result<void> {
    if (pattern == nullptr) return null_argument("pattern");
    if (auto ok = patternd::check_path(path); !ok) return ok;
    return patternd::save_pattern(path, *pattern->pattern);
  });
}

patternd_status patternd_pattern_info(const patternd_pattern* pattern, int32_t* width,
                                      int32_t* height, int32_t* levels, double* angle_step_deg) {
  return guarded([&]() -> Result<void> {
    if (pattern == nullptr) return null_argument("pattern");
    const patternd::Pattern& taught = *pattern->pattern;
    if (width != nullptr) *width = taught.picture.width();
    if (height != nullptr) *height = taught.picture.height();
    if (levels != nullptr) *levels = taught.levels;
    if (angle_step_deg != nullptr) *angle_step_deg = taught.angle_step_deg;
    return {};
  });
}

void patternd_pattern_free(patternd_pattern* pattern) { delete pattern; }

void patternd_search_params_init(patternd_search_params* params) {
  if (params == nullptr) return;
  const patternd::SearchParams defaults;
  *params = {};
  params->struct_size = sizeof *params;
  params->min_score = defaults.min_score;
  params->max_matches = defaults.max_matches;
  params->scale_low = defaults.scale.low;
  params->scale_high = defaults.scale.high;
  params->max_overlap = defaults.max_overlap;
  params->min_visible = defaults.min_visible;
  params->min_contrast = defaults.min_contrast;
  params->symmetry = defaults.symmetry;
  params->levels = -1;
}

patternd_status patternd_matcher_create(int32_t width, int32_t height, patternd_format format,
                                        patternd_pattern* const* patterns,
                                        const patternd_search_params* params, size_t pattern_count,
                                        int32_t threads, patternd_matcher** matcher) {
  return guarded([&]() -> Result<void> {
    if (matcher == nullptr) return null_argument("matcher");
    if (auto ok = patternd::check_threads(threads); !ok) return ok;
    const auto pixel_format = patternd::format_of(format);
    if (!pixel_format) return tl::make_unexpected(pixel_format.error());
    auto searches = patternd::searches_of(patterns, params, pattern_count);
    if (!searches) return tl::make_unexpected(searches.error());
    auto pool = std::make_unique<patternd::ThreadPool>(threads);
    auto created = patternd::Matcher::create(
        {width, height, *pixel_format, std::move(*searches), {}}, pool.get());
    if (!created) return tl::make_unexpected(created.error());
    *matcher = new patternd_matcher{std::move(pool), std::move(*created), {}, width,
                                    height,          *pixel_format};
    return {};
  });
}

patternd_status patternd_find(patternd_matcher* matcher, const patternd_image* image,
                              patternd_match* matches, size_t capacity, size_t* count) {
  return guarded([&]() -> Result<void> {
    if (matcher == nullptr) return null_argument("matcher");
    if (count == nullptr) return null_argument("count");
    if (matches == nullptr && capacity > 0) return null_argument("matches");
    const auto view = patternd::view_of<const std::uint8_t>(image, "image");
    if (!view) return tl::make_unexpected(view.error());
    if (auto ok =
            patternd::expect_view(*view, matcher->width, matcher->height, matcher->format, "image");
        !ok) {
      return ok;
    }
    patternd::StageTimes times;
    matcher->matcher.match(*view, matcher->matches, times);
    for (std::size_t i = 0; i < capacity && i < matcher->matches.size(); ++i) {
      matches[i] = patternd::c_match_of(matcher->matches[i]);
    }
    *count = matcher->matches.size();
    return {};
  });
}

void patternd_matcher_free(patternd_matcher* matcher) { delete matcher; }

void patternd_label_params_init(patternd_label_params* params) {
  if (params == nullptr) return;
  const patternd::BlobParams defaults;
  *params = {};
  params->struct_size = sizeof *params;
  params->threshold = defaults.threshold;
  params->local_mean_radius = defaults.adaptive_radius;
  params->connectivity = defaults.connectivity;
  params->min_area = defaults.min_area;
}

patternd_status patternd_labeller_create(int32_t width, int32_t height, patternd_format format,
                                         const patternd_label_params* params, int32_t threads,
                                         patternd_labeller** labeller) {
  return guarded([&]() -> Result<void> {
    if (labeller == nullptr) return null_argument("labeller");
    if (params == nullptr) return null_argument("params");
    if (auto ok = patternd::check_struct("params", params->struct_size, sizeof *params,
                                         "patternd_label_params_init");
        !ok) {
      return ok;
    }
    if (auto ok = patternd::check_threads(threads); !ok) return ok;
    const auto pixel_format = patternd::format_of(format);
    if (!pixel_format) return tl::make_unexpected(pixel_format.error());
    const auto blob_params = patternd::blob_params_of(*params);
    if (!blob_params) return tl::make_unexpected(blob_params.error());
    auto pool = std::make_unique<patternd::ThreadPool>(threads);
    patternd::LabelOptions options;
    options.labels = true;
    options.pool = pool.get();
    auto created =
        patternd::ComponentLabeller::create(width, height, *pixel_format, *blob_params, options);
    if (!created) return tl::make_unexpected(created.error());
    *labeller = new patternd_labeller{std::move(pool), std::move(*created)};
    return {};
  });
}

patternd_status patternd_label(patternd_labeller* labeller, const patternd_image* image,
                               int32_t* labels, size_t label_stride_bytes, patternd_blob* blobs,
                               size_t capacity, int64_t* count) {
  return guarded([&]() -> Result<void> {
    if (labeller == nullptr) return null_argument("labeller");
    if (count == nullptr) return null_argument("count");
    if (blobs == nullptr && capacity > 0) return null_argument("blobs");
    const auto view = patternd::view_of<const std::uint8_t>(image, "image");
    if (!view) return tl::make_unexpected(view.error());
    patternd::MutableImageView label_view;
    if (labels != nullptr) {
      label_view = {reinterpret_cast<std::uint8_t*>(labels), view->width, view->height,
                    label_stride_bytes, patternd::PixelFormat::kLabel32};
      if (auto ok = patternd::check_view(label_view, "labels"); !ok) return ok;
      if (auto ok = patternd::expect_apart(
              *view, label_view, "labels share memory with the image; they must have their own");
          !ok) {
        return ok;
      }
    }
    if (auto ok = labeller->labeller.process(*view, label_view); !ok) return ok;
    const std::int64_t found = labeller->labeller.count();
    for (std::size_t i = 0; i < capacity && static_cast<std::int64_t>(i) < found; ++i)
      blobs[i] = patternd::c_blob_of(labeller->labeller.blob(static_cast<std::int64_t>(i) + 1));
    *count = found;
    return {};
  });
}

void patternd_labeller_free(patternd_labeller* labeller) { delete labeller; }
