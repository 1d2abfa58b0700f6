#include "daemon/client_command.h"

#include <gtest/gtest.h>

namespace patternd {
namespace {

const std::vector<std::string> kPatterns = {"bolt", "nut"};

struct BadCommand {
  std::string line;
  std::string name;
  std::string message;
};

TEST(ClientCommand, IsRefusedWithTheCause) {
  const std::string json = "must be one JSON object a line, such as {\"command\":\"status\"}";
  const std::vector<BadCommand> bad = {
      {"hello", "", "\"hello\" " + json},
      {"[1]", "", "\"[1]\" " + json},
      {"{\"command\":1}", "", "\"command\" is missing or no string; " + json},
      {"{}", "", "\"command\" is missing or no string; " + json},
      {"{\"command\":\"stop\"}", "stop",
       "unknown command \"stop\"; there are: status, latency, reload, subscribe, record, snapshot"},
      {"{\"command\":\"snapshot\",\"frames\":2}", "snapshot",
       "unknown key \"frames\"; there are: command, token"},
      {"{\"command\":\"record\",\"frames\":0}", "record",
       "frames must be a whole number from 1 to 1000000"},
      {"{\"command\":\"record\",\"seconds\":-1}", "record",
       "seconds must be a number above 0, up to 86400"},
      {"{\"command\":\"status\",\"x\":1}", "status",
       "unknown key \"x\"; there are: command, token"},
      {"{\"command\":\"subscribe\",\"evry\":1}", "subscribe",
       "unknown key \"evry\"; did you mean every?"},
      {"{\"command\":\"subscribe\",\"every\":0}", "subscribe",
       "every must be a whole number from 1 to 1000000"},
      {"{\"command\":\"subscribe\",\"every\":1e9}", "subscribe",
       "every must be a whole number from 1 to 1000000"},
      {"{\"command\":\"subscribe\",\"types\":\"result\"}", "subscribe",
       "types must be a list of strings"},
      {"{\"command\":\"subscribe\",\"types\":[\"frames\"]}", "subscribe",
       "types has \"frames\"; there are: result, camera, drift"},
      {"{\"command\":\"subscribe\",\"patterns\":[\"screw\"]}", "subscribe",
       "patterns has \"screw\"; there are: bolt, nut"},
      {"{\"command\":\"status\",\"command\":\"latency\"}", "",
       "the key \"command\" stands twice; keep one of them"},
      {"{\"command\":\"subscribe\",\"every\":1,\"x\":{\"every\":2},\"every\":3}", "",
       "the key \"every\" stands twice; keep one of them"},
      {"{\"command\":\"subscribe\",\"every\":0,\"types\":[{\"every\":2}]}", "subscribe",
       "every must be a whole number from 1 to 1000000"},
      {"\xff", "", "byte 1 is not UTF-8; " + json},
      {std::string(40'000, '['), "", "nested deeper than 16 levels; " + json},
  };
  for (const BadCommand& each : bad) {
    SCOPED_TRACE(each.line.substr(0, 80));
    const auto command = parse_command(each.line, kPatterns);
    ASSERT_FALSE(command);
    EXPECT_EQ(command.error().name, each.name);
    EXPECT_EQ(command.error().message, each.message);
  }
}

TEST(ClientCommand, ReadsASubscription) {
  const auto command = parse_command(
      "{\"command\":\"subscribe\",\"types\":[\"result\"],\"patterns\":[\"nut\"],\"every\":5}",
      kPatterns);
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->kind, ClientCommand::Kind::kSubscribe);
  EXPECT_TRUE(command->subscription.results);
  EXPECT_FALSE(command->subscription.camera);
  EXPECT_EQ(command->subscription.patterns, (std::vector<std::string>{"nut"}));
  EXPECT_EQ(command->subscription.every, 5);
}

TEST(ClientCommand, TellsAnEmptyListFromOneThatIsLeftOut) {
  const auto none =
      parse_command("{\"command\":\"subscribe\",\"types\":[],\"patterns\":[]}", kPatterns);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->subscription.results || none->subscription.camera || none->subscription.drift);
  EXPECT_EQ(none->subscription.patterns, std::vector<std::string>());
  const auto all = parse_command("{\"command\":\"subscribe\"}", kPatterns);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(all->subscription.results && all->subscription.camera && all->subscription.drift);
  EXPECT_FALSE(all->subscription.patterns);
}

TEST(ClientCommand, ReadsWhichFramesAreWanted) {
  const auto all = parse_command("{\"command\":\"record\"}", kPatterns);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->kind, ClientCommand::Kind::kRecord);
  EXPECT_EQ(all->frames.frames, 0U);
  const auto some = parse_command(
      "{\"command\":\"record\",\"frames\":100,\"seconds\":2.5,\"every\":3}", kPatterns);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->frames.frames, 100U);
  EXPECT_EQ(some->frames.seconds, 2.5);
  EXPECT_EQ(some->frames.every, 3);
  const auto one = parse_command("{\"command\":\"snapshot\"}", kPatterns);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->kind, ClientCommand::Kind::kSnapshot);
  EXPECT_EQ(one->frames.frames, 1U);
}

TEST(ClientCommand, RepeatsAnUnknownCommandCutBetweenCharacters) {
  const auto command =
      parse_command("{\"command\":\"" + std::string(63, 'x') + "\xc3\xa9\"}", kPatterns);
  ASSERT_FALSE(command);
  EXPECT_EQ(command.error().name, std::string(63, 'x'));
}

TEST(ClientCommand, SeesBracketsInStringsAsText) {
  const auto command = parse_command(
      "{\"command\":\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"}",
      kPatterns);
  ASSERT_FALSE(command);
  EXPECT_NE(command.error().message.find("unknown command"), std::string::npos);
}

}  // namespace
}  // namespace patternd
