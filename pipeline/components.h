// Connected components: labels and statistics (R1–R7).
//
//   auto labeller = ComponentLabeller::create(width, height, PixelFormat::kGray8, params, {});
//   labeller->process(image);                    // allocates nothing
//   labeller->largest(result.blobs);             // or blob(1) … blob(count())
//
// How it works and how fast it is: COMPONENTS.md.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"

namespace patternd {

// The `blobs` section, and what `patternctl label` asks for.
struct BlobParams {
  enum class Mode { kThreshold, kOtsu, kAdaptive, kSimilarity };
  enum class Reference { kOff, kDark, kAlternate };
  Mode mode = Mode::kThreshold;
  double threshold = 200;  // grey levels of the picture's format; foreground is value > threshold
  // Adaptive: foreground is value > mean + offset (below: value < mean − offset), the mean over the
  // square of 2·radius + 1 pixels around the pixel, as much of it as lies in the picture.
  int adaptive_radius = 15;
  double adaptive_offset = 0;
  // Similarity: neighbours connect whose grey (colour: largest channel) difference is at most this;
  // every pixel belongs to a component.
  double similarity = 0;
  bool below = false;    // foreground is value < threshold
  int connectivity = 8;  // 4 | 8
  // Filters: components outside them are left out, of the labels too.
  std::int64_t min_area = 1;
  std::int64_t max_area = std::numeric_limits<std::int64_t>::max();
  int min_width = 1;  // of the bounding box, like the next three
  int max_width = kMaxImageSide;
  int min_height = 1;
  int max_height = kMaxImageSide;
  double min_elongation = 1;  // major over minor axis
  double max_elongation = std::numeric_limits<double>::infinity();
  double min_peak = 0;   // grey levels of the picture's format
  int max_blobs = 1000;  // the largest are kept
  Reference reference = Reference::kOff;
  // Pixels outside are as if they were not there; one belongs to it where its centre lies in
  // [x, x + width) × [y, y + height). Components that its edge cuts touch the border.
  std::optional<Roi> roi;
};

// How components are found. All methods give the same labels and statistics.
enum class LabelMethod {
  kRuns,         // the service's own: rows as bits, runs, union-find
  kPropagation,  // the report's program A (R1): smallest label among the neighbours until nothing
                 // moves; kept for measuring
};
// "runs", "propagation".
[[nodiscard]] const char* name_of(LabelMethod method);

struct LabelOptions {
  LabelMethod method = LabelMethod::kRuns;
  bool labels = false;         // process() can write labels
  bool intensity = true;       // mean and peak
  bool moments = true;         // orientation and axes
  ThreadPool* pool = nullptr;  // null: the caller's thread alone; must outlive the labeller
};

// Area, centroid and bounding box alone.
struct ComponentBox {
  std::int64_t area_px = 0;
  double x_px = 0;
  double y_px = 0;
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

// Labels pictures of one size and format. Memory for the worst picture of that size is reserved by
// create(), and becomes resident only as far as pictures need it. One call at a time.
class ComponentLabeller {
 public:
  // `format`: kGray8, kGray16, and kRgb8 with similarity. Fails with kInvalidArgument (a value out
  // of range, an roi without a pixel) or kExhausted (no memory).
  [[nodiscard]] static Result<ComponentLabeller> create(int width, int height, PixelFormat format,
                                                        const BlobParams& params,
                                                        const LabelOptions& options);
  ~ComponentLabeller();
  ComponentLabeller(ComponentLabeller&&) noexcept;
  ComponentLabeller& operator=(ComponentLabeller&&) noexcept;

  // Finds the components of `image`. `labels` (kLabel32, the picture's size; empty: statistics
  // alone) receives 0 for the background and 1, 2, … in scan order of each component's first pixel.
  //   . # # .        0 1 1 0
  //   . . . #   8    0 0 0 1
  //   # . . .        2 0 0 0
  // Fails with kInvalidArgument for another size or format. The statistics stand until the next
  // call.
  [[nodiscard]] Result<void> process(const ImageView& image, MutableImageView labels = {});

  // Components that passed the filters in the last picture.
  [[nodiscard]] std::int64_t count() const;
  // The statistics of one, by its label 1..count(); `id` is the label. What was not asked for at
  // creation is 0.
  [[nodiscard]] Blob blob(std::int64_t label) const;
  // boxes[i] is that of label i + 1, for `size` labels at most; returns how many were written.
  std::int64_t boxes(ComponentBox* boxes, std::int64_t size) const;
  // The `max_blobs` largest, by falling area (equal ones in scan order), numbered from 1. Allocates
  // only where `blobs` has not the capacity.
  void largest(std::vector<Blob>& blobs) const;
  // The threshold of the last picture (fixed or Otsu's).
  [[nodiscard]] double threshold() const;

 private:
  struct State;
  explicit ComponentLabeller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patternd
