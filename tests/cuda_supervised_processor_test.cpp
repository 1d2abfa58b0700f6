// What becomes of frames when the GPU fails, and when it is tried again, with processors and a
// clock made for it.
#include <algorithm>
#include <gmock/gmock.h>

#include "cuda/supervised_processor.h"

namespace patternd::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kSecondNs = 1'000'000'000;

const Error kLost{ErrorCode::kDevice, "the GPU is lost"};
const Error kTooMany{ErrorCode::kExhausted, "too many candidates"};

// Gives one match and one blob, both named for it, or an error.
class MadeProcessor final : public FrameProcessor {
 public:
  struct Orders {
    Result<void> submitted;
    Result<void> collected;
    int restarts = 0;
  };
  MadeProcessor(Orders& orders, int mark) : orders_(orders), mark_(mark) {}

  [[nodiscard]] std::size_t depth() const override { return 2; }
  [[nodiscard]] Result<void> submit(const RawImageView&) override { return orders_.submitted; }
  [[nodiscard]] bool ready() const override { return true; }
  [[nodiscard]] Result<void> collect(FrameResult& result) override {
    result.clear();
    result.blobs.resize(1);
    result.blobs[0].area_px = mark_;
    result.blobs_total = static_cast<std::uint64_t>(mark_);
    if (!orders_.collected) return orders_.collected;
    result.matches.resize(1);
    result.matches[0].x_px = mark_;
    return {};
  }
  void restart() override { ++orders_.restarts; }
  [[nodiscard]] const char* backend() const override { return "made"; }
  [[nodiscard]] std::string description() const override { return "made"; }

 private:
  Orders& orders_;
  const int mark_;
};

class Supervised : public ::testing::Test {
 protected:
  static constexpr int kOfGpu = 1;
  static constexpr int kOfCpu = 2;

  std::unique_ptr<FrameProcessor> make(bool with_cpu, BlobParams::Reference reference) {
    BlobParams blobs;
    blobs.reference = reference;
    return make_supervised_processor(
        std::make_unique<MadeProcessor>(gpu_, kOfGpu),
        with_cpu ? std::make_unique<MadeProcessor>(cpu_, kOfCpu) : nullptr, blobs,
        {[this] { return open(); }, [this] { return now_ns_; }});
  }
  std::unique_ptr<FrameProcessor> make() { return make(true, BlobParams::Reference::kOff); }
  // One frame, tenths of a second after the one before.
  Result<void> frame_after(FrameProcessor& processor, int tenths) {
    now_ns_ += tenths * (kSecondNs / 10);
    return processor.process({}, result_);
  }

  MadeProcessor::Orders gpu_;
  MadeProcessor::Orders cpu_;
  bool opens_ = true;
  std::int64_t now_ns_ = 1'000 * kSecondNs;
  std::vector<std::int64_t> openings_ns_;
  FrameResult result_;

 private:
  Result<std::unique_ptr<FrameProcessor>> open() {
    openings_ns_.push_back(now_ns_);
    if (!opens_) return tl::make_unexpected(kLost);
    return std::make_unique<MadeProcessor>(gpu_, kOfGpu);
  }
};

// Seconds between one and the next.
std::vector<std::int64_t> pauses(std::int64_t from_ns, const std::vector<std::int64_t>& to_ns) {
  std::vector<std::int64_t> out;
  for (const std::int64_t ns : to_ns) out.push_back((ns - std::exchange(from_ns, ns)) / kSecondNs);
  return out;
}

// It passes its self-test, or not: in both cases it is tried less and less often.
TEST_F(Supervised, WaitsLongerAndLongerForAGpuThatFailsWhateverItsSelfTestSays) {
  for (const bool opens : {true, false}) {
    SCOPED_TRACE(opens);
    opens_ = opens;
    openings_ns_.clear();
    gpu_.collected = tl::make_unexpected(kLost);
    const auto processor = make();
    ASSERT_TRUE(frame_after(*processor, 0));
    const std::int64_t failed_ns = now_ns_;
    for (int frame = 0; frame < 2500; ++frame) {
      ASSERT_TRUE(frame_after(*processor, 1));
      ASSERT_EQ(result_.matches[0].x_px, kOfCpu);
    }
    EXPECT_THAT(pauses(failed_ns, openings_ns_), ElementsAre(1, 2, 4, 8, 16, 32, 60, 60, 60));
  }
}

TEST_F(Supervised, WaitsForTheFirstPauseAgainOnceTheGpuHasWorkedForAsLongAsTheNextOne) {
  const auto processor = make();
  const auto fail_once = [&] {
    gpu_.collected = tl::make_unexpected(kLost);
    ASSERT_TRUE(frame_after(*processor, 1));
    gpu_.collected = {};
    openings_ns_.clear();
    const std::int64_t failed_ns = now_ns_;
    while (openings_ns_.empty()) ASSERT_TRUE(frame_after(*processor, 1));
    openings_ns_ = {openings_ns_[0] - failed_ns};
  };
  fail_once();
  EXPECT_THAT(openings_ns_, ElementsAre(kSecondNs));
  for (int frame = 0; frame < 10; ++frame) ASSERT_TRUE(frame_after(*processor, 1));
  fail_once();  // it has worked for a second
  EXPECT_THAT(openings_ns_, ElementsAre(2 * kSecondNs));
  for (int frame = 0; frame < 30; ++frame) ASSERT_TRUE(frame_after(*processor, 1));
  fail_once();
  EXPECT_THAT(openings_ns_, ElementsAre(4 * kSecondNs));
  for (int frame = 0; frame < 80; ++frame) ASSERT_TRUE(frame_after(*processor, 1));
  ASSERT_EQ(result_.matches[0].x_px, kOfGpu);
  fail_once();
  EXPECT_THAT(openings_ns_, ElementsAre(kSecondNs));
}

// What it left half-way a later frame must not meet.
TEST_F(Supervised, GivesUpAGpuThatFailsToStartAFrame) {
  gpu_.submitted = tl::make_unexpected(kLost);
  const auto processor = make();
  ASSERT_TRUE(frame_after(*processor, 0));
  EXPECT_EQ(result_.matches[0].x_px, kOfCpu);
  EXPECT_STREQ(processor->backend(), "cpu");
  gpu_.submitted = {};
  ASSERT_TRUE(frame_after(*processor, 10));
  EXPECT_EQ(openings_ns_.size(), 1U);
  EXPECT_EQ(result_.matches[0].x_px, kOfGpu);
  EXPECT_STREQ(processor->backend(), "cuda");
}

TEST_F(Supervised, KeepsTheGpusBlobsOfAFrameThatTheCpuSearchesAgain) {
  const auto processor = make(true, BlobParams::Reference::kAlternate);
  ASSERT_TRUE(frame_after(*processor, 1));
  gpu_.collected = tl::make_unexpected(kTooMany);
  for (int frame = 1; frame <= 2; ++frame) {
    ASSERT_TRUE(frame_after(*processor, 1));
    EXPECT_EQ(result_.matches[0].x_px, kOfCpu);
    ASSERT_EQ(result_.blobs.size(), 1U);
    EXPECT_EQ(result_.blobs[0].area_px, kOfGpu);
    EXPECT_EQ(result_.blobs_total, kOfGpu);
  }
  EXPECT_STREQ(processor->backend(), "cuda");
  EXPECT_THAT(processor->description(), HasSubstr("2 frames done by the CPU"));
  EXPECT_THAT(processor->description(), HasSubstr(kTooMany.message));
  EXPECT_THAT(processor->description(), Not(HasSubstr("left out")));
}

// Those that begin a series on one of the two, but for the first of all.
TEST_F(Supervised, CountsFramesWithoutTheFrameToSubtractFromTheirBlobs) {
  const auto processor = make(true, BlobParams::Reference::kAlternate);
  ASSERT_TRUE(frame_after(*processor, 1));
  EXPECT_THAT(processor->description(), Not(HasSubstr("left out")));
  gpu_.collected = tl::make_unexpected(kLost);
  ASSERT_TRUE(frame_after(*processor, 1));
  EXPECT_EQ(cpu_.restarts, 1);
  EXPECT_THAT(processor->description(), HasSubstr("blobs of 1 frames left out"));
  ASSERT_TRUE(frame_after(*processor, 1));
  EXPECT_EQ(cpu_.restarts, 1);
  EXPECT_THAT(processor->description(), HasSubstr("blobs of 1 frames left out"));
  gpu_.collected = {};
  ASSERT_TRUE(frame_after(*processor, 20));
  ASSERT_TRUE(frame_after(*processor, 1));
  EXPECT_STREQ(processor->backend(), "cuda");
  EXPECT_THAT(processor->description(), HasSubstr("blobs of 2 frames left out"));
}

TEST_F(Supervised, LeavesNothingOutWhereTheFirstFrameOfAllFails) {
  gpu_.collected = tl::make_unexpected(kLost);
  const auto processor = make(true, BlobParams::Reference::kAlternate);
  ASSERT_TRUE(frame_after(*processor, 1));
  EXPECT_THAT(processor->description(), Not(HasSubstr("left out")));
}

TEST_F(Supervised, GivesTheGpusErrorsWhereThereIsNoCpuUntilItIsOpenedAnew) {
  const auto processor = make(false, BlobParams::Reference::kOff);
  ASSERT_TRUE(processor->submit({}));
  ASSERT_TRUE(processor->submit({}));
  gpu_.collected = tl::make_unexpected(kLost);
  for (int frame = 0; frame < 2; ++frame) {
    const auto collected = processor->collect(result_);
    ASSERT_FALSE(collected);
    EXPECT_EQ(collected.error().code, ErrorCode::kDevice);
    EXPECT_EQ(collected.error().message, kLost.message);
  }
  gpu_.collected = {};
  const auto begun = frame_after(*processor, 1);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().message, kLost.message);
  EXPECT_STREQ(processor->backend(), "cuda");
  EXPECT_EQ(processor->description(), "cuda, lost and to be opened anew: the GPU is lost");
  ASSERT_TRUE(frame_after(*processor, 10));
  EXPECT_EQ(result_.matches[0].x_px, kOfGpu);
  EXPECT_EQ(processor->description(), "made");
  // A frame's own fault is its own alone.
  gpu_.collected = tl::make_unexpected(kTooMany);
  EXPECT_FALSE(frame_after(*processor, 1));
  gpu_.collected = {};
  EXPECT_TRUE(frame_after(*processor, 1));
}

}  // namespace
}  // namespace patternd::cuda
