#include "tools/synth/random.h"

#include <cmath>

#include "tools/synth/portable_math.h"

namespace patternd::synth {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t key, std::uint64_t second_key)
    : state_(mix(mix(mix(seed + kGolden) + key * kGolden + 1) + second_key * kGolden + 2)) {}

std::uint64_t Random::bits() {
  state_ += kGolden;
  return mix(state_);
}

double Random::uniform(double low, double high) {
  const double unit = static_cast<double>(bits() >> 11U) * 0x1p-53;
  return low + (high - low) * unit;
}

std::uint64_t Random::below(std::uint64_t count) {
  // The bias of the remainder is under count / 2^64.
  return bits() % count;
}

double Random::gaussian() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  for (;;) {
    const double x = uniform(-1, 1);
    const double y = uniform(-1, 1);
    const double square = x * x + y * y;
    if (square >= 1 || square == 0) continue;
    const double factor = std::sqrt(-2 * natural_log(square) / square);
    spare_ = y * factor;
    has_spare_ = true;
    return x * factor;
  }
}

}  // namespace patternd::synth
