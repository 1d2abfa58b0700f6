#include "daemon/result_ring.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace patternd {
namespace {

void write(ResultRing& ring, const std::string& line, std::size_t reserve,
           const std::vector<MatchSpan>& spans = {}) {
  char* memory = ring.reserve(reserve);
  std::copy(line.begin(), line.end(), memory);
  ring.commit(line.size(), spans);
}

TEST(ResultRing, KeepsTheNewestLinesWholeWhateverTheirLengths) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  constexpr std::size_t kBytes = 4096;
  constexpr std::size_t kLines = 40;
  ResultRing ring(kBytes, kLines);
  std::deque<std::string> kept;
  std::uint64_t oldest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t reserve = 1 + random() % (kBytes / 4 - 64);
    std::string line(1 + random() % reserve, static_cast<char>('a' + i % 26));
    std::vector<MatchSpan> spans;
    if (random() % 2 == 0 && line.size() > 10) spans = {{1, 2, 3}, {4, 5, 6}};
    const std::size_t bytes = ResultRing::bytes_for(reserve, spans.size());
    const std::uint64_t predicted = ring.oldest_after(bytes);
    write(ring, line, bytes, spans);
    kept.push_back(line);
    ASSERT_EQ(ring.oldest(), predicted);
    for (; oldest < ring.oldest(); ++oldest) kept.pop_front();
    ASSERT_EQ(ring.next() - ring.oldest(), kept.size());
    ASSERT_LE(kept.size(), kLines);
    for (std::size_t k = 0; k < kept.size(); ++k) ASSERT_EQ(ring.line(oldest + k), kept[k]);
    ASSERT_EQ(ring.span_count(ring.next() - 1), spans.size());
    if (!spans.empty()) {
      ASSERT_EQ(ring.span(ring.next() - 1, 1).pattern, 6U);
    }
  }
}

TEST(ResultRing, HoldsManyLinesBeforeOneGivesWay) {
  ResultRing ring(4096, 1000);
  for (int i = 0; i < 40; ++i) write(ring, std::string(100, 'x'), 100);
  EXPECT_EQ(ring.oldest(), 0U);
  write(ring, std::string(100, 'x'), 100);
  EXPECT_EQ(ring.oldest(), 1U);
}

}  // namespace
}  // namespace patternd
