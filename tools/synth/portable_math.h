// Functions whose results are the same bits on every machine: only +, −, ×, ÷, which IEEE 754
// rounds in one way. The C library's own may differ in the last bit between systems, and one bit is
// enough to turn a pixel.
#pragma once

namespace patternd::synth {

struct SinCos {
  double sin = 0;
  double cos = 1;
};

// Sine and cosine of an angle in degrees, |angle| up to 1e6; error under 1e-15. Multiples of 90°
// are exact.
[[nodiscard]] SinCos sin_cos_deg(double angle_deg);

// Natural logarithm of a positive finite number; relative error under 1e-15 away from 1.
[[nodiscard]] double natural_log(double value);

// e^value for |value| up to 700; relative error under 1e-13.
[[nodiscard]] double exponential(double value);

}  // namespace patternd::synth
