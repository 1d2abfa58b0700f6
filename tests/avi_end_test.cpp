#include "pipeline/sources/avi_end.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

#include "tests/support/test_files.h"

namespace patternd {
namespace {

using Kind = AviEnd::Kind;

constexpr std::uint32_t kNoSize = 0xffffffffU;

std::string size_text(std::uint32_t size) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(size >> (8 * i) & 0xffU);
  return text;
}

// A part of a file: name, size, content, and one more byte where the size is odd.
std::string part(const std::string& name, const std::string& content) {
  return name + size_text(static_cast<std::uint32_t>(content.size())) + content +
         (content.size() % 2 == 1 ? std::string(1, '\0') : "");
}
std::string list(const std::string& kind, const std::string& content) {
  return part("LIST", kind + content);
}
std::string head() { return list("hdrl", part("avih", std::string(56, 'h'))) + part("JUNK", "j"); }
// Frames of odd and even sizes, one of them empty, some in a list of their own, and sound.
std::string frames() {
  return part("00dc", std::string(101, 'a')) + part("01wb", std::string(40, 's')) +
         part("00dc", "") +
         list("rec ", part("00dc", std::string(50, 'b')) + part("ix00", "index"));
}
std::string riff(const std::string& kind, const std::string& content) {
  return part("RIFF", kind + content);
}
std::string with_index(const std::string& list_of_frames) {
  return riff("AVI ", head() + list_of_frames + part("idx1", std::string(32, 'i')));
}
// The same list of frames without its size.
std::string unsized(std::uint32_t size) { return "LIST" + size_text(size) + "movi" + frames(); }

class AviEndTest : public ::testing::Test {
 protected:
  AviEnd end_of(const std::string& bytes) const {
    const std::string path = folder_.file("film.avi");
    std::ofstream(path, std::ios::binary) << bytes;
    const auto end = find_avi_end(path);
    EXPECT_TRUE(end) << end.error().message;
    return end ? *end : AviEnd{};
  }
  test::TemporaryFolder folder_;
};

TEST_F(AviEndTest, TakesAFileForWholeWithAnIndexOrWithout) {
  const std::string movi = list("movi", frames());
  EXPECT_EQ(end_of(with_index(movi)).kind, Kind::kWhole);
  EXPECT_EQ(end_of(riff("AVI ", head() + movi)).kind, Kind::kWhole);
  EXPECT_EQ(end_of(with_index(movi) + "trailing bytes of another program").kind, Kind::kWhole);
  // RIFF's own size is no word on frames.
  EXPECT_EQ(end_of("RIFF" + size_text(kNoSize) + "AVI " + head() + movi).kind, Kind::kWhole);
}

TEST_F(AviEndTest, TellsWhereverAFileIsCutWhatItLacksOfItsFrames) {
  const std::string whole = with_index(list("movi", frames()));
  const std::size_t begin = whole.find("movi") + 4;
  const std::size_t end = whole.find("idx1");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const AviEnd found = end_of(whole.substr(0, size));
    const Kind expected = size < begin ? Kind::kNotKnown : size < end ? Kind::kCut : Kind::kWhole;
    ASSERT_EQ(found.kind, expected) << size;
    ASSERT_EQ(found.missing_bytes, expected == Kind::kCut ? end - size : 0U) << size;
  }
}

TEST_F(AviEndTest, KnowsAFileWhoseRecorderWasKilled) {
  for (const std::uint32_t size : {0U, 4U, kNoSize}) {
    const std::string killed = "RIFF" + size_text(0) + "AVI " + head() + unsized(size);
    EXPECT_EQ(end_of(killed).kind, Kind::kUnfinished) << size;
    EXPECT_EQ(end_of(killed.substr(0, killed.size() - 9)).kind, Kind::kUnfinished) << size;
    EXPECT_EQ(end_of(killed + std::string(4096, '\0')).kind, Kind::kUnfinished) << size;
    // One written into a pipe has no sizes either, but its index says that it is done.
    EXPECT_EQ(end_of(killed + part("idx1", std::string(32, 'i'))).kind, Kind::kWhole) << size;
  }
}

TEST_F(AviEndTest, FollowsTheFurtherPartsOfALargeFile) {
  const std::string first = with_index(list("movi", frames()));
  const std::string second = riff("AVIX", list("movi", frames()));
  EXPECT_EQ(end_of(first + second).kind, Kind::kWhole);
  const AviEnd cut = end_of(first + second + second.substr(0, second.size() - 30));
  EXPECT_EQ(cut.kind, Kind::kCut);
  EXPECT_EQ(cut.missing_bytes, 30U);
  EXPECT_EQ(end_of(first + "RIFF" + size_text(0) + "AVIX" + unsized(0)).kind, Kind::kUnfinished);
}

TEST_F(AviEndTest, SaysNothingOfWhatIsNoAviFile) {
  EXPECT_EQ(end_of("").kind, Kind::kNotKnown);
  EXPECT_EQ(end_of("RIFF").kind, Kind::kNotKnown);
  EXPECT_EQ(end_of(riff("WAVE", list("movi", frames()).substr(0, 40))).kind, Kind::kNotKnown);
  EXPECT_EQ(end_of(riff("AVI ", head())).kind, Kind::kNotKnown);
  EXPECT_EQ(end_of("RIFF" + size_text(0) + "AVI " + std::string(1 << 20, '\0')).kind,
            Kind::kNotKnown);
  EXPECT_FALSE(find_avi_end(folder_.file("gone.avi")));
}

TEST_F(AviEndTest, ComesToAnEndWhateverTheBytes) {
  constexpr unsigned kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string whole = with_index(list("movi", frames())) + riff("AVIX", unsized(0));
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole;
    for (int n = 0; n < 4; ++n) bytes[random() % bytes.size()] = static_cast<char>(random());
    const AviEnd end = end_of(bytes);
    ASSERT_EQ(end.missing_bytes > 0, end.kind == Kind::kCut);
  }
}

TEST_F(AviEndTest, TakesTheVideosOfOpencvForWhole) {
  for (const char* name : {"vtest.avi", "Megamind.avi", "Megamind_bugy.avi", "tree.avi"}) {
    const std::string video = test::opencv_sample(name);
    if (video.empty()) GTEST_SKIP() << "opencv-doc is not installed";
    const auto end = find_avi_end(video);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->kind, Kind::kWhole) << name;
  }
}

}  // namespace
}  // namespace patternd
