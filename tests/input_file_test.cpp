// A file that is none is refused at once, whatever reads it.
#include "pipeline/input_file.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/access.h"
#include "daemon/configuration.h"
#include "pipeline/image_file.h"
#include "pipeline/latency_log.h"
#include "pipeline/pattern.h"
#include "pipeline/sources/aligned_frames.h"
#include "pipeline/sources/recording_index.h"
#include "pipeline/yaml_reader.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

class InputFileTest : public ::testing::Test {
 protected:
  // A pipe that nobody writes to.
  std::string pipe(const std::string& name) const {
    std::string path = folder_.file(name);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  test::TemporaryFolder folder_;
};

template <class T>
void expect_refused(const Result<T>& outcome, const std::string& message) {
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(outcome.error().message, message);
}

TEST_F(InputFileTest, GivesTheWholeContentUpToTheLimit) {
  const std::string path = folder_.file("a");
  std::ofstream(path) << std::string(200'000, 'x');
  EXPECT_EQ(read_file(path, 200'000)->size(), 200'000U);
  expect_refused(read_file(path, 199'999),
                 path + ": is larger than 0 MiB, the most that is read of such a file");
}

TEST_F(InputFileTest, SaysWhatStandsInTheFilesPlace) {
  const std::string fifo = pipe("fifo");
  expect_refused(read_file(fifo, 10), fifo + ": is a pipe; must be a regular file");
  expect_refused(read_file("/dev/zero", 10), "/dev/zero: is a device; must be a regular file");
  expect_refused(read_file(folder_.path(), 10),
                 folder_.path() + ": is a folder; must be a regular file");
  const std::string gone = folder_.file("gone");
  EXPECT_EQ(read_file(gone, 10).error().message, gone + ": no such file");
  EXPECT_EQ(read_file(gone, 10).error().code, ErrorCode::kNotFound);
  const std::string under = fifo + "/a";
  EXPECT_EQ(read_file(under, 10).error().message, under + ": no such file");
}

TEST_F(InputFileTest, IsHowEveryReaderOpensItsFiles) {
  const std::string end = ": is a pipe; must be a regular file";
  const std::string png = pipe("a.png");
  expect_refused(read_image(png), png + end);
  expect_refused(load_pattern(png, "a"), png + end);
  const std::string yaml = pipe("a.yaml");
  expect_refused(YamlReader::load(yaml), yaml + end);
  expect_refused(load_pattern(yaml, "a"), yaml + end);
  expect_refused(load_configuration(yaml), yaml + end);
  expect_refused(read_token(yaml), yaml + end);
  const std::string index = pipe(kIndexName);
  expect_refused(read_recording_index(folder_.path()), index + end);
}

TEST_F(InputFileTest, IsHowReplaysOpenTheirs) {
  const auto start = [](const std::string& path) {
    CameraConfig config;
    config.path = path;
    AlignedFrameAllocator memory;
    return make_source(config).value()->start(memory, 2);
  };
  const std::string end = ": is a pipe; must be a regular file";
  const std::string video = pipe("a.mkv");
  expect_refused(start(video), video + end);
  const std::string picture = pipe("a.png");
  expect_refused(start(picture), picture + end);
  expect_refused(start(folder_.path()), picture + end);
  expect_refused(start("/dev/null"), "/dev/null: is a device; must be a regular file");
}

TEST_F(InputFileTest, HasItsLikeForTheLatencyLog) {
  const std::string path = pipe("latency.csv");
  const auto log = LatencyLog::open(path);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("must name a file in a folder"), std::string::npos);
}

}  // namespace
}  // namespace patternd
