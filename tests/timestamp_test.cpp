#include "pipeline/timestamp.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace patternd {
namespace {

std::string text_of(std::int64_t unix_ns) {
  char text[kUtcTextLength];
  return {text, format_utc(unix_ns, text)};
}

TEST(Timestamp, WritesKnownInstants) {
  EXPECT_EQ(text_of(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(text_of(40'000'000), "1970-01-01T00:00:00.040000Z");
  EXPECT_EQ(text_of(951'782'399'999'999'999), "2000-02-28T23:59:59.999999Z");
  EXPECT_EQ(text_of(951'782'400'000'000'000), "2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(text_of(1'769'860'800'123'456'000), "2026-01-31T12:00:00.123456Z");
  EXPECT_EQ(text_of(-1), "1970-01-01T00:00:00.000000Z");
}

TEST(Timestamp, ReadsBackEveryInstantToTheMicrosecond) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> instants(0, 9'000'000'000'000'000'000);
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t ns = instants(random);
    const auto read = parse_utc(text_of(ns));
    ASSERT_TRUE(read) << text_of(ns);
    ASSERT_EQ(*read, ns / 1000 * 1000);
  }
}

TEST(Timestamp, ReadsAnyNumberOfDigitsUpToNanoseconds) {
  EXPECT_EQ(parse_utc("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(parse_utc("1970-01-01T00:00:01.5Z"), 1'500'000'000);
  EXPECT_EQ(parse_utc("1970-01-01T00:00:01.123456789Z"), 1'123'456'789);
}

TEST(Timestamp, RefusesWhatIsNoInstant) {
  for (const char* text :
       {"", "Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00Z",
        "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-01-01T00:00:00ZZ",
        "-026-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_utc(text)) << text;
  }
}

}  // namespace
}  // namespace patternd
