#include "pipeline/components.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "pipeline/components_adaptive.h"
#include "pipeline/components_memory.h"
#include "pipeline/components_propagation.h"
#include "pipeline/components_rows.h"
#include "pipeline/components_selection.h"
#include "pipeline/components_similarity.h"
#include "pipeline/components_statistics.h"
#include "pipeline/components_threshold.h"

namespace patternd {

using components::AdaptiveRows;
using components::Forest;
using components::Geometry;
using components::GreyRange;
using components::Intensity;
using components::kLabelTail;
using components::kRowTailBytes;
using components::Moments;
using components::Region;
using components::ReservedArray;
using components::row_words;
using components::RowRuns;
using components::SimilarityRows;

using Mode = BlobParams::Mode;

const char* name_of(LabelMethod method) {
  return method == LabelMethod::kRuns ? "runs" : "propagation";
}

namespace {

// A strip of fewer rows costs more in seams than it gains.
constexpr int kMinStripRows = 32;

// What a row leaves for the row below, for seams and for writing labels.
struct RowRecord {
  std::uint64_t* bits = nullptr;    // the foreground; with similarity the runs' first pixels
  std::uint32_t* labels = nullptr;  // [0] = 0, then a provisional label a run
  std::size_t runs = 0;
};

// Rows that one thread labels, and its scratch.
struct Strip {
  int begin = 0;  // rows of the region
  int end = 0;
  std::uint32_t first_label = 1;
  std::uint32_t end_label = 1;  // after a picture: one past the last label given
  std::size_t labels_at = 0;    // where the strip's part of run_labels begins
  RowRecord first;
  RowRecord last;
  std::vector<std::uint64_t> bits;    // statistics alone: the first row, and two that alternate
  std::vector<std::uint32_t> labels;  // likewise
  std::vector<std::uint16_t> run_memory;
  std::vector<components::RunSums> sums_memory;
  std::vector<components::Join> joins;
  std::vector<std::uint64_t> row_copy;    // a row with the tail that vector code may read
  std::vector<std::uint32_t> row_labels;  // final labels of a row's runs
  RowRuns runs;
  AdaptiveRows adaptive;
  SimilarityRows similarity;
};

Result<void> check_range(bool good, const char* name, const std::string& got, const char* want) {
  if (good) return {};
  return fail(ErrorCode::kInvalidArgument,
              std::string("components: ") + name + " is " + got + "; it must be " + want);
}

Result<void> check_params(const BlobParams& p, PixelFormat format) {
  const bool similarity = p.mode == Mode::kSimilarity;
  const bool known = format == PixelFormat::kGray8 || format == PixelFormat::kGray16 ||
                     (format == PixelFormat::kRgb8 && similarity);
  if (!known) {
    return fail(ErrorCode::kInvalidArgument,
                std::string("components: the picture is ") + name_of(format) +
                    (similarity ? "; similarity takes gray8, gray16 and rgb8"
                                : "; thresholds take gray8 and gray16"));
  }
  const auto number = [](double v) { return std::to_string(v); };
  Result<void> checks[] = {
      check_range(p.connectivity == 4 || p.connectivity == 8, "connectivity",
                  std::to_string(p.connectivity), "4 or 8"),
      check_range(std::isfinite(p.threshold), "threshold", number(p.threshold), "a finite number"),
      check_range(p.adaptive_radius >= 0 && p.adaptive_radius <= kMaxImageSide, "adaptive radius",
                  std::to_string(p.adaptive_radius), "0 to 32767"),
      check_range(std::abs(p.adaptive_offset) <= 65535, "adaptive offset",
                  number(p.adaptive_offset), "-65535 to 65535"),
      check_range(p.similarity >= 0, "similarity", number(p.similarity), "0 or more"),
      check_range(p.min_area >= 0, "min_area", std::to_string(p.min_area), "0 or more"),
      check_range(p.max_blobs >= 0, "max_blobs", std::to_string(p.max_blobs), "0 or more"),
      check_range(!std::isnan(p.min_elongation) && !std::isnan(p.max_elongation), "elongation",
                  "not a number", "a number"),
      check_range(!std::isnan(p.min_peak), "min_peak", "not a number", "a number"),
  };
  for (auto& check : checks)
    if (!check) return check;
  return {};
}

// Runs of one row and labels of `rows` rows at most. A label is given where a run's first pixel has
// no connected neighbour before it, and no two such pixels are neighbours of each other: with
// connectivity 8 one to a block of 2×2, with 4 every other pixel.
std::uint64_t most_runs(int width, Mode mode) {
  const auto w = static_cast<std::uint64_t>(width);
  return mode == Mode::kSimilarity ? w : (w + 1) / 2;
}
std::uint64_t most_labels(int width, int rows, Mode mode, int connectivity) {
  const auto w = static_cast<std::uint64_t>(width);
  const auto h = static_cast<std::uint64_t>(rows);
  if (mode == Mode::kSimilarity) return w * h;
  return connectivity == 8 ? ((w + 1) / 2) * ((h + 1) / 2) : (w * h + 1) / 2;
}

}  // namespace

struct ComponentLabeller::State {
  int width = 0;
  int height = 0;
  PixelFormat format = PixelFormat::kGray8;
  BlobParams params;
  LabelOptions options;
  Region region;
  bool eight = true;
  bool filters = false;

  std::vector<Strip> strips;
  ReservedArray<std::uint32_t> parent;
  ReservedArray<std::uint32_t> renumbered;
  ReservedArray<Geometry> geometry;
  ReservedArray<Intensity> intensity;
  ReservedArray<Moments> moments;
  ReservedArray<std::uint64_t> all_bits;  // of every row, where labels are wanted
  ReservedArray<std::uint32_t> run_labels;
  std::vector<RowRecord> records;  // of every row, where labels are wanted
  std::vector<std::uint64_t> squares;
  std::vector<std::uint32_t> histogram;
  Image propagated;
  mutable std::vector<std::int64_t> order;

  double threshold = 0;
  GreyRange range;
  std::int64_t count = 0;

  Result<void> allocate();
  Result<void> allocate_strips();
  void allocate_scratch(Strip& strip);
  template <class Body>
  void for_each_strip(const Body& body);

  void find_threshold(const ImageView& image);
  const std::uint8_t* readable_row(const ImageView& image, int y, Strip& strip) const;
  RowRecord row_memory(Strip& strip, int y, std::size_t slot, std::uint32_t* cursor) const;
  void row_bits(const ImageView& image, int y, Strip& strip, std::uint64_t* bits) const;
  void row_runs(Strip& strip, const RowRecord& row, const RowRecord* upper) const;
  template <class Use>
  void with_grey(const ImageView& image, int y, Strip& strip, const Use& use) const;
  void label_row(const ImageView& image, int y, Strip& strip, const RowRecord& row,
                 const RowRecord* upper, Forest& forest) const;
  struct Repeats;
  void add_repeats(Strip& strip, const RowRecord& row, Repeats& repeats, Forest& forest) const;
  [[nodiscard]] Forest forest_of(const Strip& strip) const;
  void label_strip(const ImageView& image, Strip& strip);
  void join_seam(const ImageView& image, const Strip& above, Strip& below);
  void flatten();
  void find_by_propagation(const ImageView& image);
  void add_pixels(const ImageView& image);
  void filter();
  void write_strip(Strip& strip, MutableImageView labels) const;
  void write_propagated(MutableImageView labels) const;
  [[nodiscard]] components::Sums sums() const;
};

// ---- creation

Result<void> ComponentLabeller::State::allocate() {
  const BlobParams& p = params;
  eight = p.connectivity == 8;
  options.moments |= components::filters_by_axes(p);
  options.intensity |= components::filters_by_peak(p);
  filters = components::has_filters(p);

  if (auto ok = allocate_strips(); !ok) return ok;
  // Label 0, and the slot that is made ready behind the last one.
  const std::uint64_t labels =
      strips.back().first_label + 2 +
      most_labels(region.width, strips.back().end - strips.back().begin, p.mode, p.connectivity);
  const auto reserve = [](auto& array, std::uint64_t size) -> Result<void> {
    auto made = std::decay_t<decltype(array)>::create(size);
    if (!made) return tl::make_unexpected(made.error());
    array = std::move(*made);
    return {};
  };
  const bool runs = options.method == LabelMethod::kRuns;
  const std::uint64_t rows = static_cast<std::uint64_t>(region.height);
  const std::uint64_t run_slots = rows * (most_runs(region.width, p.mode) + 1) + kLabelTail;
  Result<void> steps[] = {
      reserve(parent, runs ? labels : 0),
      reserve(renumbered, filters ? labels : 0),
      reserve(geometry, labels),
      reserve(intensity, options.intensity ? labels : 0),
      reserve(moments, options.moments ? labels : 0),
      reserve(all_bits, runs && options.labels ? rows * row_words(region.width) : 0),
      reserve(run_labels, runs && options.labels ? run_slots : 0),
  };
  for (auto& step : steps)
    if (!step) return step;
  if (!runs) {
    auto image = Image::create(region.width, region.height, PixelFormat::kLabel32);
    if (!image) return tl::make_unexpected(image.error());
    propagated = std::move(*image);
  }
  if (options.labels) records.resize(static_cast<std::size_t>(region.height));
  squares.resize(static_cast<std::size_t>(region.width) + 1);
  for (std::size_t x = 0; x + 1 < squares.size(); ++x) squares[x + 1] = squares[x] + x * x;
  if (p.mode == Mode::kOtsu) histogram.resize(format == PixelFormat::kGray8 ? 256 : 65536);
  order.reserve(static_cast<std::size_t>(p.max_blobs));
  return {};
}

Result<void> ComponentLabeller::State::allocate_strips() {
  const int threads = options.pool != nullptr && options.method == LabelMethod::kRuns
                          ? options.pool->thread_count()
                          : 1;
  const int wanted = std::clamp(region.height / kMinStripRows, 1, threads);
  strips.resize(static_cast<std::size_t>(wanted));
  std::uint64_t label = 1;
  std::uint64_t run_slot = 0;
  for (int i = 0; i < wanted; ++i) {
    Strip& strip = strips[static_cast<std::size_t>(i)];
    strip.begin = static_cast<int>(static_cast<std::int64_t>(region.height) * i / wanted);
    strip.end = static_cast<int>(static_cast<std::int64_t>(region.height) * (i + 1) / wanted);
    const int rows = strip.end - strip.begin;
    strip.first_label = static_cast<std::uint32_t>(label);
    strip.labels_at = static_cast<std::size_t>(run_slot);
    label += most_labels(region.width, rows, params.mode, params.connectivity) + 1;
    run_slot += static_cast<std::uint64_t>(rows) * (most_runs(region.width, params.mode) + 1);
    allocate_scratch(strip);
  }
  return {};
}

void ComponentLabeller::State::allocate_scratch(Strip& strip) {
  const auto w = static_cast<std::size_t>(region.width);
  const std::size_t runs = static_cast<std::size_t>(most_runs(region.width, params.mode)) + 1;
  const bool similarity = params.mode == Mode::kSimilarity;
  const std::size_t slots = runs + components::kRunTail;
  strip.run_memory.resize(5 * slots);
  strip.sums_memory.resize(slots);
  strip.joins.resize(similarity ? 3 * runs : runs);
  strip.runs.start = strip.run_memory.data();
  strip.runs.end = strip.runs.start + slots;
  strip.runs.first_upper = strip.runs.end + slots;
  strip.runs.fresh_start = strip.runs.first_upper + slots;
  strip.runs.touches = strip.runs.fresh_start + slots;
  strip.runs.sums = strip.sums_memory.data();
  strip.runs.joins = strip.joins.data();
  // Three rows and, as the last, one of zeros that stands above the picture.
  strip.bits.resize(4 * row_words(region.width));
  strip.labels.resize(3 * (runs + 1));
  strip.row_copy.resize((w * bytes_per_pixel(format) + kRowTailBytes) / 8 + 1);
  strip.row_labels.resize(runs + 1 + kLabelTail);
  if (similarity) strip.similarity.configure(region.width, format, params.similarity);
  if (params.mode == Mode::kAdaptive)
    strip.adaptive.configure(region.width, params.adaptive_radius, params.adaptive_offset,
                             params.below);
}

template <class Body>
void ComponentLabeller::State::for_each_strip(const Body& body) {
  if (strips.size() == 1) {
    body(strips[0]);
  } else {
    options.pool->for_each(strips.size(), [&](std::size_t i) { body(strips[i]); });
  }
}

// ---- a picture

void ComponentLabeller::State::find_threshold(const ImageView& image) {
  threshold = params.mode == Mode::kOtsu ? components::otsu_threshold(image, histogram.data())
                                         : params.threshold;
  const int most = format == PixelFormat::kGray16 ? 65535 : 255;
  range = components::foreground_range(threshold, params.below, most);
}

// Row y where at least kRowTailBytes more may be read behind it: the picture's own, but for the
// last ones, which are copied.
const std::uint8_t* ComponentLabeller::State::readable_row(const ImageView& image, int y,
                                                           Strip& strip) const {
  const auto below = static_cast<std::size_t>(image.height - 1 - y);
  if (below * image.stride_bytes >= kRowTailBytes) return image.row_bytes(y);
  auto* copy = reinterpret_cast<std::uint8_t*>(strip.row_copy.data());
  std::memcpy(copy, image.row_bytes(y),
              static_cast<std::size_t>(image.width) * bytes_per_pixel(image.format));
  return copy;
}

RowRecord ComponentLabeller::State::row_memory(Strip& strip, int y, std::size_t slot,
                                               std::uint32_t* cursor) const {
  const std::size_t words = row_words(region.width);
  if (options.labels) return {all_bits.data() + static_cast<std::size_t>(y) * words, cursor};
  return {strip.bits.data() + slot * words, strip.labels.data() + slot * (strip.labels.size() / 3)};
}

void ComponentLabeller::State::row_bits(const ImageView& image, int y, Strip& strip,
                                        std::uint64_t* bits) const {
  if (params.mode == Mode::kAdaptive) {
    strip.adaptive.next_row(bits);
  } else if (range.empty()) {
    std::fill_n(bits, row_words(region.width), 0);
  } else {
    const std::uint8_t* row = readable_row(image, y, strip);
    if (format == PixelFormat::kGray8)
      components::threshold_row(row, region.width, static_cast<std::uint8_t>(range.low),
                                static_cast<std::uint8_t>(range.high), bits);
    else
      components::threshold_row(reinterpret_cast<const std::uint16_t*>(row), region.width,
                                static_cast<std::uint16_t>(range.low),
                                static_cast<std::uint16_t>(range.high), bits);
  }
}

// The runs of a row whose bits stand; with similarity its pixels are the last that the strip took
// in.
void ComponentLabeller::State::row_runs(Strip& strip, const RowRecord& row,
                                        const RowRecord* upper) const {
  const std::uint64_t* zeros = strip.bits.data() + 3 * row_words(region.width);
  if (params.mode != Mode::kSimilarity) {
    components::find_runs(row.bits, upper != nullptr ? upper->bits : zeros, region.width, eight,
                          strip.runs);
    return;
  }
  if (upper == nullptr) {
    components::find_similar_runs({row.bits, zeros, zeros, zeros, zeros}, region.width, strip.runs);
    return;
  }
  components::SimilarityBits bits = strip.similarity.touches(row.bits, upper->bits);
  if (!eight) bits.up_left = bits.up_right = zeros;
  components::find_similar_runs(bits, region.width, strip.runs);
}

// Calls use(row) with the grey values of row y; with similarity the row taken in last.
template <class Use>
void ComponentLabeller::State::with_grey(const ImageView& image, int y, Strip& strip,
                                         const Use& use) const {
  const bool similarity = params.mode == Mode::kSimilarity;
  if (format == PixelFormat::kGray16) {
    use(similarity ? strip.similarity.grey16()
                   : reinterpret_cast<const std::uint16_t*>(readable_row(image, y, strip)));
  } else {
    use(similarity ? strip.similarity.grey8() : readable_row(image, y, strip));
  }
}

void ComponentLabeller::State::label_row(const ImageView& image, int y, Strip& strip,
                                         const RowRecord& row, const RowRecord* upper,
                                         Forest& forest) const {
  row_runs(strip, row, upper);
  static constexpr std::uint32_t kNoLabels[1] = {0};
  const std::uint32_t* upper_labels = upper != nullptr ? upper->labels : kNoLabels;
  with_grey(image, y, strip, [&](const auto* grey) {
    components::label_runs(strip.runs, y, grey, upper_labels, row.labels, forest);
  });
}

// Where a row has the same foreground as the row above, its runs and labels are those of the row
// above, and their sums are added for all such rows at once.
struct ComponentLabeller::State::Repeats {
  int first_y = 0;
  int count = 0;
};

void ComponentLabeller::State::add_repeats(Strip& strip, const RowRecord& row, Repeats& repeats,
                                           Forest& forest) const {
  if (repeats.count > 0)
    components::repeat_runs(strip.runs, repeats.first_y, repeats.first_y + repeats.count - 1,
                            row.labels, forest);
  repeats.count = 0;
}

Forest ComponentLabeller::State::forest_of(const Strip& strip) const {
  Forest forest;
  forest.parent = parent.data();
  forest.next = strip.first_label;
  forest.geometry = geometry.data();
  forest.intensity = intensity.data();
  forest.moments = moments.data();
  forest.squares = squares.data();
  return forest;
}

void ComponentLabeller::State::label_strip(const ImageView& image, Strip& strip) {
  const std::size_t bytes = row_words(region.width) * sizeof(std::uint64_t);
  const bool similarity = params.mode == Mode::kSimilarity;
  Forest forest = forest_of(strip);
  if (params.mode == Mode::kAdaptive) strip.adaptive.start(image, strip.begin);
  std::uint32_t* cursor = run_labels.data() + strip.labels_at;
  std::size_t slot = 0;  // of statistics alone: the first row keeps its own, the others alternate
  Repeats repeats;
  RowRecord upper;
  for (int y = strip.begin; y < strip.end; ++y) {
    const bool first = y == strip.begin;
    RowRecord row = row_memory(strip, y, slot, cursor);
    if (similarity) {
      strip.similarity.load(image, y);
      strip.similarity.starts(row.bits);
    } else {
      row_bits(image, y, strip, row.bits);
    }
    if (!similarity && !first && std::memcmp(row.bits, upper.bits, bytes) == 0) {
      if (repeats.count++ == 0) repeats.first_y = y;
      if (options.intensity)
        with_grey(image, y, strip, [&](const auto* grey) {
          components::add_intensity(strip.runs, y, grey, upper.labels, forest);
        });
    } else {
      add_repeats(strip, upper, repeats, forest);
      label_row(image, y, strip, row, first ? nullptr : &upper, forest);
      row.runs = strip.runs.count;
      if (options.labels) cursor += row.runs + 1;
      slot = slot == 1 ? 2 : 1;
      upper = row;
    }
    if (options.labels) records[static_cast<std::size_t>(y)] = upper;
    if (first) strip.first = row;
  }
  add_repeats(strip, upper, repeats, forest);
  strip.last = upper;
  strip.end_label = forest.next;
}

void ComponentLabeller::State::join_seam(const ImageView& image, const Strip& above, Strip& below) {
  if (params.mode == Mode::kSimilarity) {
    below.similarity.load(image, below.begin - 1);
    below.similarity.load(image, below.begin);
  }
  row_runs(below, below.first, &above.last);
  const std::uint32_t* labels = below.first.labels;
  const std::uint32_t* upper = above.last.labels;
  for (std::size_t i = 0; i < below.runs.count; ++i)
    if (below.runs.first_upper[i] != 0)
      components::unite(parent.data(), labels[i + 1], upper[below.runs.first_upper[i]]);
  for (std::size_t i = 0; i < below.runs.join_count; ++i)
    components::unite(parent.data(), labels[below.runs.joins[i].run],
                      upper[below.runs.joins[i].upper]);
}

// Provisional labels become final ones, in `parent` itself: a parent comes before its child, so it
// is final already. Statistics move down to the final label, or are added to it.
void ComponentLabeller::State::flatten() {
  std::uint32_t last = 0;
  for (const Strip& strip : strips) {
    for (std::uint32_t label = strip.first_label; label < strip.end_label; ++label) {
      const bool is_root = parent[label] == label;
      const std::uint32_t to = is_root ? ++last : parent[parent[label]];
      parent[label] = to;
      if (to == label) continue;
      if (is_root) {
        geometry[to] = geometry[label];
        if (options.intensity) intensity[to] = intensity[label];
        if (options.moments) moments[to] = moments[label];
      } else {
        merge(geometry[to], geometry[label]);
        if (options.intensity) merge(intensity[to], intensity[label]);
        if (options.moments) merge(moments[to], moments[label]);
      }
    }
  }
  count = last;
}

void ComponentLabeller::State::find_by_propagation(const ImageView& image) {
  Strip& strip = strips[0];
  const MutableImageView labels = propagated.view();
  if (params.mode == Mode::kSimilarity) {
    count = components::propagate_similar(image, params.similarity, eight, labels);
  } else {
    if (params.mode == Mode::kAdaptive) strip.adaptive.start(image, 0);
    for (int y = 0; y < region.height; ++y) {
      row_bits(image, y, strip, strip.bits.data());
      auto* row = labels.row<std::int32_t>(y);
      for (int x = 0; x < region.width; ++x)
        row[x] =
            static_cast<std::int32_t>(strip.bits[static_cast<std::size_t>(x) / 64] >> (x % 64) & 1);
    }
    count = components::propagate_foreground(eight, labels);
  }
  add_pixels(image);
}

// Statistics from the propagated labels, a pixel at a time.
void ComponentLabeller::State::add_pixels(const ImageView& image) {
  std::fill_n(geometry.data() + 1, count, Geometry{});
  for (int y = 0; y < region.height; ++y) {
    const auto* labels = propagated.row<std::int32_t>(y);
    if (params.mode == Mode::kSimilarity) strips[0].similarity.load(image, y);
    const std::uint8_t* rgb_luma =
        format == PixelFormat::kRgb8 ? strips[0].similarity.grey8() : nullptr;
    for (int x = 0; x < region.width; ++x) {
      if (labels[x] == 0) continue;
      const auto label = static_cast<std::size_t>(labels[x]);
      const auto ux = static_cast<std::uint16_t>(x);
      const auto uy = static_cast<std::uint16_t>(y);
      const std::uint16_t value = rgb_luma != nullptr              ? rgb_luma[x]
                                  : format == PixelFormat::kGray16 ? image.row<std::uint16_t>(y)[x]
                                                                   : image.row<std::uint8_t>(y)[x];
      const std::uint64_t wide_x = ux;
      const std::uint64_t wide_y = uy;
      const Geometry pixel = {2 * wide_x, wide_y,
                              1,          static_cast<std::uint16_t>(65535 - x),
                              ux,         static_cast<std::uint16_t>(65535 - y),
                              uy};
      const Intensity grey = {value, value, ux, uy};
      const Moments second = {wide_x * wide_x, wide_y * wide_y, wide_x * wide_y};
      const bool first = geometry[label].area == 0;
      const auto add = [first](auto& into, const auto& from) {
        if (first)
          into = from;
        else
          merge(into, from);
      };
      if (options.intensity) add(intensity[label], grey);
      if (options.moments) add(moments[label], second);
      add(geometry[label], pixel);
    }
  }
}

// Leaves out components; those that stay move up.
void ComponentLabeller::State::filter() {
  std::int64_t kept = 0;
  renumbered[0] = 0;
  for (std::int64_t label = 1; label <= count; ++label) {
    const auto from = static_cast<std::size_t>(label);
    const bool stays = components::passes(components::blob_of(sums(), label), params);
    renumbered[from] = stays ? static_cast<std::uint32_t>(++kept) : 0;
    if (!stays) continue;
    const auto to = static_cast<std::size_t>(kept);
    geometry[to] = geometry[from];
    if (options.intensity) intensity[to] = intensity[from];
    if (options.moments) moments[to] = moments[from];
  }
  count = kept;
}

void ComponentLabeller::State::write_strip(Strip& strip, MutableImageView labels) const {
  std::uint32_t* final_labels = strip.row_labels.data();
  final_labels[0] = 0;
  for (int y = strip.begin; y < strip.end; ++y) {
    const RowRecord& record = records[static_cast<std::size_t>(y)];
    const std::uint32_t* begin = record.labels;
    const std::uint32_t* end = begin + 1 + record.runs;
    std::uint32_t* to = final_labels;
    if (filters)
      for (const std::uint32_t* from = begin; from < end; ++from) *to++ = renumbered[parent[*from]];
    else
      for (const std::uint32_t* from = begin; from < end; ++from) *to++ = parent[*from];
    components::write_labels(record.bits, final_labels, region.width,
                             params.mode == Mode::kSimilarity, labels.row<std::int32_t>(y));
  }
}

void ComponentLabeller::State::write_propagated(MutableImageView labels) const {
  for (int y = 0; y < region.height; ++y) {
    const auto* from = propagated.row<std::int32_t>(y);
    auto* to = labels.row<std::int32_t>(y);
    for (int x = 0; x < region.width; ++x)
      to[x] = filters ? static_cast<std::int32_t>(renumbered[static_cast<std::size_t>(from[x])])
                      : from[x];
  }
}

components::Sums ComponentLabeller::State::sums() const {
  return {geometry.data(), intensity.data(), moments.data(), region};
}

// ---- the class

ComponentLabeller::ComponentLabeller(std::unique_ptr<State> state) : state_(std::move(state)) {}
ComponentLabeller::~ComponentLabeller() = default;
ComponentLabeller::ComponentLabeller(ComponentLabeller&&) noexcept = default;
ComponentLabeller& ComponentLabeller::operator=(ComponentLabeller&&) noexcept = default;

Result<ComponentLabeller> ComponentLabeller::create(int width, int height, PixelFormat format,
                                                    const BlobParams& params,
                                                    const LabelOptions& options) {
  if (width < 1 || height < 1 || width > kMaxImageSide || height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument,
                "components: picture of " + std::to_string(width) + "x" + std::to_string(height) +
                    " pixels; both must be 1 to " + std::to_string(kMaxImageSide));
  }
  if (auto ok = check_params(params, format); !ok) return tl::make_unexpected(ok.error());
  auto region = components::region_of(params, width, height);
  if (!region) return tl::make_unexpected(region.error());
  auto state = std::make_unique<State>();
  state->width = width;
  state->height = height;
  state->format = format;
  state->params = params;
  state->options = options;
  state->region = *region;
  if (auto ok = state->allocate(); !ok) return tl::make_unexpected(ok.error());
  return ComponentLabeller(std::move(state));
}

Result<void> ComponentLabeller::process(const ImageView& image, MutableImageView labels) {
  State& s = *state_;
  if (auto ok = check_view(image, "components: picture"); !ok) return ok;
  if (image.width != s.width || image.height != s.height || image.format != s.format) {
    return fail(ErrorCode::kInvalidArgument,
                "components: picture is " + std::to_string(image.width) + "x" +
                    std::to_string(image.height) + " " + name_of(image.format) + "; expected " +
                    std::to_string(s.width) + "x" + std::to_string(s.height) + " " +
                    name_of(s.format));
  }
  if (labels.data != nullptr) {
    if (auto ok = check_view(labels, "components: labels"); !ok) return ok;
    if (!s.options.labels || labels.format != PixelFormat::kLabel32 || labels.width != s.width ||
        labels.height != s.height) {
      return fail(ErrorCode::kInvalidArgument,
                  "components: labels need a label32 picture of the same size, and a labeller "
                  "created for labels");
    }
  }
  const Region& r = s.region;
  const ImageView part = image.crop(r.x, r.y, r.width, r.height);
  if (s.params.mode == Mode::kThreshold || s.params.mode == Mode::kOtsu) s.find_threshold(part);
  const bool runs = s.options.method == LabelMethod::kRuns;
  if (runs) {
    s.for_each_strip([&](Strip& strip) { s.label_strip(part, strip); });
    for (std::size_t i = 1; i < s.strips.size(); ++i)
      s.join_seam(part, s.strips[i - 1], s.strips[i]);
    s.flatten();
  } else {
    s.find_by_propagation(part);
  }
  if (s.filters) s.filter();
  if (labels.data == nullptr) return {};

  const bool whole = r.width == s.width && r.height == s.height;
  if (!whole)
    for (int y = 0; y < s.height; ++y) std::fill_n(labels.row<std::int32_t>(y), s.width, 0);
  const MutableImageView out = labels.crop(r.x, r.y, r.width, r.height);
  if (runs)
    s.for_each_strip([&](Strip& strip) { s.write_strip(strip, out); });
  else
    s.write_propagated(out);
  return {};
}

std::int64_t ComponentLabeller::count() const { return state_->count; }
Blob ComponentLabeller::blob(std::int64_t label) const {
  return components::blob_of(state_->sums(), label);
}
double ComponentLabeller::threshold() const { return state_->threshold; }

std::int64_t ComponentLabeller::boxes(ComponentBox* boxes, std::int64_t size) const {
  const std::int64_t written = std::min(size, state_->count);
  const Geometry* const geometry = state_->geometry.data() + 1;
  const Region region = state_->region;
  for (std::int64_t i = 0; i < written; ++i) boxes[i] = components::box_of(geometry[i], region);
  return written;
}

void ComponentLabeller::largest(std::vector<Blob>& blobs) const {
  components::select_largest(state_->sums(), state_->count, state_->params, state_->order, blobs);
}

}  // namespace patternd
