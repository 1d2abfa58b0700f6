#include "pipeline/components_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/components_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// What does not depend on the instruction set, once.
#ifndef PATTERND_PIPELINE_COMPONENTS_ROWS_TABLES
#define PATTERND_PIPELINE_COMPONENTS_ROWS_TABLES
namespace patternd::components {

// prefix[s][i]: how many of the bits 1..i of 2·s are set; i counts the pixels of a group of eight.
struct PrefixTable {
  alignas(8) std::uint8_t prefix[128][8];
};
constexpr PrefixTable make_prefix_table() {
  PrefixTable table{};
  for (unsigned s = 0; s < 128; ++s) {
    std::uint8_t count = 0;
    for (unsigned i = 0; i < 8; ++i) {
      count = static_cast<std::uint8_t>(count + ((2 * s) >> i & 1));
      table.prefix[s][i] = count;
    }
  }
  return table;
}
inline constexpr PrefixTable kPrefix = make_prefix_table();

}  // namespace patternd::components
#endif

HWY_BEFORE_NAMESPACE();
namespace patternd::components {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits 0..bit of a word.
HWY_INLINE std::uint64_t up_to(int bit) { return ~std::uint64_t{0} >> (63 - bit); }
HWY_INLINE int lowest(std::uint64_t word) { return __builtin_ctzll(word); }
HWY_INLINE std::uint32_t popcount(std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_popcountll(word));
}

// ---- pixels to bits

// 64 lanes' comparisons as a word: `compare(offset)` gives the mask of the lanes from that pixel.
template <class D, class Compare>
HWY_INLINE std::uint64_t mask_word(D d, const Compare& compare) {
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 64; i += kLanes) {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, compare(i), bytes);
    std::uint64_t part;
    std::memcpy(&part, bytes, sizeof part);
    word |= part << i;
  }
  return word;
}

// Fills the words of a row from `word(x)`, cuts what lies beyond the width, appends the zero word.
template <class Word>
HWY_INLINE void fill_words(int width, std::uint64_t* bits, const Word& word) {
  const std::size_t count = row_words(width);
  const auto w = static_cast<std::size_t>(width);
  std::size_t k = 0;
  for (; k * 64 < w; ++k) bits[k] = word(k * 64, k);
  if (w % 64 != 0) bits[k - 1] &= up_to(static_cast<int>(w % 64) - 1);
  for (; k < count; ++k) bits[k] = 0;
}

template <class T>
HWY_INLINE void threshold(const T* HWY_RESTRICT row, int width, T low, T high,
                          std::uint64_t* HWY_RESTRICT bits) {
  const hn::CappedTag<T, 64> d;
  // low <= v <= high is one comparison of v − low, which wraps, with the range's width.
  const auto base = hn::Set(d, low);
  const auto range = hn::Set(d, static_cast<T>(high - low));
  fill_words(width, bits, [&](std::size_t x, std::size_t) {
    return mask_word(d, [&](std::size_t i) {
      const auto v = hn::Sub(hn::LoadU(d, row + x + i), base);
      return hn::Eq(hn::Min(v, range), v);
    });
  });
}

void Threshold8(const std::uint8_t* row, int width, std::uint8_t low, std::uint8_t high,
                std::uint64_t* bits) {
  threshold(row, width, low, high, bits);
}
void Threshold16(const std::uint16_t* row, int width, std::uint16_t low, std::uint16_t high,
                 std::uint64_t* bits) {
  threshold(row, width, low, high, bits);
}

template <class T>
HWY_INLINE void similar(const T* a, const T* b, int width, T limit, bool narrow,
                        std::uint64_t* HWY_RESTRICT bits) {
  const hn::CappedTag<T, 64> d;
  const auto most = hn::Set(d, limit);
  fill_words(width, bits, [&](std::size_t x, std::size_t k) {
    const std::uint64_t word = mask_word(d, [&](std::size_t i) {
      const auto va = hn::LoadU(d, a + x + i);
      const auto vb = hn::LoadU(d, b + x + i);
      const auto difference = hn::Sub(hn::Max(va, vb), hn::Min(va, vb));
      return hn::Eq(hn::Min(difference, most), difference);
    });
    return narrow ? word & bits[k] : word;
  });
}

void Similar8(const std::uint8_t* a, const std::uint8_t* b, int width, std::uint8_t limit,
              bool narrow, std::uint64_t* bits) {
  similar(a, b, width, limit, narrow, bits);
}
void Similar16(const std::uint16_t* a, const std::uint16_t* b, int width, std::uint16_t limit,
               bool narrow, std::uint64_t* bits) {
  similar(a, b, width, limit, narrow, bits);
}

// ---- bits to runs

// A row's words while they are read from left to right, with what the word before hands on.
template <bool kEight>
struct Reader {
  std::uint64_t row_carry = 0;    // last pixel of the word before, this row
  std::uint64_t upper_carry = 0;  // and the row above
  std::uint64_t reach_carry = 0;
  std::uint32_t upper_count = 0;  // runs above that start before this word
};

// A pixel row as corners: with 8-connectivity runs [s, e] and [s', e'] of adjacent rows touch where
// the corner intervals [s, e + 1] and [s', e' + 1] meet, with 4 where the pixel intervals do.
template <bool kEight>
HWY_INLINE std::uint64_t corners(std::uint64_t word, std::uint64_t carry) {
  return kEight ? word | word << 1 | carry : word;
}

template <bool kEight>
void find_runs_as(const std::uint64_t* HWY_RESTRICT bits, const std::uint64_t* HWY_RESTRICT upper,
                  int width, RowRuns& runs) {
  Reader<kEight> at;
  std::uint16_t* HWY_RESTRICT start = runs.start;
  std::uint16_t* HWY_RESTRICT end = runs.end;
  std::uint16_t* HWY_RESTRICT first_upper = runs.first_upper;
  Join* HWY_RESTRICT joins = runs.joins;
  std::uint32_t started = 0;
  std::uint32_t ended = 0;
  const std::size_t words = row_words(width) - 1;
  for (std::size_t k = 0; k < words; ++k) {
    const std::uint64_t m = bits[k];
    const std::uint64_t u = upper[k];
    const std::uint64_t upper_starts = u & ~(u << 1 | at.upper_carry);
    if ((m | at.row_carry) == 0) {
      at.upper_count += popcount(upper_starts);
      at.upper_carry = u >> 63;
      at.reach_carry = 0;
      continue;
    }
    const std::uint64_t starts = m & ~(m << 1 | at.row_carry);
    const std::uint64_t ends = m & ~(m >> 1 | bits[k + 1] << 63);
    const std::uint64_t upper_corners = corners<kEight>(u, at.upper_carry);
    // Pixels of a run at or behind the first corner that the row above touches: adding the touched
    // pixels to the run lets a carry ripple from there to the run's end.
    const std::uint64_t touched = (upper_corners & m) | (at.reach_carry & m);
    const std::uint64_t reached = (m & ~(m + touched)) | touched;
    // A run above that starts where this row's run was touched before: a further touch.
    std::uint64_t further =
        upper_starts & corners<kEight>(m, at.row_carry) & (reached << 1 | at.reach_carry);
    const std::uint64_t next_corner = kEight ? (upper[k + 1] & 1) | u >> 63 : 0;
    const std::uint64_t touched_by_end =
        kEight ? reached | upper_corners >> 1 | next_corner << 63 : reached;
    const auto base = static_cast<int>(k * 64);

    for (; further != 0; further &= further - 1) {
      const std::uint64_t below = up_to(lowest(further));
      joins->run = static_cast<std::uint16_t>(started + popcount(starts & below));
      joins->upper = static_cast<std::uint16_t>(at.upper_count + popcount(upper_starts & below));
      ++joins;
    }
    for (std::uint64_t rest = starts; rest != 0; rest &= rest - 1) {
      const int bit = lowest(rest);
      start[started] = static_cast<std::uint16_t>(base + bit);
      // The run above that covers this corner, else the next one.
      first_upper[started] = static_cast<std::uint16_t>(
          at.upper_count + popcount(upper_starts & up_to(bit)) + 1 - (upper_corners >> bit & 1));
      ++started;
    }
    for (std::uint64_t rest = ends; rest != 0; rest &= rest - 1) {
      const int bit = lowest(rest);
      end[ended] = static_cast<std::uint16_t>(base + bit);
      const std::uint64_t touches = touched_by_end >> bit & 1;
      first_upper[ended] = static_cast<std::uint16_t>(first_upper[ended] & (0 - touches));
      ++ended;
    }
    at.upper_count += popcount(upper_starts);
    at.row_carry = m >> 63;
    at.upper_carry = u >> 63;
    at.reach_carry = reached >> 63;
  }
  runs.count = started;
  runs.join_count = static_cast<std::size_t>(joins - runs.joins);
}

void FindRuns(const std::uint64_t* bits, const std::uint64_t* upper, int width, bool eight,
              RowRuns& runs) {
  if (eight)
    find_runs_as<true>(bits, upper, width, runs);
  else
    find_runs_as<false>(bits, upper, width, runs);
}

// Notes a touch: the first of a run is where it takes its label from.
HWY_INLINE void add_touch(RowRuns& runs, std::uint32_t run, std::uint32_t upper) {
  std::uint16_t& first = runs.first_upper[run - 1];
  if (first == 0) {
    first = static_cast<std::uint16_t>(upper);
  } else if (first != upper) {
    runs.joins[runs.join_count++] = {static_cast<std::uint16_t>(run),
                                     static_cast<std::uint16_t>(upper)};
  }
}

void FindSimilarRuns(const SimilarityBits& bits, int width, RowRuns& runs) {
  const std::size_t words = (static_cast<std::size_t>(width) + 63) / 64;
  std::uint32_t started = 0;
  std::uint32_t upper_started = 0;
  std::uint64_t up_carry = 0;
  std::uint64_t left_carry = 0;
  std::uint64_t right_carry = 0;
  std::uint64_t upper_starts_carry = 0;
  runs.join_count = 0;
  for (std::size_t k = 0; k < words; ++k) {
    const std::uint64_t starts = bits.starts[k];
    const std::uint64_t upper_starts = bits.upper_starts[k];
    const std::uint64_t starts_right = starts >> 1 | bits.starts[k + 1] << 63;
    const std::uint64_t upper_starts_right = upper_starts >> 1 | bits.upper_starts[k + 1] << 63;
    const std::uint64_t upper_starts_left = upper_starts << 1 | upper_starts_carry;
    const std::uint64_t up = bits.up[k];
    const std::uint64_t left = bits.up_left[k];
    const std::uint64_t right = bits.up_right[k];
    const std::uint64_t up_before = up << 1 | up_carry;
    const std::uint64_t up_after = up >> 1 | bits.up[k + 1] << 63;
    // Of touches between the same two runs one is enough.
    const std::uint64_t new_up = up & ~(up_before & ~starts & ~upper_starts);
    const std::uint64_t new_left = left & ~(up & ~upper_starts) & ~(up_before & ~starts) &
                                   ~((left << 1 | left_carry) & ~starts & ~upper_starts_left);
    const std::uint64_t new_right = right & ~(up & ~upper_starts_right) &
                                    ~(up_after & ~starts_right) &
                                    ~((right << 1 | right_carry) & ~starts & ~upper_starts_right);

    for (std::uint64_t rest = starts; rest != 0; rest &= rest - 1) {
      const auto x = static_cast<std::uint16_t>(k * 64 + static_cast<unsigned>(lowest(rest)));
      const std::uint32_t i = started + popcount(starts & up_to(lowest(rest))) - 1;
      runs.start[i] = x;
      runs.first_upper[i] = 0;
      if (i > 0) runs.end[i - 1] = static_cast<std::uint16_t>(x - 1);
    }
    for (std::uint64_t rest = new_left | new_up | new_right; rest != 0; rest &= rest - 1) {
      const int bit = lowest(rest);
      const std::uint32_t run = started + popcount(starts & up_to(bit));
      const std::uint32_t above = upper_started + popcount(upper_starts & up_to(bit));
      if ((new_left >> bit & 1) != 0)
        add_touch(runs, run, above - static_cast<std::uint32_t>(upper_starts >> bit & 1));
      if ((new_up >> bit & 1) != 0) add_touch(runs, run, above);
      if ((new_right >> bit & 1) != 0)
        add_touch(runs, run, above + static_cast<std::uint32_t>(upper_starts_right >> bit & 1));
    }
    started += popcount(starts);
    upper_started += popcount(upper_starts);
    up_carry = up >> 63;
    left_carry = left >> 63;
    right_carry = right >> 63;
    upper_starts_carry = upper_starts >> 63;
  }
  runs.end[started - 1] = static_cast<std::uint16_t>(width - 1);
  runs.count = started;
}

// ---- runs to labels and statistics

template <class T>
struct RunIntensity {
  std::uint64_t sum;
  bool exceeds;  // some pixel is larger than the peak given
};

#if HWY_TARGET == HWY_SCALAR
// Sum of `count` pixels, and whether one exceeds `peak`.
template <class T>
HWY_INLINE RunIntensity<T> measure(const T* run, std::size_t count, T peak) {
  RunIntensity<T> measured{0, false};
  for (std::size_t i = 0; i < count; ++i) {
    measured.sum += run[i];
    measured.exceeds |= run[i] > peak;
  }
  return measured;
}
#else
// Sum of `count` pixels, and whether one exceeds `peak`.
HWY_INLINE RunIntensity<std::uint8_t> measure(const std::uint8_t* HWY_RESTRICT run,
                                              std::size_t count, std::uint8_t peak) {
  const hn::CappedTag<std::uint8_t, 16> d;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  auto sums = hn::Zero(d64);
  const auto peaks = hn::Set(d, peak);
  auto most = peaks;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto v = hn::LoadU(d, run + i);
    sums = hn::Add(sums, hn::SumsOf8(v));
    most = hn::Max(most, v);
  }
  if (i < count) {
    const auto v = hn::IfThenElseZero(hn::FirstN(d, count - i), hn::LoadU(d, run + i));
    sums = hn::Add(sums, hn::SumsOf8(v));
    most = hn::Max(most, v);
  }
  return {hn::GetLane(hn::SumOfLanes(d64, sums)), !hn::AllTrue(d, hn::Eq(most, peaks))};
}

HWY_INLINE RunIntensity<std::uint16_t> measure(const std::uint16_t* HWY_RESTRICT run,
                                               std::size_t count, std::uint16_t peak) {
  const hn::CappedTag<std::uint16_t, 8> d;
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  // A lane adds up at most 32767 / 4 values below 2^16: under 2^32.
  auto sums = hn::Zero(d32);
  const auto low_half = hn::Set(d32, 0xFFFF);
  const auto peaks = hn::Set(d, peak);
  auto most = peaks;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto loaded = hn::LoadU(d, run + i);
    const auto v =
        i + kLanes <= count ? loaded : hn::IfThenElseZero(hn::FirstN(d, count - i), loaded);
    const auto pairs = hn::BitCast(d32, v);
    sums = hn::Add(sums, hn::Add(hn::And(pairs, low_half), hn::ShiftRight<16>(pairs)));
    most = hn::Max(most, v);
  }
  HWY_ALIGN std::uint32_t lanes[hn::MaxLanes(d32)];
  hn::Store(sums, d32, lanes);
  std::uint64_t sum = 0;
  for (const std::uint32_t lane : lanes) sum += lane;
  return {sum, !hn::AllTrue(d, hn::Eq(most, peaks))};
}

#endif

// Moves the peak to the run's first largest pixel; rare, since peaks soon stand.
template <class T>
HWY_NOINLINE void raise_peak(const T* row, std::size_t first, std::size_t last, int y,
                             Intensity& intensity) {
  std::size_t at = first;
  for (std::size_t x = first; x <= last; ++x)
    if (row[x] > row[at]) at = x;
  intensity.peak = row[at];
  intensity.peak_x = static_cast<std::uint16_t>(at);
  intensity.peak_y = static_cast<std::uint16_t>(y);
}

// Labels: inherited from the first run above, else the next new one. Without a branch, which noise
// would mispredict: the slot behind the last label is made ready whether this run needs it or not.
HWY_INLINE void give_labels(const RowRuns& runs, const std::uint32_t* HWY_RESTRICT upper_labels,
                            std::uint32_t* HWY_RESTRICT labels, Forest& forest) {
  std::uint32_t* const HWY_RESTRICT parent = forest.parent;
  const std::uint16_t* const HWY_RESTRICT first_upper = runs.first_upper;
  const std::uint16_t* const HWY_RESTRICT start = runs.start;
  std::uint16_t* HWY_RESTRICT fresh_start = runs.fresh_start;
  std::uint32_t next = forest.next;
  labels[0] = 0;
  for (std::size_t i = 0; i < runs.count; ++i) {
    const std::uint32_t inherited = parent[upper_labels[first_upper[i]]];
    const std::uint32_t is_new = (inherited - 1) >> 31;  // labels are below 2^31
    parent[next] = next;
    *fresh_start = start[i];
    labels[i + 1] = inherited + (next & (0 - is_new));
    next += is_new;
    fresh_start += is_new;
  }
  forest.next = next;
}

// What every run adds to its component, for many runs at once.
HWY_INLINE void sum_runs(const RowRuns& runs, int y) {
  const hn::CappedTag<std::uint32_t, kRunTail> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d16;
  const auto one = hn::Set(d, 1);
  const auto row_y = hn::Set(d, static_cast<std::uint32_t>(y));
  const auto low_half = hn::Set(d, 0xFFFF);
  for (std::size_t i = 0; i < runs.count; i += hn::MaxLanes(d)) {
    const auto first = hn::PromoteTo(d, hn::LoadU(d16, runs.start + i));
    const auto last = hn::PromoteTo(d, hn::LoadU(d16, runs.end + i));
    const auto length = hn::Add(hn::Sub(last, first), one);
    hn::StoreInterleaved2(hn::Mul(hn::Add(first, last), length), hn::Mul(length, row_y), d,
                          runs.sums + 2 * i);
    hn::StoreU(length, d, runs.length + i);
    hn::StoreU(hn::Or(hn::ShiftLeft<16>(last), hn::Xor(first, low_half)), d, runs.sides + i);
  }
}

// The greater of each side of the box.
HWY_INLINE void widen_box(Geometry& geometry, std::uint64_t sides) {
#if HWY_TARGET == HWY_SCALAR
  std::uint16_t other[4];
  std::memcpy(other, &sides, sizeof other);
  std::uint16_t* const box = &geometry.left_from_end;
  for (int i = 0; i < 4; ++i) box[i] = box[i] < other[i] ? other[i] : box[i];
#else
  const hn::FixedTag<std::uint16_t, 4> d;
  const hn::FixedTag<std::uint64_t, 1> d64;
  hn::StoreU(hn::Max(hn::LoadU(d, &geometry.left_from_end), hn::BitCast(d, hn::Set(d64, sides))), d,
             &geometry.left_from_end);
#endif
}

HWY_INLINE void add_geometry(const RowRuns& runs, int y, const std::uint32_t* HWY_RESTRICT labels,
                             Geometry* HWY_RESTRICT geometry) {
  const auto row_y = static_cast<std::uint64_t>(y);
  const std::uint64_t row_sides = row_y << 48 | (65535 - row_y) << 32;
  for (std::size_t i = 0; i < runs.count; ++i) {
    Geometry& to = geometry[labels[i + 1]];
    to.sum_2x += runs.sums[2 * i];
    to.sum_y += runs.sums[2 * i + 1];
    to.area += runs.length[i];
    widen_box(to, row_sides | runs.sides[i]);
  }
}

HWY_INLINE void add_moments(const RowRuns& runs, int y, const std::uint32_t* HWY_RESTRICT labels,
                            const std::uint64_t* HWY_RESTRICT squares,
                            Moments* HWY_RESTRICT moments) {
  const auto row_y = static_cast<std::uint64_t>(y);
  for (std::size_t i = 0; i < runs.count; ++i) {
    Moments& to = moments[labels[i + 1]];
    to.xx += squares[runs.end[i] + 1] - squares[runs.start[i]];
    to.yy += row_y * runs.sums[2 * i + 1];
    to.xy += row_y * (runs.sums[2 * i] / 2);
  }
}

template <class T>
HWY_INLINE void add_intensity(const RowRuns& runs, int y, const T* HWY_RESTRICT row,
                              const std::uint32_t* HWY_RESTRICT labels,
                              Intensity* HWY_RESTRICT intensity) {
  for (std::size_t i = 0; i < runs.count; ++i) {
    Intensity& to = intensity[labels[i + 1]];
    const std::size_t first = runs.start[i];
    const auto measured = measure(row + first, runs.length[i], static_cast<T>(to.peak));
    to.sum += measured.sum;
    if (HWY_UNLIKELY(measured.exceeds)) raise_peak(row, first, runs.end[i], y, to);
  }
}

template <class T>
HWY_INLINE void label_runs_with(const RowRuns& runs, int y, const T* row,
                                const std::uint32_t* upper_labels, std::uint32_t* labels,
                                Forest& forest) {
  const std::uint32_t old_end = forest.next;
  give_labels(runs, upper_labels, labels, forest);
  const std::size_t fresh = forest.next - old_end;
  std::memset(forest.geometry + old_end, 0, fresh * sizeof(Geometry));
  sum_runs(runs, y);
  add_geometry(runs, y, labels, forest.geometry);
  if (forest.moments != nullptr) {
    std::memset(forest.moments + old_end, 0, fresh * sizeof(Moments));
    add_moments(runs, y, labels, forest.squares, forest.moments);
  }
  if (forest.intensity != nullptr) {
    for (std::size_t i = 0; i < fresh; ++i)
      forest.intensity[old_end + i] = {0, 0, runs.fresh_start[i], static_cast<std::uint16_t>(y)};
    add_intensity(runs, y, row, labels, forest.intensity);
  }
  for (std::size_t i = 0; i < runs.join_count; ++i) {
    std::uint32_t& label = labels[runs.joins[i].run];
    const std::uint32_t other = upper_labels[runs.joins[i].upper];
    if (label != other) label = unite(forest.parent, label, other);
  }
}

void LabelRuns8(const RowRuns& runs, int y, const std::uint8_t* row,
                const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest) {
  label_runs_with(runs, y, row, upper_labels, labels, forest);
}
void LabelRuns16(const RowRuns& runs, int y, const std::uint16_t* row,
                 const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest) {
  label_runs_with(runs, y, row, upper_labels, labels, forest);
}

// ---- labels to pixels

#if HWY_TARGET == HWY_SCALAR
template <class D>
HWY_INLINE void write_word(D, std::uint64_t inside, std::uint64_t starts,
                           const std::uint32_t* labels, std::uint32_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    labels += starts >> i & 1;
    out[i] = (inside >> i & 1) != 0 ? *labels : 0;
  }
}
#else
// The labels of up to 64 pixels: for each group of lanes, the labels of its runs are loaded at once
// and spread by how many runs start up to each pixel.
template <class D>
HWY_INLINE void write_word(D d, std::uint64_t inside, std::uint64_t starts,
                           const std::uint32_t* HWY_RESTRICT labels,
                           std::uint32_t* HWY_RESTRICT out, std::size_t count) {
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const hn::Rebind<std::uint8_t, D> d8;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const std::uint64_t group = starts >> i;
    const std::uint32_t* from = labels + popcount(starts & ~(~std::uint64_t{0} << i)) + (group & 1);
    HWY_ALIGN std::uint8_t index[16];
    std::memcpy(index, kPrefix.prefix[group >> 1 & 127], 8);
    if (kLanes > 8) {
      std::uint64_t high;
      std::memcpy(&high, kPrefix.prefix[group >> 9 & 127], 8);
      high += popcount(group & 0x1FE) * 0x0101010101010101U;
      std::memcpy(index + 8, &high, 8);
    }
    const auto indices = hn::PromoteTo(hn::Rebind<std::int32_t, D>(), hn::Load(d8, index));
    const auto spread = hn::TableLookupLanes(hn::LoadU(d, from), hn::IndicesFromVec(d, indices));
    const std::uint64_t mask = inside >> i;
    std::uint8_t mask_bytes[8];
    std::memcpy(mask_bytes, &mask, 8);
    const auto labelled = hn::IfThenElseZero(hn::LoadMaskBits(d, mask_bytes), spread);
    if (i + kLanes <= count) {
      hn::StoreU(labelled, d, out + i);
    } else {
      HWY_ALIGN std::uint32_t last[kLanes];
      hn::Store(labelled, d, last);
      std::memcpy(out + i, last, (count - i) * sizeof *out);
    }
  }
}

#endif

void WriteLabels(const std::uint64_t* bits, const std::uint32_t* labels, int width,
                 bool every_pixel, std::int32_t* out) {
  const hn::CappedTag<std::uint32_t, 16> d;
  auto* const pixels = reinterpret_cast<std::uint32_t*>(out);
  std::uint64_t carry = 0;
  for (int x = 0; x < width; x += 64) {
    const std::uint64_t word = bits[x / 64];
    const std::uint64_t inside = every_pixel ? ~std::uint64_t{0} : word;
    const std::uint64_t starts = every_pixel ? word : word & ~(word << 1 | carry);
    carry = word >> 63;
    const auto count = static_cast<std::size_t>(width - x < 64 ? width - x : 64);
    if (starts == 0 && count == 64 && (inside == 0 || inside == ~std::uint64_t{0})) {
      const auto same = hn::Set(d, inside == 0 ? 0 : *labels);
      for (std::size_t i = 0; i < 64; i += hn::MaxLanes(d)) hn::StoreU(same, d, pixels + x + i);
    } else {
      write_word(d, inside, starts, labels, pixels + x, count);
      labels += popcount(starts);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace patternd::components
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd::components {
HWY_EXPORT(Threshold8);
HWY_EXPORT(Threshold16);
HWY_EXPORT(Similar8);
HWY_EXPORT(Similar16);
HWY_EXPORT(FindRuns);
HWY_EXPORT(FindSimilarRuns);
HWY_EXPORT(LabelRuns8);
HWY_EXPORT(LabelRuns16);
HWY_EXPORT(WriteLabels);

void threshold_row(const std::uint8_t* row, int width, std::uint8_t low, std::uint8_t high,
                   std::uint64_t* bits) {
  HWY_DYNAMIC_DISPATCH(Threshold8)(row, width, low, high, bits);
}
void threshold_row(const std::uint16_t* row, int width, std::uint16_t low, std::uint16_t high,
                   std::uint64_t* bits) {
  HWY_DYNAMIC_DISPATCH(Threshold16)(row, width, low, high, bits);
}
void similar_row(const std::uint8_t* a, const std::uint8_t* b, int width, std::uint8_t limit,
                 bool narrow, std::uint64_t* bits) {
  HWY_DYNAMIC_DISPATCH(Similar8)(a, b, width, limit, narrow, bits);
}
void similar_row(const std::uint16_t* a, const std::uint16_t* b, int width, std::uint16_t limit,
                 bool narrow, std::uint64_t* bits) {
  HWY_DYNAMIC_DISPATCH(Similar16)(a, b, width, limit, narrow, bits);
}
void find_runs(const std::uint64_t* bits, const std::uint64_t* upper, int width, bool eight,
               RowRuns& runs) {
  HWY_DYNAMIC_DISPATCH(FindRuns)(bits, upper, width, eight, runs);
}
void find_similar_runs(const SimilarityBits& bits, int width, RowRuns& runs) {
  HWY_DYNAMIC_DISPATCH(FindSimilarRuns)(bits, width, runs);
}
void label_runs(const RowRuns& runs, int y, const std::uint8_t* row,
                const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest) {
  HWY_DYNAMIC_DISPATCH(LabelRuns8)(runs, y, row, upper_labels, labels, forest);
}
void label_runs(const RowRuns& runs, int y, const std::uint16_t* row,
                const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest) {
  HWY_DYNAMIC_DISPATCH(LabelRuns16)(runs, y, row, upper_labels, labels, forest);
}
void write_labels(const std::uint64_t* bits, const std::uint32_t* labels, int width,
                  bool every_pixel, std::int32_t* out) {
  HWY_DYNAMIC_DISPATCH(WriteLabels)(bits, labels, width, every_pixel, out);
}

}  // namespace patternd::components
#endif
