#include "pipeline/yaml_reader.h"

#include <fstream>
#include <gtest/gtest.h>

#include "tests/support/test_files.h"

namespace patternd {
namespace {

// Reads a little file of every kind of value, as a program would, and gives the message.
std::string message_of(const std::string& text) {
  auto reader = YamlReader::parse(text, "f.yaml");
  if (!reader) return reader.error().message;
  const YamlNode root = reader->root();
  const YamlNode camera = root.required("camera", "must be a map with source");
  (void)camera.required("source", "must be v4l2 or replay")
      .choice(0, {"v4l2", "gstreamer", "replay"});
  (void)camera["width"].integer(0, 1, 32767);
  (void)camera["loop"].boolean(false);
  (void)camera["name"].text("cam0");
  for (std::size_t i = 0; i < root["patterns"].size(); ++i) {
    const YamlNode pattern = root["patterns"].item(i);
    (void)pattern["min_score"].number(0.7, 0, 1);
    (void)pattern["angle_step"].number(1, 0.01, 90);
    (void)pattern["roi"].numbers(4, 0, 1e300);
  }
  const auto finished = reader->finish();
  return finished ? "" : finished.error().message;
}

struct BadFile {
  const char* what;
  std::string text;
  std::string message;
};

const std::string kGood = "camera: {source: replay}\n";

std::vector<BadFile> bad_files() {
  return {
      {"empty", "", "f.yaml:1:1: is empty; must be a map of keys"},
      {"only comments", "# nothing\n\n", "f.yaml:1:1: is empty; must be a map of keys"},
      {"a list", "- 1\n- 2\n", "f.yaml:1:1: is a list; must be a map of keys"},
      {"a word", "hello\n", "f.yaml:1:1: is a single value; must be a map of keys"},
      {"missing section", "patterns: []\n",
       "f.yaml:1:1: camera: missing; must be a map with source"},
      {"missing key", "camera:\n  width: 5\n",
       "f.yaml:2:3: camera.source: missing; must be v4l2 or replay"},
      {"section without a value", "camera:\n",
       "f.yaml:1:1: camera: has no value; must be a map of keys"},
      {"section that is a list", "camera: [1]\n",
       "f.yaml:1:9: camera: is a list; must be a map of keys"},
      {"unknown key, near", kGood + "patterns:\n  - angel_step: 3\n",
       "f.yaml:3:5: patterns[0].angel_step: unknown key; did you mean angle_step?"},
      {"unknown key, far", kGood + "zebra: 3\n",
       "f.yaml:2:1: zebra: unknown key; config/README.md lists those that there are"},
      {"unknown choice", "camera: {source: file}\n",
       "f.yaml:1:18: camera.source: is \"file\"; must be v4l2, gstreamer or replay"},
      {"a key twice", "camera: {source: replay}\ncamera: {source: v4l2}\n",
       "f.yaml:2:1: camera: the key stands twice, first in line 1; keep one of them"},
      {"a real for an integer", "camera: {source: replay, width: 1.5}\n",
       "f.yaml:1:33: camera.width: is \"1.5\"; must be a whole number from 1 to 32767 in decimal "
       "digits"},
      {"an exponent for an integer", "camera: {source: replay, width: 1e3}\n",
       "f.yaml:1:33: camera.width: is \"1e3\"; must be a whole number from 1 to 32767 in decimal "
       "digits"},
      {"hexadecimal", "camera: {source: replay, width: 0x10}\n",
       "f.yaml:1:33: camera.width: is \"0x10\"; must be a whole number from 1 to 32767 in decimal "
       "digits"},
      {"octal or not", "camera: {source: replay, width: 010}\n",
       "f.yaml:1:33: camera.width: is \"010\"; must be a whole number from 1 to 32767 in decimal "
       "digits"},
      {"too small", "camera: {source: replay, width: 0}\n",
       "f.yaml:1:33: camera.width: is 0; must be a whole number from 1 to 32767 in decimal digits"},
      {"more than 64 bits", "camera: {source: replay, width: 99999999999999999999}\n",
       "f.yaml:1:33: camera.width: is 99999999999999999999; must be a whole number from 1 to 32767 "
       "in decimal digits"},
      {"quoted number", "camera: {source: replay, width: '5'}\n",
       "f.yaml:1:33: camera.width: is the text \"5\"; must be a whole number from 1 to 32767 in "
       "decimal digits (without quotes)"},
      {"yes for true", "camera: {source: replay, loop: yes}\n",
       "f.yaml:1:32: camera.loop: is \"yes\"; must be true or false"},
      {"a map for text", "camera: {source: replay, name: {a: 1}}\n",
       "f.yaml:1:32: camera.name: is a map of keys; must be text"},
      {"not a number", kGood + "patterns: [{min_score: .nan}]\n",
       "f.yaml:2:24: patterns[0].min_score: is \".nan\"; must be a number from 0 to 1"},
      {"infinity", kGood + "patterns: [{min_score: .inf}]\n",
       "f.yaml:2:24: patterns[0].min_score: is \".inf\"; must be a number from 0 to 1"},
      {"nan as a word", kGood + "patterns: [{min_score: nan}]\n",
       "f.yaml:2:24: patterns[0].min_score: is \"nan\"; must be a number from 0 to 1"},
      {"too large for a double", kGood + "patterns: [{min_score: 1e999}]\n",
       "f.yaml:2:24: patterns[0].min_score: is 1e999; must be a number from 0 to 1"},
      {"too short a list", kGood + "patterns: [{roi: [1, 2, 3]}]\n",
       "f.yaml:2:18: patterns[0].roi: is a list of 3; must be a list of 4 numbers"},
      {"a word in a list", kGood + "patterns: [{roi: [1, x, 3, 4]}]\n",
       "f.yaml:2:22: patterns[0].roi[1]: is \"x\"; must be a number from 0 to 1e+300"},
      {"an anchor and its alias", "camera: &c {source: replay}\npatterns: *c\n",
       "f.yaml:1:9: camera: an anchor (&) stands here; take it out, anchors and aliases are not "
       "read\nf.yaml:2:11: patterns: an alias (*) stands here; write the value out, anchors and "
       "aliases are not read"},
      {"a tag", "camera: {source: !!str replay}\n",
       "f.yaml:1:18: camera.source: a tag (\"tag:yaml.org,2002:str\") stands here; take it out, "
       "tags are not read"},
      {"two documents", kGood + "---\ncamera: 1\n",
       "f.yaml:2:1: a second document begins; one file holds one"},
      {"a list as a key", "[1, 2]: 3\n",
       "f.yaml:1:1: a list or map stands as a key; keys are words"},
      {"syntax", "camera: {source: replay\n",
       "f.yaml:2:1: not valid YAML: end of map flow not found"},
      {"an escape of a letter of two bytes", "camera: \"a\\\xcb\xac\"\n",
       "f.yaml:1:13: not valid YAML: unknown escape character: \\xcb"},
      {"a tab as indentation", "camera:\n\tsource: replay\n",
       "f.yaml:2:8: not valid YAML: a tab indents this line; indent with spaces"},
      {"a control character", "camera: {source: replay}\x04\n",
       "f.yaml:1:25: the byte \"\\x04\" is not text; must be YAML in UTF-8"},
      {"Latin-1", "camera: {name: caf\xe9}\n",
       "f.yaml:1:19: the byte \"\\xe9\" is not text; must be YAML in UTF-8"},
      {"NUL by an escape", "camera: {source: replay, name: \"a\\0b\"}\n",
       "f.yaml:1:32: camera.name: contains a NUL character; take it out"},
      {"columns are characters", "camera: {source: replay, name: été, loop: 1}\n",
       "f.yaml:1:43: camera.loop: is \"1\"; must be true or false"},
      {"several at once, in their order",
       "patterns:\n  - {min_score: 2, min_scor: 1}\nwidth: 3\ncamera: {source: tcp}\n",
       "f.yaml:2:17: patterns[0].min_score: is 2; must be a number from 0 to 1\n"
       "f.yaml:2:20: patterns[0].min_scor: unknown key; did you mean min_score?\n"
       "f.yaml:3:1: width: unknown key; config/README.md lists those that there are\n"
       "f.yaml:4:18: camera.source: is \"tcp\"; must be v4l2, gstreamer or replay"},
  };
}

TEST(YamlReader, SaysWhereWhatAndWhatWouldBeRight) {
  for (const BadFile& bad : bad_files()) {
    SCOPED_TRACE(bad.what);
    EXPECT_EQ(message_of(bad.text), bad.message);
  }
}

TEST(YamlReader, ReadsValuesOfEveryKind) {
  auto reader = YamlReader::parse(
      "whole: +12\nreal: -1.5e2\nyes: true\nword: \"a: b\"\nlist: [1, .5, 3.]\nmap:\n  b: 1\n  a: "
      "off\nnumber_as_text: 42\n",
      "f.yaml");
  ASSERT_TRUE(reader) << reader.error().message;
  const YamlNode root = reader->root();
  EXPECT_EQ(root["whole"].integer(0, -100, 100), 12);
  EXPECT_EQ(root["real"].number(0, -1e9, 1e9), -150.0);
  EXPECT_TRUE(root["yes"].boolean(false));
  EXPECT_EQ(root["word"].text(""), "a: b");
  EXPECT_EQ(root["list"].numbers(3, 0, 10), (std::vector<double>{1, 0.5, 3}));
  const auto entries = root["map"].entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].first, "b");
  EXPECT_EQ(entries[1].second.text(""), "off");
  EXPECT_EQ(entries[1].second.path(), "map.a");
  EXPECT_EQ(root["number_as_text"].text(""), "42");
  EXPECT_FALSE(root["absent"].present());
  EXPECT_EQ(root["absent"]["deeper"].integer(7, 0, 9), 7);
  EXPECT_TRUE(reader->finish());
}

TEST(YamlReader, ReadsByteOrderMarksAndWindowsLineEnds) {
  EXPECT_EQ(message_of("\xEF\xBB\xBF"
                       "camera:\r\n  source: replay\r\n  width: 0\r\n"),
            "f.yaml:3:10: camera.width: is 0; must be a whole number from 1 to 32767 in decimal "
            "digits");
}

TEST(YamlReader, GivesEachFaultOnceHoweverOftenItIsAsked) {
  auto reader = YamlReader::parse("a: x\n", "f.yaml");
  ASSERT_TRUE(reader);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reader->root()["a"].number(5, 0, 1), 5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reader->finish().error().message,
              "f.yaml:1:4: a: is \"x\"; must be a number from 0 to 1");
  }
}

TEST(YamlReader, RefusesWhatWouldGrowWithoutBound) {
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + "]\n";
  EXPECT_NE(message_of(bomb).find("an alias (*) stands here"), std::string::npos);
  EXPECT_EQ(message_of("a: " + std::string(40, '[') + std::string(40, ']')),
            "f.yaml:1:35: nested deeper than 32 levels; the file is not one of patternd's");
  EXPECT_EQ(message_of("a: " + std::string((std::size_t{4} << 20), '[')),
            "f.yaml: is larger than 4 MiB, the most that is read of such a file");
  std::string many = "a: [";
  for (int i = 0; i < 21'000; ++i) many += "1,";
  EXPECT_NE(message_of(many + "1]\n").find("more than 20000 values"), std::string::npos);
  std::string faults = kGood;
  for (int i = 0; i < 300; ++i) faults += "unknown" + std::to_string(i) + ": 1\n";
  const std::string message = message_of(faults);
  EXPECT_NE(message.find("f.yaml: and 200 more"), std::string::npos);
}

TEST(YamlReader, NamesATabThatIndentsALine) {
  const std::string words = "not valid YAML: a tab indents this line; indent with spaces";
  EXPECT_EQ(message_of("camera:\n\tsource: replay\n\tpath: a\n"), "f.yaml:2:8: " + words);
  EXPECT_EQ(message_of("camera: [\n").find("tab"), std::string::npos);
}

TEST(YamlReader, NamesTheFileThatCannotBeRead) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(YamlReader::load(folder.file("no.yaml")).error().message,
            folder.file("no.yaml") + ": no such file");
  EXPECT_EQ(YamlReader::load(folder.path()).error().message,
            folder.path() + ": is a folder; must be a regular file");
}

TEST(YamlReader, ResolvesPathsFromTheFileThatNamesThem) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("f.yaml")) << kGood;
  auto reader = YamlReader::load(folder.file("f.yaml"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->resolve("parts/bolt.yaml"), folder.file("parts/bolt.yaml"));
  EXPECT_EQ(reader->resolve("/etc/bolt.yaml"), "/etc/bolt.yaml");
  EXPECT_EQ(YamlReader::parse(kGood, "f.yaml")->resolve("./bolt.yaml"), "bolt.yaml");
}

TEST(NearestWord, FindsTypingErrorsAndNothingElse) {
  const std::vector<std::string> words = {"angle", "angle_step", "scale", "roi"};
  EXPECT_EQ(nearest_word("anlge", words), "angle");
  EXPECT_EQ(nearest_word("angel_step", words), "angle_step");
  EXPECT_EQ(nearest_word("rio", words), "roi");
  EXPECT_EQ(nearest_word("threshold", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'a'), words), "");
}

}  // namespace
}  // namespace patternd
