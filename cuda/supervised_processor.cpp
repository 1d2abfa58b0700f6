#include "cuda/supervised_processor.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace patternd::cuda {
namespace {

class SupervisedProcessor final : public FrameProcessor {
 public:
  SupervisedProcessor(std::unique_ptr<FrameProcessor> gpu, std::unique_ptr<FrameProcessor> cpu,
                      const std::optional<BlobParams>& blobs, Supervision supervision)
      : gpu_(std::move(gpu)),
        cpu_(std::move(cpu)),
        supervision_(std::move(supervision)),
        subtracts_frame_before_(blobs && blobs->reference == BlobParams::Reference::kAlternate),
        frames_(gpu_->depth()) {
    if (blobs) gpus_blobs_.reserve(static_cast<std::size_t>(blobs->max_blobs));
  }

  [[nodiscard]] std::size_t depth() const override { return frames_.size(); }
  [[nodiscard]] Result<void> submit(const RawImageView& frame) override;
  [[nodiscard]] bool ready() const override { return !frames_[first_].on_gpu || gpu_->ready(); }
  [[nodiscard]] Result<void> collect(FrameResult& result) override;
  [[nodiscard]] const char* backend() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return gpu_ || !cpu_ ? "cuda" : "cpu";
  }
  [[nodiscard]] std::string description() const override;

 private:
  // A frame in flight; what the GPU does not compute the CPU does when it is collected.
  struct Frame {
    RawImageView image;
    bool on_gpu = false;
    bool first = false;         // of all
    bool first_on_gpu = false;  // since it was opened
  };
  [[nodiscard]] Result<void> on_cpu(const Frame& frame, FrameResult& result);
  [[nodiscard]] Result<void> count_and_process(const Frame& frame, FrameResult& result);
  [[nodiscard]] Result<void> search_again(const Frame& frame, FrameResult& result);
  void note_success(const Frame& frame);
  void note_failure(const Error& error);
  void note_first_of_its_own(const Frame& frame);
  void reopen();

  // Written by the frames' thread alone, under the lock that other threads read under.
  mutable std::mutex mutex_;
  std::unique_ptr<FrameProcessor> gpu_;  // null while it is lost
  std::uint64_t frames_by_cpu_ = 0;
  std::uint64_t blobs_left_out_ = 0;  // frames whose frame before the other processor had
  std::string last_error_;

  const std::unique_ptr<FrameProcessor> cpu_;  // null: there is none to fall back on
  const Supervision supervision_;
  const bool subtracts_frame_before_;
  std::vector<Frame> frames_;  // a ring; the oldest in flight is at first_
  std::size_t first_ = 0;
  std::size_t in_flight_ = 0;
  std::int64_t opened_ns_ = 0;  // when the GPU was, last
  std::int64_t next_try_ns_ = 0;
  std::int64_t pause_ns_ = Supervision::kFirstPauseNs;  // after the next failure
  bool first_ever_ = true;                              // is the next frame
  bool gpu_is_new_ = true;                              // and has had no frame
  bool cpu_had_last_ = false;                           // the frame collected last
  std::vector<Blob> gpus_blobs_;
};

Result<void> SupervisedProcessor::submit(const RawImageView& frame) {
  if (in_flight_ == frames_.size())
    return fail(ErrorCode::kInternal, "more frames submitted than may be in flight");
  if (!gpu_ && supervision_.now_ns() >= next_try_ns_) reopen();
  if (!gpu_ && !cpu_) return fail(ErrorCode::kDevice, last_error_);
  Frame& next = frames_[(first_ + in_flight_) % frames_.size()];
  next = {frame, false, first_ever_, false};
  if (gpu_) {
    Result<void> begun = gpu_->submit(frame);
    if (!begun && begun.error().code == ErrorCode::kInvalidArgument) return begun;
    next.on_gpu = begun.has_value();
    if (!begun) note_failure(begun.error());
    if (!begun && !cpu_) return begun;
    next.first_on_gpu = std::exchange(gpu_is_new_, false);
  }
  first_ever_ = false;
  ++in_flight_;
  return {};
}

Result<void> SupervisedProcessor::collect(FrameResult& result) {
  if (in_flight_ == 0) return fail(ErrorCode::kInternal, "no frame is in flight");
  const Frame frame = frames_[first_];
  first_ = (first_ + 1) % frames_.size();
  --in_flight_;
  if (!frame.on_gpu) return on_cpu(frame, result);
  Result<void> done = gpu_->collect(result);
  if (done) {
    note_success(frame);
    return done;
  }
  note_failure(done.error());
  if (!cpu_) return done;
  return gpu_ ? search_again(frame, result) : on_cpu(frame, result);
}

Result<void> SupervisedProcessor::on_cpu(const Frame& frame, FrameResult& result) {
  if (!cpu_) return fail(ErrorCode::kDevice, last_error_);
  if (!std::exchange(cpu_had_last_, true)) {
    cpu_->restart();
    note_first_of_its_own(frame);
  }
  return count_and_process(frame, result);
}

Result<void> SupervisedProcessor::count_and_process(const Frame& frame, FrameResult& result) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++frames_by_cpu_;
  }
  return cpu_->process(frame.image, result);
}

Result<void> SupervisedProcessor::search_again(const Frame& frame, FrameResult& result) {
  if (frame.first_on_gpu) note_first_of_its_own(frame);
  // Swapped, so that nothing is allocated and each vector keeps its memory.
  gpus_blobs_.swap(result.blobs);
  const std::uint64_t total = result.blobs_total;
  cpu_had_last_ = true;
  Result<void> done = count_and_process(frame, result);
  gpus_blobs_.swap(result.blobs);
  result.blobs_total = total;
  return done;
}

void SupervisedProcessor::note_success(const Frame& frame) {
  cpu_had_last_ = false;
  if (frame.first_on_gpu) note_first_of_its_own(frame);
  if (pause_ns_ > Supervision::kFirstPauseNs && supervision_.now_ns() - opened_ns_ >= pause_ns_)
    pause_ns_ = Supervision::kFirstPauseNs;
}

// The processor that does it has not done the frame before.
void SupervisedProcessor::note_first_of_its_own(const Frame& frame) {
  if (!subtracts_frame_before_ || frame.first) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++blobs_left_out_;
}

// Too many candidates is the frame's fault; anything else means that the GPU is of no more use, and
// that what else is in flight on it is the CPU's.
void SupervisedProcessor::note_failure(const Error& error) {
  std::unique_ptr<FrameProcessor> lost;  // ended without the lock: that may take a while
  const std::lock_guard<std::mutex> lock(mutex_);
  last_error_ = error.message;
  if (error.code == ErrorCode::kExhausted) return;
  lost.swap(gpu_);
  for (Frame& frame : frames_) frame.on_gpu = false;
  next_try_ns_ = supervision_.now_ns() + pause_ns_;
}

void SupervisedProcessor::reopen() {
  auto opened = supervision_.open_gpu();
  const std::lock_guard<std::mutex> lock(mutex_);
  pause_ns_ = std::min(2 * pause_ns_, Supervision::kLongestPauseNs);
  if (opened) {
    gpu_ = std::move(*opened);
    gpu_is_new_ = true;
    opened_ns_ = supervision_.now_ns();
    return;
  }
  last_error_ = opened.error().message;
  next_try_ns_ = supervision_.now_ns() + pause_ns_;
}

std::string SupervisedProcessor::description() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = gpu_   ? gpu_->description()
                     : cpu_ ? cpu_->description()
                            : "cuda, lost and to be opened anew: " + last_error_;
  if (frames_by_cpu_ > 0) {
    text += "; " + std::to_string(frames_by_cpu_) +
            " frames done by the CPU, the GPU's last error: " + last_error_;
  }
  if (blobs_left_out_ > 0) {
    text += "; blobs of " + std::to_string(blobs_left_out_) +
            " frames left out: GPU and CPU took turns, and the frame to subtract was the other's";
  }
  return text;
}

}  // namespace

std::unique_ptr<FrameProcessor> make_supervised_processor(std::unique_ptr<FrameProcessor> gpu,
                                                          std::unique_ptr<FrameProcessor> cpu,
                                                          const std::optional<BlobParams>& blobs,
                                                          Supervision supervision) {
  return std::make_unique<SupervisedProcessor>(std::move(gpu), std::move(cpu), blobs,
                                               std::move(supervision));
}

}  // namespace patternd::cuda
