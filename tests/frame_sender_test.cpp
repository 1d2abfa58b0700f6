// Frames for clients that ask: bounded, counted, and never waited for.
#include "daemon/frame_sender.h"

#include <condition_variable>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "daemon/frame_line.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

class FrameSenderTest : public ::testing::Test {
 protected:
  // What has been sent to one client.
  struct Inbox {
    std::vector<Json> lines;
    std::shared_ptr<std::atomic<bool>> busy;
  };

  static ClientCommand record(std::uint64_t frames, int every = 1, double seconds = 0) {
    ClientCommand command;
    command.kind = ClientCommand::Kind::kRecord;
    command.name = "record";
    command.frames = {frames, seconds, every};
    return command;
  }
  void take(std::uint64_t client, const std::string& text,
            const std::shared_ptr<std::atomic<bool>>& busy) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Inbox& inbox = inboxes_[client];
    inbox.lines.push_back(Json::parse(text));
    if (busy != nullptr) inbox.busy = busy;
    if (busy != nullptr && (reads_ || client != 1)) *busy = false;
    changed_.notify_all();
  }
  std::vector<Json> wait_for(std::uint64_t client, std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return inboxes_[client].lines.size() >= count; });
    return inboxes_[client].lines;
  }
  void let_go(std::uint64_t client) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *inboxes_[client].busy = false;
  }
  void offer() {
    pixels_[0] = static_cast<std::uint8_t>(seq_);
    RawImageView image{pixels_.data(),   pixels_.size(),   8, 4, 8,
                       RawFormat::kGrey, BayerOrder::kRggb};
    FrameInfo info;
    info.seq = seq_++;
    info.captured_mono_ns = static_cast<std::int64_t>(info.seq) * 40'000'000;
    sender_->offer(image, info);
  }
  // Offers frames until `client` has been sent `count` lines, without running ahead of the sender.
  std::vector<Json> offer_until(std::uint64_t client, std::size_t count) {
    for (;;) {
      offer();
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(2));
      if (inboxes_[client].lines.size() >= count) return inboxes_[client].lines;
    }
  }
  // Frames that the lines account for: sent, or told as dropped since the one before.
  static std::uint64_t accounted(const std::vector<Json>& lines) {
    std::uint64_t frames = 0;
    for (const Json& line : lines) {
      if (line["type"] == "frame") frames += 1 + line["dropped"].get<std::uint64_t>();
    }
    return frames;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Inbox> inboxes_;
  std::atomic<bool> reads_{true};  // whether client 1 reads; others do
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(32, 9);
  std::uint64_t seq_ = 5;
  std::unique_ptr<FrameSender> sender_ = std::make_unique<FrameSender>(
      [this](std::uint64_t client, const std::string& text,
             const std::shared_ptr<std::atomic<bool>>& busy) { take(client, text, busy); });
};

TEST_F(FrameSenderTest, SendsFramesAndThenTheReply) {
  ASSERT_TRUE(sender_->begin(1, record(3)));
  const std::vector<Json> lines = offer_until(1, 4);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i]["type"], "frame");
    FrameAssembler assembler;
    const auto frame = assembler.take(lines[i]);
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->luma.row<std::uint8_t>(0)[0], lines[i]["seq"]);
    EXPECT_EQ((*frame)->luma.row<std::uint8_t>(3)[7], 9);
  }
  EXPECT_EQ(lines[3]["type"], "reply");
  EXPECT_EQ(lines[3]["data"]["frames"], 3);
  EXPECT_EQ(accounted({lines[0], lines[1], lines[2]}),
            lines[2]["seq"].get<std::uint64_t>() - lines[0]["seq"].get<std::uint64_t>() + 1);
  EXPECT_EQ(lines[0]["dropped"], 0);
}

TEST_F(FrameSenderTest, CountsWhatAClientIsTooSlowFor) {
  reads_ = false;
  ASSERT_TRUE(sender_->begin(1, record(2)));
  const std::uint64_t first = offer_until(1, 1)[0]["seq"];
  for (int i = 0; i < 100; ++i) offer();
  // Once the second client, served after the first, has a later frame, the hundred are done with.
  const std::uint64_t last = seq_ - 1;
  ASSERT_TRUE(sender_->begin(2, record(0)));
  std::size_t count = 1;
  while (offer_until(2, count).back()["seq"].get<std::uint64_t>() <= last) ++count;
  EXPECT_EQ(wait_for(1, 1).size(), 1U) << "nothing more while the client does not read";
  let_go(1);
  const std::vector<Json> lines = offer_until(1, 3);
  const std::uint64_t second = lines[1]["seq"];
  EXPECT_GT(second, first + 100);
  EXPECT_EQ(lines[1]["dropped"], second - first - 1);
  EXPECT_EQ(lines[2]["data"]["dropped"], second - first - 1);
}

TEST_F(FrameSenderTest, TakesEveryNthFrameAndEndsAfterTheSeconds) {
  ASSERT_TRUE(sender_->begin(1, record(0, 5, 0.41)));  // 25 frames a second: the 1st, 6th, 11th
  std::vector<Json> lines;
  do {
    lines = offer_until(1, lines.size() + 1);
  } while (lines.back()["type"] == "frame");
  EXPECT_EQ(lines.back()["data"]["frames"], 3);
  EXPECT_LE(lines.back()["data"]["seconds"], 0.4001);
}

TEST_F(FrameSenderTest, AnswersThoseThatStillWantFramesWhenItStops) {
  ASSERT_TRUE(sender_->begin(1, record(0)));
  offer_until(1, 2);
  sender_->stop();
  const std::vector<Json> lines = wait_for(1, 3);
  EXPECT_EQ(lines.back()["type"], "reply");
  EXPECT_EQ(lines.back()["data"]["frames"], lines.size() - 1);
}

TEST_F(FrameSenderTest, ServesFourClientsAndForgetsThoseThatGo) {
  for (std::uint64_t client = 1; client <= 4; ++client)
    ASSERT_TRUE(sender_->begin(client, record(0)));
  const auto fifth = sender_->begin(5, record(1));
  ASSERT_FALSE(fifth);
  EXPECT_THAT(fifth.error().message, HasSubstr("4 clients are being sent frames already"));
  const auto twice = sender_->begin(4, record(1));
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("this connection is being sent frames already"));
  sender_->end(2);
  ASSERT_TRUE(sender_->begin(5, record(1)));
  EXPECT_EQ(offer_until(5, 2)[1]["type"], "reply");
}

TEST_F(FrameSenderTest, FollowsACameraThatComesBackLarger) {
  ASSERT_TRUE(sender_->begin(1, record(0)));
  offer_until(1, 2);
  std::vector<std::uint8_t> large(64 * 48, 7);
  const std::size_t before = wait_for(1, 1).size();
  for (std::size_t count = before;; count = wait_for(1, 1).size()) {
    FrameInfo info;
    info.seq = seq_++;
    info.captured_mono_ns = static_cast<std::int64_t>(info.seq) * 40'000'000;
    sender_->offer({large.data(), large.size(), 64, 48, 64, RawFormat::kGrey, BayerOrder::kRggb},
                   info);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (count > before && wait_for(1, 1).back()["width"] == 64) break;
  }
}

}  // namespace
}  // namespace patternd
