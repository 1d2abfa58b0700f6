// Pattern search: pyramid NCC, coarse to fine, sub-pixel (T10–T14). One Matcher searches one
// picture size for any number of patterns, which share a pyramid.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/pattern.h"
#include "pipeline/result.h"
#include "pipeline/stage.h"
#include "pipeline/thread_pool.h"

namespace patternd {

struct PatternSearch {
  std::shared_ptr<const Pattern> pattern;
  SearchParams params;
};

struct MatcherConfig {
  int width = 0;
  int height = 0;
  PixelFormat format = PixelFormat::kGray8;  // kGray8 or kGray16
  std::vector<PatternSearch> patterns;
  ImageView
      valid;  // kGray8, same size, 0 where the picture has no content; empty: all valid. Copied.
};

// What a search will cost, for `teach`.
struct SearchCost {
  std::size_t memory_bytes = 0;
  double operations = 0;  // multiply-adds predicted by eq. 2.5
};

class Matcher {
 public:
  // Allocates everything a search needs. `pool` must outlive the matcher; null: the caller's thread
  // alone. Refuses a pattern larger than the picture, naming both sizes, and parameters out of
  // range.
  [[nodiscard]] static Result<Matcher> create(const MatcherConfig& config, ThreadPool* pool);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  // Finds the patterns in `image` (size and format as configured); `matches` is overwritten, sorted
  // by falling score, its capacity kept. Adds to times[kPyramid … kRefine]. The same picture gives
  // the same bits on any number of threads.
  void match(const ImageView& image, std::vector<Match>& matches, StageTimes& times);

  [[nodiscard]] SearchCost cost() const;

 private:
  struct State;
  explicit Matcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patternd
