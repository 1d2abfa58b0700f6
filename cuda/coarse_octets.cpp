#include "cuda/coarse_octets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace patternd::cuda {
namespace {

static_assert(kOctet == static_cast<int>(kPlanesPerGroup));

constexpr int kTilesOfBlock = kCoarseBlock / kScoreColumns;  // of positions that share a class

// So much lower an estimated score may be of a position that is scored exactly; and where a
// threshold is too low to divide by.
constexpr double kEstimateSafety = 0.98;
constexpr double kLeastEstimate = 1e-6;

int rounded_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

// Columns and rows around a position.
struct Box {
  int left = std::numeric_limits<int>::max();
  int top = std::numeric_limits<int>::max();
  int right = std::numeric_limits<int>::min();
  int bottom = std::numeric_limits<int>::min();
};

Box box_of(const CoarseTables& tables) {
  Box box;
  for (const CoarseTables::Plane& plane : tables.planes) {
    box.left = std::min(box.left, plane.left);
    box.top = std::min(box.top, plane.top);
    box.right = std::max(box.right, plane.left + plane.width);
    box.bottom = std::max(box.bottom, plane.top + plane.height);
  }
  return box;
}

// A stretch of a strip of the window: column and row of its first pixel, and how many rows it has.
struct Stretch {
  int column;
  int row;
  int rows;
};

// Four stretches that are multiplied together, and products one below the other.
struct Course {
  std::vector<Stretch> stretches;
  int steps;
};

// Up to eight planes beside each other.
class Octet {
 public:
  Octet(const CoarseTables& tables, std::size_t first, std::size_t count, const ScoreWindow& window)
      : tables_(tables), first_(first), count_(count), window_(window) {
    const auto size = static_cast<std::size_t>(window.columns) *
                      static_cast<std::size_t>(window.rows) * static_cast<std::size_t>(kOctet);
    weights_.assign(size, 0);
    counts_.assign(size, 0);
    for (std::size_t i = 0; i < count; ++i) fill(static_cast<int>(i));
  }

  [[nodiscard]] bool fits() const {
    constexpr int kMost = 127 * 256 + 127;
    return std::all_of(weights_.begin(), weights_.end(),
                       [](int weight) { return weight >= -kMost && weight <= kMost; });
  }
  [[nodiscard]] OctetTables tables(const ScoreThreshold& threshold, int first_plane,
                                   int pitch) const;

 private:
  void fill(int number);
  [[nodiscard]] std::size_t at(int plane, int column, int row) const {
    return (static_cast<std::size_t>(row) * static_cast<std::size_t>(window_.columns) +
            static_cast<std::size_t>(column)) *
               static_cast<std::size_t>(kOctet) +
           static_cast<std::size_t>(plane);
  }
  [[nodiscard]] bool counts_for_any(int column, int row) const;
  [[nodiscard]] std::vector<Stretch> strips() const;
  void add_course(const Course& course, int pitch, OctetTables& out) const;

  const CoarseTables& tables_;
  std::size_t first_;
  std::size_t count_;
  ScoreWindow window_;
  std::vector<int> weights_;  // [row][column][plane] of the window
  std::vector<unsigned char> counts_;
};

void Octet::fill(int number) {
  const CoarseTables::Plane& plane = tables_.planes[first_ + static_cast<std::size_t>(number)];
  const int left = plane.left - window_.left;
  for (int y = 0; y < plane.height; ++y) {
    for (int x = 0; x < plane.width; ++x) {
      weights_[at(number, left + x, plane.top - window_.top + y)] =
          plane.taps[static_cast<std::size_t>(y) * static_cast<std::size_t>(plane.width) +
                     static_cast<std::size_t>(x)];
    }
  }
  for (const MaskRun& run : plane.runs)
    for (int x = run.begin; x < run.end; ++x)
      counts_[at(number, x - window_.left, run.row - window_.top)] = 1;
}

bool Octet::counts_for_any(int column, int row) const {
  const auto* pixel = &counts_[at(0, column, row)];
  return std::any_of(pixel, pixel + kStripWidth * kOctet, [](unsigned char c) { return c != 0; });
}

// Each strip from the first row on that some mask has to the last, one strip beside the other.
std::vector<Stretch> Octet::strips() const {
  std::vector<Stretch> out;
  for (int column = 0; column + kStripWidth <= window_.columns; column += kStripWidth) {
    int begin = 0;
    int end = window_.rows;
    while (begin < end && !counts_for_any(column, begin)) ++begin;
    while (end > begin && !counts_for_any(column, end - 1)) --end;
    if (end > begin) out.push_back({column, begin, end - begin});
  }
  return out;
}

// How many pieces of at most `rows` rows the strips come to.
int pieces(const std::vector<Stretch>& strips, int rows) {
  return std::accumulate(strips.begin(), strips.end(), 0, [&](int sum, const Stretch& strip) {
    return sum + (strip.rows + rows - 1) / rows;
  });
}

// The strips cut into pieces of at most `rows` rows, four at most.
std::vector<Stretch> cut(const std::vector<Stretch>& strips, int rows) {
  std::vector<Stretch> out;
  for (const Stretch& strip : strips)
    for (int row = 0; row < strip.rows; row += rows)
      out.push_back({strip.column, strip.row + row, std::min(rows, strip.rows - row)});
  return out;
}

// The first `rows` rows of the four longest strips, which are taken off them.
Course take_course(std::vector<Stretch>& strips, int rows) {
  Course course{};
  course.steps = rows / kStepRows;
  for (std::size_t i = 0; i < kStrips; ++i) {
    Stretch& strip = strips[i];
    const int taken = std::min(rows, strip.rows);
    course.stretches.push_back({strip.column, strip.row, taken});
    strip.row += taken;
    strip.rows -= taken;
  }
  strips.erase(std::remove_if(strips.begin(), strips.end(),
                              [](const Stretch& strip) { return strip.rows == 0; }),
               strips.end());
  return course;
}

// At most four strips, cut into four as even as can be.
Course last_course(const std::vector<Stretch>& strips) {
  int rows = kStepRows;
  while (pieces(strips, rows) > kStrips) rows += kStepRows;
  return {cut(strips, rows), rows / kStepRows};
}

// In products' times; where a course begins, words are loaded for two.
int cost_of(const std::vector<Course>& courses) {
  constexpr int kBegin = 2;
  return std::accumulate(courses.begin(), courses.end(), 0,
                         [](int sum, const Course& course) { return sum + kBegin + course.steps; });
}

// Four strips at a time, as far as the shortest or as the longest of them goes, whichever takes
// less time in the end.
std::vector<Course> courses_of(std::vector<Stretch> strips) {
  if (strips.empty()) return {};
  if (strips.size() <= kStrips) return {last_course(strips)};
  std::stable_sort(strips.begin(), strips.end(),
                   [](const Stretch& a, const Stretch& b) { return a.rows > b.rows; });
  std::vector<Course> best;
  for (const std::size_t as_far_as : {kStrips - 1, 0}) {
    std::vector<Stretch> left = strips;
    std::vector<Course> courses = {
        take_course(left, rounded_up(strips[as_far_as].rows, kStepRows))};
    for (Course& course : courses_of(std::move(left))) courses.push_back(std::move(course));
    if (best.empty() || cost_of(courses) < cost_of(best)) best = std::move(courses);
  }
  return best;
}

// The part of a weight that is multiplied by 256, and the rest; both signed bytes.
int low_part(int weight) { return ((weight + 128) & 0xFF) - 128; }
int high_part(int weight) { return (weight - low_part(weight)) / 256; }

unsigned as_byte(int value, int place) {
  return (static_cast<unsigned>(value) & 0xFFU) << 8 * place;
}

void Octet::add_course(const Course& course, int pitch, OctetTables& out) const {
  CoarseStrips strips{};
  strips.steps = course.steps;
  // A stretch that has fewer rows than are multiplied begins further up rather than end below the
  // window.
  const int last = std::max(0, window_.rows - kStepRows * course.steps);
  for (std::size_t t = 0; t < course.stretches.size(); ++t)
    strips.at[t] = std::min(course.stretches[t].row, last) * pitch + course.stretches[t].column;
  out.strips.push_back(strips);
  for (int step = 0; step < course.steps; ++step) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto t = static_cast<std::size_t>(lane % kStrips);
      CoarseFactors factors{};
      CoarseMasks masks{};
      for (int k = 0; k < kStepRows && t < course.stretches.size(); ++k) {
        const Stretch& stretch = course.stretches[t];
        const int row = std::min(stretch.row, last) + kStepRows * step + k;
        if (row < stretch.row || row >= stretch.row + stretch.rows) continue;
        for (int i = 0; i < kStripWidth; ++i) {
          const std::size_t place = at(lane / kStrips, stretch.column + i, row);
          factors.high[k] |= as_byte(high_part(weights_[place]), i);
          factors.low[k] |= as_byte(low_part(weights_[place]), i);
          masks.counts[k] |= as_byte(counts_[place], i);
        }
      }
      out.factors.push_back(factors);
      out.masks.push_back(masks);
    }
  }
}

// What the octet's planes see of its positions, tile by tile.
class TileTables {
 public:
  TileTables(const CoarseTables& tables, std::size_t first, std::size_t count,
             const ScoreThreshold& threshold, OctetTables& out)
      : tables_(tables), first_(first), count_(count), threshold_(threshold), out_(out) {}
  void add_terms();
  void add_tiles();

 private:
  [[nodiscard]] CoarseTerms terms_of(int pixels, double sum, double inverse_norm) const;
  [[nodiscard]] CoarseTileKinds kinds_of(int across, int down);
  [[nodiscard]] int kind_of(std::size_t plane, std::int32_t block_class, int half);

  const CoarseTables& tables_;
  std::size_t first_;
  std::size_t count_;
  ScoreThreshold threshold_;
  OctetTables& out_;
  std::map<std::tuple<std::size_t, std::int32_t, int>, int> parts_;  // already on the list
};

CoarseTerms TileTables::terms_of(int pixels, double sum, double inverse_norm) const {
  if (pixels == 0) return {};
  CoarseTerms out{};
  out.pixels = static_cast<float>(pixels);
  out.mean = static_cast<float>(sum / pixels);
  out.gain = static_cast<float>(inverse_norm * pixels * estimate_gain(threshold_.score));
  out.inverted = threshold_.any_polarity ? -1.0F : 0.0F;
  return out;
}

void TileTables::add_terms() {
  for (std::size_t i = first_; i < first_ + count_; ++i)
    out_.terms.push_back(terms_of(tables_.planes[i].pixels, 0, tables_.planes[i].inverse_norm));
  out_.terms.resize(kOctet);         // a plane that is not there never scores
  out_.parts.resize(kScoreColumns);  // read where there is none
}

// Of half a block of a plane: its eight positions all, skipped, or on the list of parts.
int TileTables::kind_of(std::size_t plane, std::int32_t block_class, int half) {
  if (block_class < 0) return block_class;
  const auto known = parts_.find({plane, block_class, half});
  if (known != parts_.end()) return known->second;
  const CoarseTables::Plane& own = tables_.planes[plane];
  const CoarseTables::Border& border = own.border[static_cast<std::size_t>(block_class)];
  const int* pixels = border.pixels + half * kScoreColumns;
  const auto all_are = [&](int number) {
    return std::all_of(pixels, pixels + kScoreColumns, [&](int n) { return n == number; });
  };
  int kind = static_cast<int>(out_.parts.size()) / kScoreColumns;
  if (all_are(own.pixels)) {
    kind = kCoarseAllVisible;
  } else if (all_are(0)) {
    kind = kCoarseSkip;
  } else {
    for (int i = half * kScoreColumns; i < (half + 1) * kScoreColumns; ++i)
      out_.parts.push_back(
          terms_of(border.pixels[i], static_cast<double>(border.sum[i]), border.inverse_norm[i]));
  }
  parts_[{plane, block_class, half}] = kind;
  return kind;
}

CoarseTileKinds TileTables::kinds_of(int across, int down) {
  CoarseTileKinds out{};
  for (std::size_t i = 0; i < count_; ++i) {
    for (int row = 0; row < kScoreRows; ++row) {
      const int y = down * kScoreRows + row;
      out.kinds[i][row] = kCoarseSkip;
      if (y >= tables_.rows) continue;
      const auto block = static_cast<std::size_t>(y) * static_cast<std::size_t>(tables_.blocks) +
                         static_cast<std::size_t>(across / kTilesOfBlock);
      out.kinds[i][row] = kind_of(first_ + i, tables_.planes[first_ + i].block_class[block],
                                  across % kTilesOfBlock);
    }
  }
  return out;
}

void TileTables::add_tiles() {
  for (int down = 0; down * kScoreRows < tables_.rows; ++down) {
    for (int across = 0; across < kTilesOfBlock * tables_.blocks; ++across) {
      const CoarseTileKinds tile = kinds_of(across, down);
      const int* kinds = &tile.kinds[0][0];
      const auto all_are = [&](int kind) {
        return std::all_of(kinds, kinds + count_ * kScoreRows, [&](int k) { return k == kind; });
      };
      if (all_are(kCoarseAllVisible)) {
        out_.tiles.push_back(kTileAllVisible);
      } else if (all_are(kCoarseSkip)) {
        out_.tiles.push_back(kTileSkipped);
      } else {
        out_.tiles.push_back(static_cast<int>(out_.tile_kinds.size()));
        out_.tile_kinds.push_back(tile);
      }
    }
  }
}

OctetTables Octet::tables(const ScoreThreshold& threshold, int first_plane, int pitch) const {
  OctetTables out;
  for (const Course& course : courses_of(strips())) add_course(course, pitch, out);
  out.octet.strip_count = static_cast<int>(out.strips.size());
  out.octet.products = static_cast<int>(out.masks.size()) / kWarpSize;
  // The kernel loads one ahead.
  out.strips.resize(out.strips.size() + 1);
  out.factors.resize(out.factors.size() + kWarpSize);
  out.masks.resize(out.masks.size() + kWarpSize);
  TileTables seen(tables_, first_, count_, threshold, out);
  seen.add_terms();
  seen.add_tiles();
  out.octet.first_plane = first_plane + static_cast<int>(first_);
  return out;
}

}  // namespace

double estimate_gain(double threshold) {
  return 1 / std::max(kLeastEstimate, kEstimateSafety * threshold);
}

ScoreWindow score_window_of(const CoarseTables& tables) {
  const Box box = box_of(tables);
  ScoreWindow out;
  // Where words of the picture begin.
  const int off = ((tables.first_x + box.left) % 4 + 4) % 4;
  out.left = box.left - off;
  out.top = box.top;
  out.columns = rounded_up(box.right - out.left, kStripWidth);
  out.rows = box.bottom - box.top;
  return out;
}

std::optional<SearchOctets> octets_of(const CoarseTables& tables, const ScoreThreshold& threshold,
                                      int first_plane, int pitch) {
  SearchOctets out;
  out.window = score_window_of(tables);
  for (std::size_t first = 0; first < tables.planes.size();) {
    std::size_t count = 0;
    while (first + count < tables.planes.size() &&
           tables.planes[first + count].group == tables.planes[first].group)
      ++count;
    const Octet octet(tables, first, count, out.window);
    if (!octet.fits()) return std::nullopt;
    out.octets.push_back(octet.tables(threshold, first_plane, pitch));
    first += count;
  }
  return out;
}

}  // namespace patternd::cuda
