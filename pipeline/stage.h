// The stages of a frame's way, in its order, and the time each took.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace patternd {

// The keys of `latency_us`, in the order in which they are printed.
enum class Stage : std::uint8_t {
  kCapture,  // the driver's time stamp to the frame in our hands
  kRectify,  // conversion to luma and rectification
  kPyramid,
  kSearch,  // coarsest level, all angles and scales
  kNms,     // suppression of neighbours
  kTrace,   // down the pyramid
  kRefine,  // sub-pixel at level 0
  kBlobs,
  kPublish,  // result line written and handed to the clients' sockets
  kTotal,    // the driver's time stamp to the bytes handed over
};
inline constexpr std::size_t kStageCount = 10;
inline constexpr std::array<const char*, kStageCount> kStageNames = {
    "capture", "rectify", "pyramid", "search",  "nms",
    "trace",   "refine",  "blobs",   "publish", "total"};

// Nanoseconds a stage took for one frame; 0 where it did not run.
struct StageTimes {
  std::array<std::int64_t, kStageCount> ns{};
  std::int64_t& operator[](Stage stage) { return ns[static_cast<std::size_t>(stage)]; }
  std::int64_t operator[](Stage stage) const { return ns[static_cast<std::size_t>(stage)]; }
};

// CLOCK_MONOTONIC in nanoseconds: the clock of every latency and of the driver's time stamps.
inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Adds the time from its construction to its end to one stage:
//   { StageTimer timer(times, Stage::kPyramid); pyramid.build(image); }
class StageTimer {
 public:
  StageTimer(StageTimes& times, Stage stage) : slot_(times[stage]), start_ns_(monotonic_ns()) {}
  ~StageTimer() { slot_ += monotonic_ns() - start_ns_; }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  std::int64_t& slot_;
  std::int64_t start_ns_;
};

}  // namespace patternd
