// The arithmetic of one rectified pixel, in scalar form: what the map is checked with, what the
// vector loops compute lane by lane, and the whole of the scalar path. The same bits everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pipeline/rectify_map.h"

namespace patternd {

// (2i − 7)/8 and ((2i − 7)/8)² in 1/32768, i the pixel's place in its run.
inline constexpr std::array<std::int16_t, kRunLength> kRunPlace = {-28672, -20480, -12288, -4096,
                                                                   4096,   12288,  20480,  28672};
inline constexpr std::array<std::int16_t, kRunLength> kRunSquare = {25088, 12800, 4608,  512,
                                                                    512,   4608,  12800, 25088};
inline constexpr std::array<float, kRunLength> kRunT = {-3.5F, -2.5F, -1.5F, -0.5F,
                                                        0.5F,  1.5F,  2.5F,  3.5F};

// a·b / 32768, rounded half up: what the 16-bit vector instruction gives.
[[nodiscard]] inline int mul15(int a, int b) { return (a * b + 16384) >> 15; }

// X and Y of WindowRun, without the wrap to 16 bits.
[[nodiscard]] inline int window_word(int start, int slope, int curve, std::size_t i) {
  return start + mul15(kRunPlace[i], slope) + mul15(kRunSquare[i], curve);
}

[[nodiscard]] inline float cubic_at(const float (&c)[4], float t) {
  return ((c[3] * t + c[2]) * t + c[1]) * t + c[0];
}

// Between two 8-bit values (or two of these results), in 1/128 grey levels; the fraction in
// 1/32768.
[[nodiscard]] inline int blend_row8(int a, int b, int fraction) {
  return a * 128 + mul15((b - a) * 128, fraction);
}
[[nodiscard]] inline std::uint8_t blend8(const std::uint8_t* top, const std::uint8_t* bottom,
                                         int fraction_x, int fraction_y) {
  const int upper = blend_row8(top[0], top[1], fraction_x);
  const int lower = blend_row8(bottom[0], bottom[1], fraction_x);
  return static_cast<std::uint8_t>((upper + mul15(lower - upper, fraction_y) + 64) >> 7);
}

// A fraction in [0, 1) in 1/32768.
[[nodiscard]] inline int fraction15(float fraction) {
  return static_cast<int>(fraction * 32768.0F);
}

[[nodiscard]] inline float blend_float(float a, float b, float c, float d, float fraction_x,
                                       float fraction_y) {
  const float upper = a + (b - a) * fraction_x;
  const float lower = c + (d - c) * fraction_x;
  return upper + (lower - upper) * fraction_y;
}

// A float result, never negative, as a pixel: rounded half up for integers.
template <class T>
[[nodiscard]] inline T to_pixel(float value) {
  return static_cast<T>(value + 0.5F);  // NOLINT(bugprone-incorrect-roundings): not negative
}
template <>
[[nodiscard]] inline float to_pixel<float>(float value) {
  return value;
}

}  // namespace patternd
