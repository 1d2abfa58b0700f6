#include "daemon/result_line.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "daemon/messages.h"

namespace patternd {
namespace {

ResultFormat bolt_format() {
  ResultFormat format;
  format.patterns = {{"bolt", 1, 10}, {"nut", 6, 10}};
  return format;
}

FrameInfo info_42() {
  FrameInfo info;
  info.seq = 42;
  info.captured_unix_ns = 1'769'860'800'123'456'789;
  info.captured_mono_ns = 1'234'567'890;
  return info;
}

Match bolt() {
  Match match;
  match.x_px = 512.31;
  match.y_px = 288.04;
  match.angle_deg = -12.74;
  match.score = 0.973;
  match.runner_up = 0.41;
  match.x_std_px = match.y_std_px = match.angle_std_deg = 0.01;
  match.has_mm = true;
  match.x_mm = 102.46;
  match.y_mm = 57.61;
  match.x_std_mm = match.y_std_mm = 0.002;
  return match;
}

std::string real(double value, int decimals) {
  char memory[64];
  LineWriter line(memory, sizeof memory);
  line.real(value, decimals);
  return std::string(line.view());
}

std::string text(std::string_view value) {
  std::string memory(json_text_bound(value.size()), '\0');
  LineWriter line(memory.data(), memory.size());
  line.text(value);
  EXPECT_FALSE(line.overflowed());
  return std::string(line.view());
}

std::string utc(std::int64_t unix_ns) {
  char memory[64];
  LineWriter line(memory, sizeof memory);
  write_utc(line, unix_ns);
  return std::string(line.view());
}

TEST(LineWriter, RoundsNumbersAndLeavesOutIdleZeros) {
  EXPECT_EQ(real(512.3125, 3), "512.313");
  EXPECT_EQ(real(1, 4), "1.0");
  EXPECT_EQ(real(0.97, 4), "0.97");
  EXPECT_EQ(real(0.05, 2), "0.05");
  EXPECT_EQ(real(0.0005, 3), "0.001");
  EXPECT_EQ(real(-0.0001, 3), "0.0");
  EXPECT_EQ(real(-12.5, 1), "-12.5");
  EXPECT_EQ(real(7, 0), "7.0");
  EXPECT_EQ(real(999.9996, 3), "1000.0");
}

TEST(LineWriter, NeverPrintsNanOrInfinity) {
  EXPECT_EQ(real(std::numeric_limits<double>::quiet_NaN(), 3), "0.0");
  EXPECT_EQ(real(std::numeric_limits<double>::infinity(), 3), "0.0");
  EXPECT_EQ(real(1e300, 3), "1000000000000.0");
  EXPECT_EQ(real(-1e300, 6), "-1000000000000.0");
}

TEST(LineWriter, EscapesTextAndReplacesMalformedUtf8) {
  EXPECT_EQ(text("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(text("\xc3\xa9\xff\xe2\x82"), "\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(text(std::string(50, '\x02')).size(), json_text_bound(50));
}

TEST(LineWriter, LeavesOutWholeWhatDoesNotFit) {
  char memory[8];
  LineWriter line(memory, sizeof memory);
  line.raw("1234");
  line.text("too long");
  EXPECT_TRUE(line.overflowed());
  EXPECT_EQ(line.view(), "1234");
  line.cut(2);
  EXPECT_FALSE(line.overflowed());
  EXPECT_EQ(line.view(), "12");
}

TEST(Utc, PrintsLeapDaysAndTimesBefore1970) {
  EXPECT_EQ(utc(0), "\"1970-01-01T00:00:00.000000Z\"");
  EXPECT_EQ(utc(-1), "\"1969-12-31T23:59:59.999999Z\"");
  EXPECT_EQ(utc(1'709'251'199'999'999'999), "\"2024-02-29T23:59:59.999999Z\"");
  EXPECT_EQ(utc(951'782'400'000'000'000), "\"2000-02-29T00:00:00.000000Z\"");
  EXPECT_EQ(utc(1'769'860'800'123'456'789), "\"2026-01-31T12:00:00.123456Z\"");
  EXPECT_EQ(utc(std::numeric_limits<std::int64_t>::max()), "\"2262-04-11T23:47:16.854775Z\"");
  EXPECT_EQ(utc(std::numeric_limits<std::int64_t>::min()), "\"1677-09-21T00:12:43.145224Z\"");
}

TEST(ResultLine, HasTheKeysOfTheContractInItsOrder) {
  FrameResult result;
  result.matches = {bolt()};
  Blob blob;
  blob.id = 1;
  blob.area_px = 37;
  blob.x_px = 10.2;
  blob.y_px = 20.7;
  blob.left = 8;
  blob.top = 18;
  blob.width = 5;
  blob.height = 6;
  blob.mean = 190.5;
  blob.peak = 255;
  result.blobs = {blob};
  result.blobs_total = 1;
  result.times.ns = {310'000, 95'000, 40'000, 410'000, 12'000,
                     160'000, 35'000, 0,      8'499,   1'089'500};
  ResultFormat format = bolt_format();
  format.has_blobs = true;
  format.max_blobs = 10;
  EXPECT_EQ(
      result_line(format, info_42(), result),
      "{\"type\":\"result\",\"seq\":42,\"captured_at\":\"2026-01-31T12:00:00.123456Z\","
      "\"captured_mono_ns\":1234567890,\"dropped\":0,\"matches\":[{\"pattern\":\"bolt\","
      "\"x_px\":512.31,\"y_px\":288.04,\"angle_deg\":-12.74,\"scale\":1.0,\"score\":0.973,"
      "\"runner_up\":0.41,\"visible\":1.0,\"x_std_px\":0.01,\"y_std_px\":0.01,"
      "\"angle_std_deg\":0.01,\"x_mm\":102.46,\"y_mm\":57.61,\"x_std_mm\":0.002,"
      "\"y_std_mm\":0.002}],\"blobs\":[{\"id\":1,"
      "\"area_px\":37,\"x_px\":10.2,\"y_px\":20.7,\"left\":8,\"top\":18,\"width\":5,\"height\":6,"
      "\"mean\":190.5,\"peak\":255}],\"latency_us\":{\"capture\":310,\"rectify\":95,"
      "\"pyramid\":40,\"search\":410,\"nms\":12,\"trace\":160,\"refine\":35,\"blobs\":0,"
      "\"publish\":8,\"total\":1090}}\n");
}

TEST(ResultLine, AlwaysHasMatchesAndEveryLatencyKey) {
  EXPECT_EQ(result_line(bolt_format(), info_42(), FrameResult{}, "a \"b\".png"),
            "{\"type\":\"result\",\"image\":\"a \\\"b\\\".png\",\"seq\":42,"
            "\"captured_at\":\"2026-01-31T12:00:00.123456Z\",\"captured_mono_ns\":1234567890,"
            "\"dropped\":0,\"matches\":[],\"latency_us\":{\"capture\":0,\"rectify\":0,"
            "\"pyramid\":0,\"search\":0,\"nms\":0,\"trace\":0,\"refine\":0,\"blobs\":0,"
            "\"publish\":0,\"total\":0}}\n");
}

TEST(ResultLine, KeepsAnglesHalfOpenAfterRounding) {
  FrameResult result;
  result.matches = {bolt(), bolt(), bolt()};
  result.matches[0].angle_deg = 179.9999;
  result.matches[1].pattern = 1;
  result.matches[1].angle_deg = 29.99999;
  result.matches[2].angle_deg = -180;
  const Json line = Json::parse(result_line(bolt_format(), info_42(), result));
  EXPECT_EQ(line["matches"][0]["angle_deg"], -180.0);
  EXPECT_EQ(line["matches"][1]["angle_deg"], -30.0);
  EXPECT_EQ(line["matches"][2]["angle_deg"], -180.0);
}

TEST(ResultLine, SaysInvertedOnlyWhereItIs) {
  FrameResult result;
  result.matches = {bolt(), bolt()};
  result.matches[1].inverted = true;
  const Json line = Json::parse(result_line(bolt_format(), info_42(), result));
  EXPECT_FALSE(line["matches"][0].contains("inverted"));
  EXPECT_EQ(line["matches"][1]["inverted"], true);
}

TEST(ResultLine, CutsTheSmallestBlobsToStayUnderOneMebibyte) {
  ResultFormat format = bolt_format();
  format.has_blobs = true;
  format.max_blobs = 100'000;
  FrameResult result;
  for (int i = 0; i < 100'000; ++i) {
    Blob blob;
    blob.id = i + 1;
    blob.area_px = 100'000 - i;
    result.blobs.push_back(blob);
  }
  result.blobs_total = 123'456;
  const std::string text_of_line = result_line(format, info_42(), result);
  EXPECT_LE(text_of_line.size(), kMaxLineBytes);
  EXPECT_GT(text_of_line.size(), kMaxLineBytes - 1024);
  const Json line = Json::parse(text_of_line);
  EXPECT_EQ(line["blobs_total"], 123'456);
  EXPECT_EQ(line["blobs"][0]["area_px"], 100'000);
  EXPECT_TRUE(line.contains("latency_us"));
}

TEST(ResultLine, CutsTheWorstMatchesToStayUnderOneMebibyte) {
  ResultFormat format;
  format.patterns = {{std::string(60, '\x01'), 1, 1000}};
  format.patterns.resize(9, format.patterns[0]);
  FrameResult result;
  for (int i = 0; i < 9000; ++i) result.matches.push_back(bolt());
  const std::string text_of_line = result_line(format, info_42(), result);
  EXPECT_LE(text_of_line.size(), kMaxLineBytes);
  const Json line = Json::parse(text_of_line);
  EXPECT_EQ(line["matches_total"], 9000);
  EXPECT_LT(line["matches"].size(), 9000U);
}

TEST(ResultLine, FitsItsBoundWithTheWidestNumbers) {
  ResultFormat format = bolt_format();
  format.has_blobs = true;
  format.max_blobs = 3;
  const double wide = -123'456'789'012.123'456;
  Match match;
  match.x_px = match.y_px = match.scale = match.score = match.runner_up = match.visible = wide;
  match.x_std_px = match.y_std_px = match.angle_std_deg = match.x_mm = match.y_mm = wide;
  match.x_std_mm = match.y_std_mm = wide;
  match.angle_deg = wide;
  match.has_mm = match.inverted = true;
  Blob blob;
  blob.id = blob.area_px = std::numeric_limits<std::int64_t>::min();
  blob.x_px = blob.y_px = blob.mean = blob.peak = wide;
  blob.left = blob.top = blob.width = blob.height = std::numeric_limits<int>::min();
  FrameResult result;
  result.matches.assign(20, match);
  result.blobs.assign(3, blob);
  result.blobs_total = 3;
  result.times.ns.fill(std::numeric_limits<std::int64_t>::max() - 500);
  FrameInfo info = info_42();
  info.seq = info.dropped = std::numeric_limits<std::uint64_t>::max();
  const Json line = Json::parse(result_line(format, info, result));
  EXPECT_EQ(line["matches"].size(), 20U);
  EXPECT_EQ(line["blobs"].size(), 3U);
  EXPECT_FALSE(line.contains("matches_total"));
}

TEST(ResultLine, TellsWhereEachMatchStands) {
  FrameResult result;
  result.matches = {bolt(), bolt()};
  result.matches[1].pattern = 1;
  std::string memory(result_line_bound(bolt_format()), '\0');
  ResultLineWriter writer(memory.data(), memory.size());
  std::vector<MatchSpan> spans;
  writer.begin(bolt_format(), info_42(), result, "", &spans);
  const std::string_view line = writer.finish(result.times);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].pattern, 1U);
  const Json match = Json::parse(line.substr(spans[1].begin, spans[1].end - spans[1].begin));
  EXPECT_EQ(match["pattern"], "nut");
}

TEST(Messages, AreTheContractsLines) {
  EXPECT_EQ(
      hello_line({"cam0", 1280, 720, "cuda", {"bolt"}}),
      "{\"type\":\"hello\",\"protocol\":1,\"server\":\"patternd 0.1.0\",\"camera\":\"cam0\","
      "\"frame\":{\"width\":1280,\"height\":720},\"backend\":\"cuda\",\"patterns\":[\"bolt\"]}"
      "\n");
  EXPECT_EQ(dropped_line(7), "{\"type\":\"dropped\",\"count\":7}\n");
  EXPECT_EQ(camera_line(true, "unplugged"),
            "{\"type\":\"camera\",\"state\":\"lost\",\"reason\":\"unplugged\"}\n");
  EXPECT_EQ(reply_line("status", {{"a", 1}}),
            "{\"type\":\"reply\",\"command\":\"status\",\"ok\":true,\"data\":{\"a\":1}}\n");
  EXPECT_EQ(error_line("", "bad \xff"),
            "{\"type\":\"reply\",\"command\":null,\"ok\":false,\"error\":\"bad \xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace patternd
