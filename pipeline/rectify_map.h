// The map from output to input pixels in the form that the inner loop streams through.
//
// Each output row is cut into runs of eight pixels. A run's source positions are polynomials of the
// place t = i − 3.5 in it, fitted to the double-precision positions and checked, pixel by pixel,
// against them when the map is made; so is every address that the inner loop will read. That takes
// 2 bytes a pixel where eight sources lie in a window of 16 pixels and two or three rows of an
// 8-bit picture, and 4.5 elsewhere; a table of positions would take 5 to 12.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd {

inline constexpr int kRunLength = 8;
// Width in pixels of the window of an input row that a shuffle reaches.
inline constexpr int kWindowWidth = 16;

// For 8-bit pictures, all in 16-bit arithmetic: pixel i reads column base_x + (X >> 12) with
// fraction (X & 0xFFF) / 4096, and row base_y + (Y >> 15) with fraction (Y & 0x7FFF) / 32768, where
//   X = x0 + mul15(kRunPlace[i], x_slope) + mul15(kRunSquare[i], x_curve), and Y likewise.
// The inner loop loads this as one vector of eight 16-bit words.
struct WindowRun {
  std::uint16_t x0;
  std::int16_t x_slope;
  std::int16_t x_curve;
  std::uint16_t y0;
  std::int16_t y_slope;
  std::int16_t y_curve;
  std::int16_t base_x;
  std::int16_t base_y;
};
static_assert(sizeof(WindowRun) == 16);

// For all formats: position relative to (base_x, base_y) as cubics in t, in float, smallest power
// first.
struct CubicRun {
  float x[4];
  float y[4];
  std::int16_t base_x;
  std::int16_t base_y;
};

// One pixel by itself, at the border of the valid area or where a run doesn't fit. x < 0: no
// source.
struct LonePixel {
  std::int16_t x;
  std::int16_t y;
  float fraction_x;
  float fraction_y;
};

enum class RunKind : std::uint8_t {
  kOutside,      // count pixels without source
  kWindow,       // count WindowRuns, of input rows base_y to base_y + 2
  kCubic,        // count CubicRuns
  kCubicWindow,  // … whose sources lie in kWindowWidth columns of rows base_y to base_y + 2
  kLone,         // count LonePixels
};

// Neighbouring runs of one kind in one row of a job, starting at pixel (x, y) of the job's block.
struct Segment {
  std::uint32_t first = 0;  // index into the kind's own list
  std::uint16_t x = 0;
  std::uint16_t y = 0;
  std::uint16_t count = 0;
  RunKind kind = RunKind::kOutside;
};

// A block of the output that one thread does: segments [first_segment, the next job's).
struct RectifyJob {
  std::uint32_t first_segment = 0;
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// Most pixels of a job's block in a transposed map, so that it fits on the stack.
inline constexpr int kTransposedWidth = 128;
inline constexpr int kTransposedHeight = 32;

struct RectifyMap {
  PixelFormat format = PixelFormat::kGray8;
  int input_width = 0;
  int input_height = 0;
  int output_width = 0;
  int output_height = 0;
  double border = 0;
  std::vector<WindowRun> window_runs;
  std::vector<CubicRun> cubic_runs;
  std::vector<LonePixel> lone_pixels;
  std::vector<Segment> segments;
  std::vector<RectifyJob> jobs;
  // Where the output's rows run across the input's rows, runs go down the output's columns: the map
  // is that of the transposed output, whose rows then run along the input's, and each job's block
  // is transposed when it is done. Jobs, segments and runs count in the transposed output.
  bool transposed = false;
  Image valid;
  bool all_valid = true;

  [[nodiscard]] std::size_t end_segment(std::size_t job) const {
    return job + 1 < jobs.size() ? jobs[job + 1].first_segment : segments.size();
  }
  // What the inner loop streams through for one picture.
  [[nodiscard]] std::size_t size_bytes() const;
};

// Fails with kInvalidArgument (a border that the format can't hold) or kExhausted (no memory).
[[nodiscard]] Result<RectifyMap> make_rectify_map(const CameraModel& model, PixelFormat format);

}  // namespace patternd
