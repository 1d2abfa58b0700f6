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

// For each byte, what its eight bits say of eight pixels.
struct ByteTables {
  alignas(8) std::uint8_t positions[256][8];  // of the bits that are set, then zeros
  alignas(8) std::uint8_t bits[256][8];       // 1 where set
  alignas(8) std::uint8_t counts[256][8];     // bits set up to and with this one
};
constexpr ByteTables make_byte_tables() {
  ByteTables tables{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::uint8_t count = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const bool set = (byte >> i & 1) != 0;
      tables.bits[byte][i] = set ? 1 : 0;
      if (set) tables.positions[byte][count++] = static_cast<std::uint8_t>(i);
      tables.counts[byte][i] = count;
    }
  }
  return tables;
}
inline constexpr ByteTables kBytes = make_byte_tables();

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

// What one word of a row says about runs.
struct WordRuns {
  std::uint64_t starts;
  std::uint64_t ends;
  std::uint64_t upper_starts;
  std::uint64_t upper_corners;
  std::uint64_t touched_by_end;  // at a run's last pixel: it touches one above
  std::uint32_t upper_count;
  int base;  // x of bit 0
};

// Appends the runs of a word bit by bit. A run's first touch is with the run above that covers its
// first corner, else with the next one; if it touches one at all, which its end knows.
HWY_INLINE void append_few(const WordRuns& word, std::uint32_t& started, std::uint32_t& ended,
                           RowRuns& runs) {
  for (std::uint64_t rest = word.starts; rest != 0; rest &= rest - 1) {
    const int bit = lowest(rest);
    runs.start[started] = static_cast<std::uint16_t>(word.base + bit);
    runs.first_upper[started] =
        static_cast<std::uint16_t>(word.upper_count + popcount(word.upper_starts & up_to(bit)) + 1 -
                                   (word.upper_corners >> bit & 1));
    ++started;
  }
  for (std::uint64_t rest = word.ends; rest != 0; rest &= rest - 1) {
    const int bit = lowest(rest);
    runs.end[ended] = static_cast<std::uint16_t>(word.base + bit);
    runs.touches[ended] = static_cast<std::uint16_t>(0 - (word.touched_by_end >> bit & 1));
    ++ended;
  }
}

// A word with more runs than this is taken byte by byte, each by tables.
constexpr std::uint32_t kFewRuns = 6;

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void append_many(const WordRuns& word, std::uint32_t& started, std::uint32_t& ended,
                            RowRuns& runs) {
  append_few(word, started, ended, runs);
}
#else
HWY_INLINE void append_many(const WordRuns& word, std::uint32_t& started, std::uint32_t& ended,
                            RowRuns& runs) {
  const hn::FixedTag<std::uint8_t, 8> d8;
  const hn::FixedTag<std::uint16_t, 8> d16;
  const auto widened = [&](auto bytes, std::uint32_t add) {
    return hn::Add(hn::PromoteTo(d16, bytes), hn::Set(d16, static_cast<std::uint16_t>(add)));
  };
  std::uint32_t upper_count = word.upper_count;
  for (int shift = 0; shift < 64; shift += 8) {
    const auto byte = [shift](std::uint64_t bits) { return bits >> shift & 0xFF; };
    const auto x = static_cast<std::uint32_t>(word.base + shift);

    const auto starts = hn::Load(d8, kBytes.positions[byte(word.starts)]);
    hn::StoreU(widened(starts, x), d16, runs.start + started);
    const auto candidate = hn::Add(hn::Load(d8, kBytes.counts[byte(word.upper_starts)]),
                                   hn::Load(d8, kBytes.bits[byte(~word.upper_corners)]));
    hn::StoreU(widened(hn::TableLookupBytes(candidate, starts), upper_count), d16,
               runs.first_upper + started);

    const auto ends = hn::Load(d8, kBytes.positions[byte(word.ends)]);
    hn::StoreU(widened(ends, x), d16, runs.end + ended);
    const auto touches =
        hn::TableLookupBytes(hn::Load(d8, kBytes.bits[byte(word.touched_by_end)]), ends);
    hn::StoreU(hn::Sub(hn::Zero(d16), hn::PromoteTo(d16, touches)), d16, runs.touches + ended);

    started += popcount(byte(word.starts));
    ended += popcount(byte(word.ends));
    upper_count += popcount(byte(word.upper_starts));
  }
}
#endif

template <bool kEight>
void find_runs_as(const std::uint64_t* HWY_RESTRICT bits, const std::uint64_t* HWY_RESTRICT upper,
                  int width, RowRuns& runs) {
  Reader<kEight> at;
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
    const WordRuns word = {starts,         ends,           upper_starts, upper_corners,
                           touched_by_end, at.upper_count, base};
    if (popcount(starts) > kFewRuns)
      append_many(word, started, ended, runs);
    else
      append_few(word, started, ended, runs);
    at.upper_count += popcount(upper_starts);
    at.row_carry = m >> 63;
    at.upper_carry = u >> 63;
    at.reach_carry = reached >> 63;
  }
  runs.count = started;
  runs.join_count = static_cast<std::size_t>(joins - runs.joins);
  for (std::uint32_t i = 0; i < started; ++i) {
    runs.first_upper[i] = static_cast<std::uint16_t>(runs.first_upper[i] & runs.touches[i]);
  }
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

// Labels: inherited from the first run above, else the next new one; without a branch, which noise
// would mispredict. Notes where the runs with a new label start.
HWY_INLINE void give_labels(const RowRuns& runs, const std::uint32_t* HWY_RESTRICT upper_labels,
                            std::uint32_t* HWY_RESTRICT labels, Forest& forest) {
  std::uint32_t* const HWY_RESTRICT parent = forest.parent;
  const std::uint16_t* const HWY_RESTRICT first_upper = runs.first_upper;
  const std::uint16_t* const HWY_RESTRICT start = runs.start;
  std::uint16_t* const HWY_RESTRICT fresh_start = runs.fresh_start;
  const std::uint32_t old_end = forest.next;
  std::uint32_t fresh = 0;
  labels[0] = 0;
  for (std::size_t i = 0; i < runs.count; ++i) {
    const std::uint32_t inherited = parent[upper_labels[first_upper[i]]];
    const std::uint32_t is_new = (inherited - 1) >> 31;  // labels are below 2^31
    fresh_start[fresh] = start[i];
    labels[i + 1] = inherited + ((old_end + fresh) & (0 - is_new));
    fresh += is_new;
  }
  for (std::uint32_t i = 0; i < fresh; ++i) parent[old_end + i] = old_end + i;
  forest.next = old_end + fresh;
}

// What every run adds to its component, for many runs at once.
HWY_INLINE void sum_runs(const RowRuns& runs, int y) {
  const hn::CappedTag<std::uint32_t, kRunTail> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d16;
  const auto one = hn::Set(d, 1);
  const auto row_y = hn::Set(d, static_cast<std::uint32_t>(y));
  const auto low_half = hn::Set(d, 0xFFFF);
  auto* const sums = reinterpret_cast<std::uint32_t*>(runs.sums);
  for (std::size_t i = 0; i < runs.count; i += hn::MaxLanes(d)) {
    const auto first = hn::PromoteTo(d, hn::LoadU(d16, runs.start + i));
    const auto last = hn::PromoteTo(d, hn::LoadU(d16, runs.end + i));
    const auto length = hn::Add(hn::Sub(last, first), one);
    const auto sides = hn::Or(hn::ShiftLeft<16>(last), hn::Xor(first, low_half));
    hn::StoreInterleaved4(hn::Mul(hn::Add(first, last), length), hn::Mul(length, row_y), length,
                          sides, d, sums + 4 * i);
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void add_geometry(const RowRuns& runs, int y, const std::uint32_t* labels,
                             Geometry* geometry) {
  for (std::size_t i = 0; i < runs.count; ++i) {
    const RunSums& sums = runs.sums[i];
    const Geometry run = {sums.sum_2x,
                          sums.sum_y,
                          sums.length,
                          static_cast<std::uint16_t>(sums.sides & 0xFFFF),
                          static_cast<std::uint16_t>(sums.sides >> 16),
                          static_cast<std::uint16_t>(65535 - y),
                          static_cast<std::uint16_t>(y)};
    merge(geometry[labels[i + 1]], run);
  }
}
#else
// A Geometry as four 64-bit lanes: three sums, and the box of which each side grows.
HWY_INLINE void add_geometry(const RowRuns& runs, int y, const std::uint32_t* HWY_RESTRICT labels,
                             Geometry* HWY_RESTRICT geometry) {
  static_assert(sizeof(Geometry) == 4 * sizeof(std::uint64_t), "four lanes");
  const hn::CappedTag<std::uint64_t, 4> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  constexpr std::size_t kParts = 4 / kLanes;
  const hn::Rebind<std::uint32_t, decltype(d)> d32;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  const auto row_y = static_cast<std::uint64_t>(y);
  HWY_ALIGN const std::uint64_t is_sum_lanes[4] = {~std::uint64_t{0}, ~std::uint64_t{0},
                                                   ~std::uint64_t{0}, 0};
  HWY_ALIGN const std::uint64_t row_side_lanes[4] = {0, 0, 0, row_y << 48 | (65535 - row_y) << 32};
  const auto* const sums = reinterpret_cast<const std::uint32_t*>(runs.sums);
  for (std::size_t i = 0; i < runs.count; ++i) {
    auto* const to = reinterpret_cast<std::uint64_t*>(geometry + labels[i + 1]);
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t lane = part * kLanes;
      const auto is_sum = hn::Load(d, is_sum_lanes + lane);
      const auto run = hn::PromoteTo(d, hn::LoadU(d32, sums + 4 * i + lane));
      const auto sides = hn::Or(hn::AndNot(is_sum, run), hn::Load(d, row_side_lanes + lane));
      const auto sum = hn::Add(hn::LoadU(d, to + lane), hn::And(is_sum, run));
      const auto grown = hn::Max(hn::BitCast(d16, sum), hn::BitCast(d16, sides));
      hn::StoreU(hn::BitCast(d, grown), d, to + lane);
    }
  }
}
#endif

HWY_INLINE void add_moments(const RowRuns& runs, int y, const std::uint32_t* HWY_RESTRICT labels,
                            const std::uint64_t* HWY_RESTRICT squares,
                            Moments* HWY_RESTRICT moments) {
  const auto row_y = static_cast<std::uint64_t>(y);
  for (std::size_t i = 0; i < runs.count; ++i) {
    Moments& to = moments[labels[i + 1]];
    to.xx += squares[runs.end[i] + 1] - squares[runs.start[i]];
    to.yy += row_y * runs.sums[i].sum_y;
    to.xy += row_y * (runs.sums[i].sum_2x / 2);
  }
}

template <class T>
HWY_INLINE void sum_intensity(const RowRuns& runs, int y, const T* HWY_RESTRICT row,
                              const std::uint32_t* HWY_RESTRICT labels,
                              Intensity* HWY_RESTRICT intensity) {
  for (std::size_t i = 0; i < runs.count; ++i) {
    Intensity& to = intensity[labels[i + 1]];
    const std::size_t first = runs.start[i];
    const auto measured = measure(row + first, runs.sums[i].length, static_cast<T>(to.peak));
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
    sum_intensity(runs, y, row, labels, forest.intensity);
  }
  for (std::size_t i = 0; i < runs.join_count; ++i) {
    std::uint32_t& label = labels[runs.joins[i].run];
    const std::uint32_t other = upper_labels[runs.joins[i].upper];
    if (label != other) label = unite(forest.parent, label, other);
  }
}

void RepeatRuns(const RowRuns& runs, int first_y, int last_y, const std::uint32_t* labels,
                Forest& forest) {
  const auto rows = static_cast<std::uint64_t>(last_y - first_y) + 1;
  std::uint64_t y_sum = 0;
  std::uint64_t yy_sum = 0;
  for (int y = first_y; y <= last_y; ++y) {
    const auto wide = static_cast<std::uint64_t>(y);
    y_sum += wide;
    yy_sum += wide * wide;
  }
  for (std::size_t i = 0; i < runs.count; ++i) {
    Geometry& to = forest.geometry[labels[i + 1]];
    const RunSums& sums = runs.sums[i];
    to.sum_2x += rows * sums.sum_2x;
    to.sum_y += y_sum * sums.length;
    to.area += rows * sums.length;
    to.bottom = static_cast<std::uint16_t>(last_y);
    if (forest.moments == nullptr) continue;
    Moments& moments = forest.moments[labels[i + 1]];
    moments.xx += rows * (forest.squares[runs.end[i] + 1] - forest.squares[runs.start[i]]);
    moments.yy += yy_sum * sums.length;
    moments.xy += y_sum * (sums.sum_2x / 2);
  }
}

void AddIntensity8(const RowRuns& runs, int y, const std::uint8_t* row, const std::uint32_t* labels,
                   Forest& forest) {
  sum_intensity(runs, y, row, labels, forest.intensity);
}
void AddIntensity16(const RowRuns& runs, int y, const std::uint16_t* row,
                    const std::uint32_t* labels, Forest& forest) {
  sum_intensity(runs, y, row, labels, forest.intensity);
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
    std::memcpy(index, kBytes.counts[group & 0xFE], 8);
    if (kLanes > 8) {
      std::uint64_t high;
      std::memcpy(&high, kBytes.counts[group >> 8 & 0xFF], 8);
      high += popcount(group & 0xFE) * 0x0101010101010101U;
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
HWY_EXPORT(RepeatRuns);
HWY_EXPORT(AddIntensity8);
HWY_EXPORT(AddIntensity16);
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
void repeat_runs(const RowRuns& runs, int first_y, int last_y, const std::uint32_t* labels,
                 Forest& forest) {
  HWY_DYNAMIC_DISPATCH(RepeatRuns)(runs, first_y, last_y, labels, forest);
}
void add_intensity(const RowRuns& runs, int y, const std::uint8_t* row, const std::uint32_t* labels,
                   Forest& forest) {
  HWY_DYNAMIC_DISPATCH(AddIntensity8)(runs, y, row, labels, forest);
}
void add_intensity(const RowRuns& runs, int y, const std::uint16_t* row,
                   const std::uint32_t* labels, Forest& forest) {
  HWY_DYNAMIC_DISPATCH(AddIntensity16)(runs, y, row, labels, forest);
}
void write_labels(const std::uint64_t* bits, const std::uint32_t* labels, int width,
                  bool every_pixel, std::int32_t* out) {
  HWY_DYNAMIC_DISPATCH(WriteLabels)(bits, labels, width, every_pixel, out);
}

}  // namespace patternd::components
#endif
