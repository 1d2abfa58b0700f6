#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "pipeline/latency_histogram.h"
#include "pipeline/latency_log.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(LatencyHistogram, KeepsEveryQuantileWithinOnePercent) {
  constexpr unsigned kSeed = 20140601;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(0, 41 * std::log(2.0) - 0.001);
  LatencyHistogram histogram;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::int64_t>(std::exp(exponent(random))));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double quantile : {0.0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0}) {
    const auto rank = std::max<std::size_t>(
        static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(values.size()))), 1);
    const auto exact = static_cast<double>(values[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile_ns(quantile)), exact, exact * 0.01)
        << quantile;
  }
  EXPECT_EQ(histogram.summary().max_ns, values.back());
  EXPECT_EQ(histogram.count(), values.size());
}

TEST(LatencyHistogram, IsWithinOnePercentOnBothSidesOfEveryBucketBorder) {
  for (int bit = 0; bit < 41; ++bit) {
    for (std::int64_t step = 64; step < 128; ++step) {
      for (std::int64_t off : {-1, 0, 1}) {
        const std::int64_t value = (bit < 6 ? step : step << (bit - 6)) + off;
        if (value > LatencyHistogram::kLargestNs) continue;
        LatencyHistogram histogram;
        histogram.add(value);
        histogram.add(LatencyHistogram::kLargestNs);
        const auto exact = static_cast<double>(value);
        ASSERT_NEAR(static_cast<double>(histogram.quantile_ns(0.5)), exact, exact * 0.01);
      }
    }
  }
}

TEST(LatencyHistogram, TakesAnyValue) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.summary().p99_ns, 0);
  histogram.add(-5);
  EXPECT_EQ(histogram.summary().max_ns, 0);
  histogram.add(INT64_MAX);
  EXPECT_EQ(histogram.summary().max_ns, INT64_MAX);
  EXPECT_GT(histogram.summary().p99_ns, LatencyHistogram::kLargestNs * 99 / 100);
}

TEST(LatencyStatistics, SeparatesTheLastMinuteFromTheRest) {
  LatencyStatistics statistics;
  StageTimes slow;
  slow[Stage::kSearch] = 9'000'000;
  StageTimes fast;
  fast[Stage::kSearch] = 1'000'000;
  const std::int64_t start = 1000 * kSecond;
  for (int i = 0; i < 10; ++i) statistics.record(slow, start);
  for (int i = 0; i < 30; ++i) statistics.record(fast, start + 60 * kSecond);
  const LatencySummary all = statistics.since_start(Stage::kSearch);
  EXPECT_EQ(all.count, 40U);
  EXPECT_EQ(all.max_ns, 9'000'000);
  const LatencySummary minute = statistics.last_minute(Stage::kSearch, start + 61 * kSecond);
  EXPECT_EQ(minute.count, 30U);
  EXPECT_EQ(minute.max_ns, 1'000'000);
  EXPECT_EQ(statistics.last_minute(Stage::kSearch, start + 200 * kSecond).count, 0U);
  EXPECT_EQ(statistics.since_start(Stage::kBlobs).count, 0U);
}

TEST(LatencyStatistics, IsReadWhileItIsWritten) {
  LatencyStatistics statistics;
  StageTimes times;
  times.ns.fill(1000);
  std::thread writer([&] {
    for (std::int64_t i = 0; i < 2000; ++i) statistics.record(times, i * 10'000'000);
  });
  std::uint64_t last = 0;
  while (last < 2000) {
    const std::uint64_t count = statistics.since_start(Stage::kTotal).count;
    ASSERT_GE(count, last);
    last = count;
    (void)statistics.last_minute(Stage::kTotal, 20 * kSecond);
  }
  writer.join();
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LatencyLog, WritesOneLineAFrameUnderItsHeader) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("latency.csv");
  for (std::uint64_t seq : {7U, 8U}) {  // opened twice: one header
    auto log = LatencyLog::open(path);
    ASSERT_TRUE(log) << log.error().message;
    StageTimes times;
    times[Stage::kCapture] = 310'499;
    times[Stage::kTotal] = 1'090'500;
    (*log)->add(seq, 123, times);
  }
  EXPECT_EQ(content(path),
            "seq,captured_mono_ns,capture,rectify,pyramid,search,nms,trace,refine,blobs,publish,"
            "total\n7,123,310,0,0,0,0,0,0,0,0,1091\n8,123,310,0,0,0,0,0,0,0,0,1091\n");
}

TEST(LatencyLog, SaysWhichFileCannotBeOpened) {
  EXPECT_EQ(LatencyLog::open("/nowhere/l.csv").error().message,
            "/nowhere/l.csv: the latency log cannot be written (No such file or directory); "
            "latency.log must name a file in a folder that patternd may write to");
}

TEST(LatencyLog, CountsTheLinesOfADiskThatIsFullFromTheStart) {
  auto log = LatencyLog::open("/dev/full");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->state().error, "No space left on device");  // the header does not fit
  (*log)->add(1, 123, StageTimes{});
  while ((*log)->state().lost == 0) std::this_thread::yield();
  EXPECT_EQ((*log)->state().lost, 1U);
  EXPECT_EQ((*log)->state().error, "No space left on device");
}

TEST(LatencyLog, LeavesAFileOfSomethingElseAsItIs) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("l.yaml");
  for (const char* text : {"camera: {source: v4l2}\n", "seq", "seq,captured_mono_ms,total\n"}) {
    SCOPED_TRACE(text);
    std::ofstream(path) << text;
    const auto log = LatencyLog::open(path);
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().message, path +
                                       " holds something else than a latency log; must name a "
                                       "file that is new, empty or such a log");
    EXPECT_EQ(content(path), text);
  }
  for (const char* text : {"", "seq,captured_mono_ns,total\n"}) {
    SCOPED_TRACE(text);
    std::ofstream(path) << text;
    EXPECT_TRUE(LatencyLog::open(path));
  }
}

}  // namespace
}  // namespace patternd
