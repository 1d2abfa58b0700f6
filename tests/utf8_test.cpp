#include "pipeline/utf8.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace patternd {
namespace {

TEST(Utf8, AcceptsWhatIsWellFormed) {
  for (const char* good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(utf8_first_fault(good), std::string_view::npos) << in_quotes(good);
  }
}

TEST(Utf8, FindsOverlongFormsSurrogatesAndCutSequences) {
  for (const char* bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3",
                          "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xff", "\xc3("}) {
    EXPECT_EQ(utf8_first_fault(std::string("ok") + bad), 2U) << in_quotes(bad);
  }
}

TEST(Utf8, CutsNoSequenceInTwo) {
  const std::string text = "a\xc3\xa9\xf0\x9f\x98\x80z";  // 1 + 2 + 4 + 1 bytes
  const std::vector<std::size_t> kept = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
  for (std::size_t bytes = 0; bytes < kept.size(); ++bytes)
    EXPECT_EQ(utf8_prefix(text, bytes), text.substr(0, kept[bytes])) << bytes;
}

TEST(Utf8, QuotesForMessagesWithoutControlCharactersAndCutShort) {
  EXPECT_EQ(in_quotes("a\nb\xff\xc3\xa9"), "\"a\\x0ab\\xff\xc3\xa9\"");
  EXPECT_EQ(printable("unknown: \xcb"), "unknown: \\xcb");
  EXPECT_EQ(printable(std::string(100, 'x')), std::string(100, 'x'));
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "\"" + std::string(60, 'x') + "…\"");
}

}  // namespace
}  // namespace patternd
