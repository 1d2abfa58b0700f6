// Values of the log's key=value lines.
#include "daemon/log_value.h"

#include <gtest/gtest.h>

namespace patternd {
namespace {

TEST(LogValue, StandsInQuotesWhoseEndAReaderFinds) {
  EXPECT_EQ(log_quoted(""), R"("")");
  EXPECT_EQ(log_quoted("no such camera"), R"("no such camera")");
  EXPECT_EQ(log_quoted(R"(is "foo"; must be auto)"), R"("is \"foo\"; must be auto")");
  EXPECT_EQ(log_quoted(R"(C:\x" y)"), R"("C:\\x\" y")");
}

TEST(LogValue, StaysOnOneLine) {
  EXPECT_EQ(log_quoted("a: wrong\nb: wrong"), R"("a: wrong | b: wrong")");
  EXPECT_EQ(log_quoted("a\tb\x1b[0m\xff"), R"("a\x09b\x1b[0m\xff")");
}

TEST(LogValue, StandsBareWhereItIsOnePlainWord) {
  for (const char* word : {"cam0", "127.0.0.1:5577", "/run/patternd/p.sock", "caf\xc3\xa9"})
    EXPECT_EQ(log_value(word), word);
  EXPECT_EQ(log_value("line 3"), R"("line 3")");
  EXPECT_EQ(log_value("a=b"), R"("a=b")");
  EXPECT_EQ(log_value("\"a"), R"("\"a")");
  EXPECT_EQ(log_value(""), R"("")");
}

}  // namespace
}  // namespace patternd
