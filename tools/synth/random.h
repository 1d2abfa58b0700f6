// Random numbers that are the same on every machine and library: counter-based, no std::
// distribution.
#pragma once

#include <cstdint>

namespace patternd::synth {

// A stream of numbers fixed by its seed and up to two further keys (frame, row, …), so that parts
// of a picture can be made in any order:
//   Random random(seed, frame, row);
//   pixel += sigma * random.gaussian();
// Source: SplitMix64 (Steele, Lea, Flood 2014); normal numbers by Marsaglia's polar method (1964).
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t key = 0, std::uint64_t second_key = 0);
  // All 64 bits.
  std::uint64_t bits();
  // [low, high), 53 bits of resolution.
  double uniform(double low = 0, double high = 1);
  // 0 … count − 1; count at least 1.
  std::uint64_t below(std::uint64_t count);
  // Mean 0, standard deviation 1.
  double gaussian();

 private:
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace patternd::synth
