#include "daemon/configuration.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/configuration_keys.h"
#include "pipeline/image_file.h"
#include "pipeline/yaml_reader.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

const std::string kSource = PATTERND_SOURCE_DIR;
constexpr const char* kCamera = "camera: {source: replay, path: frames}\n";

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ConfigurationFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "p.yaml") {
    std::ofstream(folder_.file(name), std::ios::binary) << text;
    return folder_.file(name);
  }
  void write_pattern(const std::string& name) {
    auto picture = Image::create(32, 32, PixelFormat::kGray8);
    ASSERT_TRUE(picture);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x)
        picture->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>((x * 37 + y * y * 11) & 255);
    }
    ASSERT_TRUE(write_image(folder_.file(name), picture->view()));
  }
  // The message with the folder's path taken out.
  std::string message_of(const std::string& text) {
    const auto loaded = load_configuration(write(text));
    std::string message = loaded ? "" : loaded.error().message;
    const std::string prefix = folder_.path() + "/";
    for (std::size_t at; (at = message.find(prefix)) != std::string::npos;)
      message.erase(at, prefix.size());
    return message;
  }
  const test::TemporaryFolder folder_;
};

struct BadConfiguration {
  const char* text;
  const char* message;
};

constexpr BadConfiguration kBad[] = {
    {"patterns: []\n",
     "p.yaml:1:1: camera: missing; a map with at least source must say where frames come from"},
    {"camera: {name: c}\n",
     "p.yaml:1:9: camera.source: missing; must be v4l2, gstreamer or replay"},
    {"camera: {source: usb}\n",
     "p.yaml:1:18: camera.source: is \"usb\"; must be v4l2, gstreamer or replay"},
    {"camera: {source: v4l2}\n",
     "p.yaml:1:9: camera.device: missing; source v4l2 needs the device's path"},
    {"camera: {source: gstreamer}\n",
     "p.yaml:1:9: camera.pipeline: missing; source gstreamer needs a gst-launch description"},
    {"camera: {source: replay}\n",
     "p.yaml:1:9: camera.path: missing; source replay needs a file or folder"},
    {"camera: {source: replay, path: f, device: /dev/video0}\n",
     "p.yaml:1:43: camera.device: is a key of source v4l2; leave it out with source replay"},
    {"camera: {source: v4l2, device: /dev/video0, loop: true}\n",
     "p.yaml:1:51: camera.loop: is a key of source replay; leave it out with source v4l2"},
    {"camera: {source: replay, path: f, widht: 5}\n",
     "p.yaml:1:35: camera.widht: unknown key; did you mean width?"},
    {"camera: {source: replay, path: f, width: 40000}\n",
     "p.yaml:1:42: camera.width: is 40000; must be a whole number from 1 to 32767 in decimal "
     "digits"},
    {"camera: {source: replay, path: f, fps: 0}\n",
     "p.yaml:1:40: camera.fps: is 0; must be a number from 0.01 to 10000"},
    {"camera: {source: replay, path: f, name: \"\"}\n",
     "p.yaml:1:41: camera.name: is \"\"; must have no control characters and be 1 to 64 bytes"},
    {"camera: {source: replay, path: f, name: "
     "\"1234567890123456789012345678901234567890123456789012345678901ää\"}\n",
     "p.yaml:1:41: camera.name: is "
     "\"123456789012345678901234567890123456789012345678901234567890…\", which is 65 bytes long; "
     "must have no control characters and be 1 to 64 bytes"},
    {"camera: {source: replay, path: f, name: \"a\\tb\"}\n",
     "p.yaml:1:41: camera.name: is \"a\\x09b\", which has the control character \\x09 as byte 2; "
     "must have no control characters and be 1 to 64 bytes"},
    {"camera: {source: gstreamer, pipeline: \"\"}\n",
     "p.yaml:1:39: camera.pipeline: is empty; must be a gst-launch description"},
    {"camera: {source: replay, path: f}\ncalibration: [a]\n",
     "p.yaml:2:14: calibration: is a list; must be text"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, angle_step: 61}]\n",
     "p.yaml:2:50: patterns[0].angle_step: is 61; must be a number from 0.01 to 60"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, levels: 12}]\n",
     "p.yaml:2:46: patterns[0].levels: is 12; a pattern of this size has 0 to 5"},
    {"camera: {source: replay, path: f}\npublish: {http: {}}\n",
     "p.yaml:2:17: publish.http: comes with a later version of patternd; leave the key out"},
    {"camera: {source: replay, path: f}\npublish: {unix: {path: s, group: no-such-group}}\n",
     "p.yaml:2:34: publish.unix.group: this machine has no group \"no-such-group\"; must be one "
     "that it has, by name or number"},
    {"camera: {source: v4l2, device: /dev/video0, max_silence_s: 0}\n",
     "p.yaml:1:60: camera.max_silence_s: is 0; must be a number from 0.1 to 86400"},
    {"camera: {source: replay, path: f, max_silence_s: 5}\n",
     "p.yaml:1:50: camera.max_silence_s: is a key of cameras; leave it out with source replay"},
    {"camera: {source: v4l2, device: /dev/video0, controls: {gain: high}}\n",
     "p.yaml:1:62: camera.controls.gain: is \"high\"; must be a whole number from -2147483648 to "
     "4294967295 in decimal digits"},
    {"camera: {source: replay, path: f}\ncalibration: no.yaml\n",
     "p.yaml:2:14: calibration: no.yaml: no such file"},
    {"camera: {source: replay, path: f}\npatterns: [{pattern: p.png}]\n",
     "p.yaml:2:12: patterns[0].name: missing; each pattern has a name of its own"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a}]\n",
     "p.yaml:2:12: patterns[0].pattern: missing; must be a file from patternctl teach, or a "
     "picture"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png}, {name: a, pattern: "
     "p.png}]\n",
     "p.yaml:2:46: patterns[1].name: is \"a\" a second time; must differ for each pattern"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, angel_step: 3}]\n",
     "p.yaml:2:38: patterns[0].angel_step: unknown key; did you mean angle_step?"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, min_score: 0}]\n",
     "p.yaml:2:49: patterns[0].min_score: is 0; must be a number from 0.01 to 1"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, angle: [170, "
     "-170]}]\n",
     "p.yaml:2:45: patterns[0].angle: its first number is larger than its second; must be [low, "
     "high]; a range across 180 degrees is written as [170, 190]"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, angle: []}]\n",
     "p.yaml:2:45: patterns[0].angle: is an empty list; must be a range, or all"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, angle: [[0, 1], "
     "[2]]}]\n",
     "p.yaml:2:54: patterns[0].angle[1]: is a list of 1; must be a list of 2 numbers"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, scale: [0, 1]}]\n",
     "p.yaml:2:46: patterns[0].scale[0]: is 0; must be a number from 0.1 to 10"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, scale: [1.2, "
     "0.8]}]\n",
     "p.yaml:2:45: patterns[0].scale: its first number is larger than its second; must be [low, "
     "high]"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, roi: [0, 0, 0, "
     "5]}]\n",
     "p.yaml:2:43: patterns[0].roi: has no area; must be [x, y, width, height] with a width and "
     "height above 0"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png, polarity: both}]\n",
     "p.yaml:2:48: patterns[0].polarity: is \"both\"; must be same or any"},
    {"camera: {source: replay, path: f}\nblobs: {threshold: bright}\n",
     "p.yaml:2:20: blobs.threshold: is \"bright\"; must be a number from 0 to 65535, otsu or "
     "{adaptive: [radius, offset]}"},
    {"camera: {source: replay, path: f}\nblobs: {threshold: {adaptive: [0.5, 3]}}\n",
     "p.yaml:2:32: blobs.threshold.adaptive[0]: is \"0.5\"; must be a whole number from 1 to 1000 "
     "in decimal digits"},
    {"camera: {source: replay, path: f}\nblobs: {threshold: 5, similarity: 5}\n",
     "p.yaml:2:20: blobs.threshold: stands beside similarity; keep one of the two"},
    {"camera: {source: replay, path: f}\nblobs: {min_area: 10, max_area: 9}\n",
     "p.yaml:2:33: blobs.max_area: is less than the least; must not be below its min_ counterpart"},
    {"camera: {source: replay, path: f}\nblobs: {reference: dark}\n",
     "p.yaml:2:8: blobs.dark_frame: missing; reference: dark needs a picture taken without light"},
    {"camera: {source: replay, path: f}\nblobs: {dark_frame: p.png}\n",
     "p.yaml:2:21: blobs.dark_frame: stands without reference: dark; leave it out, or set "
     "reference: dark"},
    {"camera: {source: replay, path: f}\nblobs: {connectivity: 6}\n",
     "p.yaml:2:23: blobs.connectivity: is \"6\"; must be 8 or 4"},
    {"camera: {source: replay, path: f}\ncompute: {backend: gpu}\n",
     "p.yaml:2:20: compute.backend: is \"gpu\"; must be auto, cpu or cuda"},
    {"camera: {source: replay, path: f}\ncompute: {image: sm87}\n",
     "p.yaml:2:18: compute.image: is \"sm87\"; must be auto, universal, sm_NN or compute_NN, such "
     "as sm_87"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {listen: 5577}}\n",
     "p.yaml:2:25: publish.tcp.listen: \"5577\" is no address; must be ADDRESS:PORT, such as "
     "127.0.0.1:5577 or [::1]:5577"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {listen: \"0.0.0.0:5577\"}}\n",
     "p.yaml:2:25: publish.tcp.listen: is \"0.0.0.0:5577\", which other machines can reach; must "
     "have beside it allow with the networks that may connect, and token_file or tls.client_ca, "
     "for the commands that change something; or be a loopback address such as 127.0.0.1:5577"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {listen: \"[::]:5577\", allow: "
     "[10.0.0.0/8]}}\n",
     "p.yaml:2:25: publish.tcp.listen: is \"[::]:5577\", which other machines can reach; must "
     "have beside it token_file or tls.client_ca, for the commands that change something; or be a "
     "loopback address such as 127.0.0.1:5577"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {allow: []}}\n",
     "p.yaml:2:24: publish.tcp.allow: lists no network; must list those that may connect, or be "
     "left out"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {allow: 10.0.0.0/8}}\n",
     "p.yaml:2:24: publish.tcp.allow: is a single value; must be a list"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {allow: [10.0.0.0/8, 10.0.0.1/8, "
     "here]}}\n",
     "p.yaml:2:37: publish.tcp.allow[1]: is \"10.0.0.1/8\", which has bits behind its prefix; must "
     "be 10.0.0.0/8, or one address\n"
     "p.yaml:2:49: publish.tcp.allow[2]: is \"here\"; must be a network such as 192.168.1.0/24 or "
     "fd00::/8, or one address"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {tls: {client_ca: p.yaml}}}\n",
     "p.yaml:2:22: publish.tcp.tls.cert: missing; must be the service's certificate, a PEM file\n"
     "p.yaml:2:22: publish.tcp.tls.key: missing; must be the certificate's private key, a PEM "
     "file\n"
     "p.yaml:2:34: publish.tcp.tls.client_ca: p.yaml holds no certificate in PEM form"},
    {"camera: {source: replay, path: f}\npublish: {tcp: {token_file: none}}\n",
     "p.yaml:2:29: publish.tcp.token_file: none: no such file"},
    {"camera: {source: replay, path: f}\npublish: {unix: {path: s, mode: 0888}}\n",
     "p.yaml:2:33: publish.unix.mode: is \"0888\"; must be three octal digits such as \"0660\""},
    {"camera: {source: replay, path: f}\npublish: {http: {}, mqtt: {}, tcp: {}}\n",
     "p.yaml:2:17: publish.http: comes with a later version of patternd; leave the key out\n"
     "p.yaml:2:27: publish.mqtt: comes with a later version of patternd; leave the key out"},
    {"camera: {source: replay, path: f}\npublish: {}\n",
     "p.yaml:2:10: publish: gives results out nowhere; must have tcp or unix, or be left out"},
    {"camera: {source: replay, path: f}\nfiducials: {patterns: [a], places_mm: [[0, 0], [1, 1]]}\n",
     "p.yaml:2:12: fiducials: names 1 patterns and 2 places; must be as many places as patterns, "
     "at "
     "least one\n"
     "p.yaml:2:12: fiducials: needs millimetres; must stand beside a calibration whose plane has "
     "mm_per_px\n"
     "p.yaml:2:24: fiducials.patterns[0]: is \"a\"; must be the name of one of the patterns, none "
     "twice"},
    {"camera: {source: replay, path: f}\npatterns: [{name: a, pattern: p.png}]\n"
     "fiducials: {patterns: [f1, f2, a, a], places_mm: [[0, 0], [1, 1], [2, 2], [3, 3]]}\n",
     "p.yaml:3:12: fiducials: needs millimetres; must stand beside a calibration whose plane has "
     "mm_per_px\n"
     "p.yaml:3:24: fiducials.patterns[0]: is \"f1\"; must be the name of one of the patterns, none "
     "twice\n"
     "p.yaml:3:28: fiducials.patterns[1]: is \"f2\"; must be the name of one of the patterns, none "
     "twice\n"
     "p.yaml:3:35: fiducials.patterns[3]: is \"a\" a second time; must be the name of one of the "
     "patterns, none twice"},
    {"camera: {source: replay, path: f}\nrecording: {max_mb: 3}\n",
     "p.yaml:2:12: recording: comes with a later version of patternd; leave the key out"},
    {"camera: {source: replay, path: f}\nlog: {level: loud}\n",
     "p.yaml:2:14: log.level: is \"loud\"; must be debug, info, warning or error"},
    {"camera: {source: replay, path: f}\nlatency:\n",
     "p.yaml:2:1: latency: has no value; must be a map of keys"},
    {"camera: {source: replay, path: f}\npublish: {unix: {path: "
     "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaa"
     "aaaaaaaaaa}}\n",
     "p.yaml:2:24: publish.unix.path: is 109 bytes long; must be at most 107 bytes, the folder "
     "included"},
};

TEST_F(ConfigurationFile, IsRefusedWithPlaceCauseAndCure) {
  write_pattern("p.png");
  for (const BadConfiguration& bad : kBad) {
    SCOPED_TRACE(bad.text);
    EXPECT_EQ(message_of(bad.text), bad.message);
  }
}

TEST_F(ConfigurationFile, RefusesToAppendTheLatencyLogToAFileThatIsRead) {
  write_pattern("p.png");
  write("kept: by somebody\n", "notes.txt");
  std::filesystem::create_hard_link(folder_.file("p.png"), folder_.file("link.csv"));
  const std::string before = std::string(kCamera) +
                             "patterns: [{name: a, pattern: p.png}]\n"
                             "publish: {unix: {path: s.sock}}\nlatency: {log: ";
  for (const char* used : {"p.yaml", "p.png", "link.csv", "s.sock", "../../p.yaml"}) {
    SCOPED_TRACE(used);
    const std::string name = *used == '.' ? folder_.file("x/../p.yaml") : used;
    const std::string shown = *used == '.' ? "p.yaml" : used;
    const std::string message = message_of(before + name + "}\n");
    EXPECT_NE(message.find("p.yaml:4:16: latency.log: is "), std::string::npos) << message;
    EXPECT_NE(message.find(shown + ", which has another use here; must be a file of its own"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(message_of(before + "notes.txt}\n"),
            "p.yaml:4:16: latency.log: notes.txt holds something else than a latency log; must "
            "name a file that is new, empty or such a log");
  write("seq,captured_mono_ns,total\n", "l.csv");
  EXPECT_EQ(message_of(before + "l.csv}\n"), "");
}

TEST_F(ConfigurationFile, SaysThatAPatternIsACalibration) {
  write("image_size: [640, 480]\nlens: {model: none}\n", "c.yaml");
  EXPECT_EQ(message_of(std::string(kCamera) + "patterns: [{name: a, pattern: c.yaml}]\n"),
            "c.yaml:1:13: image_size: is a key of a calibration; must be a pattern's file, as "
            "patternctl teach writes it");
}

TEST_F(ConfigurationFile, ReportsTheFaultsOfAllFilesAtOnce) {
  write("image_size: [640]\n", "camera.yaml");
  const std::string message = message_of(std::string(kCamera) +
                                         "calibration: camera.yaml\npatterns: [{name: a, pattern: "
                                         "no.png}]\nlogs: 1\n");
  EXPECT_NE(message.find("p.yaml:3:31: patterns[0].pattern: no.png: "), std::string::npos)
      << message;
  EXPECT_NE(message.find("p.yaml:4:1: logs: unknown key; did you mean log?"), std::string::npos)
      << message;
  EXPECT_NE(message.find("camera.yaml:1:13: image_size: "), std::string::npos) << message;
}

TEST_F(ConfigurationFile, ShippedAsAnExampleEqualsTheDefaultsInCode) {
  const auto shipped = load_configuration(kSource + "/config/patternd.yaml");
  ASSERT_TRUE(shipped) << shipped.error().message;
  const auto shortest = load_configuration(
      write("camera: {source: replay, path: " + kSource + "/config/recording}\n"));
  ASSERT_TRUE(shortest) << shortest.error().message;
  EXPECT_EQ(to_yaml(*shipped), to_yaml(*shortest));
}

TEST_F(ConfigurationFile, ShippedAsAnExampleNamesEveryKeyWithItsDefault) {
  const std::string text = content(kSource + "/config/patternd.yaml");
  for (const ConfigurationKey& key : configuration_keys()) {
    const std::string name(key.path.substr(key.path.find_last_of('.') + 1));
    const bool shown = text.find(name + ": ") != std::string::npos;
    EXPECT_TRUE(shown) << key.path;
  }
}

TEST_F(ConfigurationFile, ReadsFiducialsBesideACalibrationWithMillimetres) {
  write_pattern("p.png");
  std::ofstream(folder_.file("c.yaml"))
      << "image_size: [640, 480]\nlens: {model: none}\nplane: {homography: [1, 0, 0, 0, 1, 0, 0, "
         "0, "
         "1], width: 640, height: 480, mm_per_px: 0.5, origin_px: [0, 0]}\n";
  const auto loaded = load_configuration(write(
      std::string(kCamera) +
      "calibration: c.yaml\npatterns: [{name: a, pattern: p.png}, {name: b, pattern: p.png}]\n"
      "fiducials: {patterns: [b], places_mm: [[-3, 4.5]]}\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_TRUE(loaded->fiducials);
  EXPECT_EQ(loaded->fiducials->patterns, std::vector<int>{1});
  EXPECT_EQ(loaded->fiducials->places_mm[0].x, -3);
  EXPECT_EQ(loaded->fiducials->limit_mm, 0.5);
  EXPECT_EQ(loaded->fiducials->every, 100);
  const auto again = load_configuration(write(to_yaml(*loaded)));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_yaml(*again), to_yaml(*loaded));
}

// Every default of the table, looked up in the effective configuration of a file that gives none.
TEST_F(ConfigurationFile, GivesEveryKeyTheDefaultOfTheTable) {
  write_pattern("p.png");
  const auto loaded = load_configuration(
      write(std::string(kCamera) + "patterns: [{name: a, pattern: p.png}]\nblobs: {}\npublish: "
                                   "{tcp: {}, unix: {path: p.sock}}\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::string effective = to_yaml(*loaded);
  for (const ConfigurationKey& key : configuration_keys()) {
    // (Fiducials stand only where there are some, beside a calibration; this camera is a
    // recording.)
    const bool fiducials = key.path.substr(0, 10) == "fiducials.";
    const bool live = key.path == "camera.controls" || key.path == "camera.max_silence_s";
    if (key.fallback.empty() || live || fiducials) continue;
    const std::string name(key.path.substr(key.path.find_last_of('.') + 1));
    const std::string plain = name + ": " + std::string(key.fallback) + "\n";
    const std::string with_quotes = name + ": \"" + std::string(key.fallback) + "\"\n";
    EXPECT_TRUE(effective.find(plain) != std::string::npos ||
                effective.find(with_quotes) != std::string::npos)
        << key.path << " should be " << key.fallback << " in\n"
        << effective;
  }
}

TEST_F(ConfigurationFile, ReadsBackItsEffectiveForm) {
  write_pattern("p.png");
  const char* const kTexts[] = {
      "camera: {name: 'line 3', source: v4l2, device: /dev/video0, width: 640, height: 480, "
      "format: "
      "GREY, fps: 29.97, controls: {gain: 10, exposure_time_absolute: 50}}\n",
      "camera: {source: gstreamer, pipeline: 'videotestsrc ! \"video/x-raw\"', max_silence_s: "
      "none}\n",
      "camera: {source: replay, path: f, loop: true, realtime: false}\npatterns:\n  - {name: a, "
      "pattern: p.png, angle: [[-200, -170], [10, 20.5]], scale: [0.9, 1.1], polarity: any, "
      "levels: 3, angle_step: 2.5, roi: [0, 0, 100.5, 50], symmetry: 4}\nblobs: {threshold: "
      "{adaptive: [15, -3.5]}, below: true}\npublish: {unix: {path: s.sock, mode: 0600, group: "
      "staff}, tcp: {allow: [\"::1\", 10.0.0.0/8], listen: "
      "'[::1]:1'}}\nlatency: {log: l.csv}\nlog: {level: debug}\n",
      "camera: {source: replay, path: f}\nblobs: {similarity: 4, connectivity: 4}\n",
      "camera: {source: replay, path: f}\nblobs: {threshold: otsu, reference: alternate, max_area: "
      "500, "
      "min_width: 2, max_width: 9, min_height: 3, max_height: 10, min_elongation: 1.5, "
      "max_elongation: 4, min_peak: 7}\n",
      "camera: {source: replay, path: f}\nblobs: {reference: dark, dark_frame: p.png}\n",
  };
  for (const char* text : kTexts) {
    SCOPED_TRACE(text);
    const auto first = load_configuration(write(text));
    ASSERT_TRUE(first) << first.error().message;
    const auto second = load_configuration(write(to_yaml(*first), "again.yaml"));
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(to_yaml(*second), to_yaml(*first));
  }
}

TEST_F(ConfigurationFile, TakesFramesFromARecordingInsteadOfTheCameraWhenAsked) {
  ConfigurationOverrides overrides;
  overrides.replay = "some/recording";
  overrides.fast = true;
  overrides.backend = ComputeConfig::Backend::kCpu;
  const auto loaded = load_configuration(
      write("camera: {name: line3, source: v4l2, device: /dev/video9, width: 640}\n"), overrides);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->camera.kind, CameraConfig::Kind::kReplay);
  EXPECT_EQ(loaded->camera.path, "some/recording");
  EXPECT_EQ(loaded->camera.name, "line3");
  EXPECT_EQ(loaded->camera.width, 0);
  EXPECT_FALSE(loaded->camera.realtime);
  EXPECT_EQ(loaded->compute.backend, ComputeConfig::Backend::kCpu);
}

TEST_F(ConfigurationFile, TakesEveryImageThatAVersionLists) {
  for (const char* image : {"auto", "universal", "sm_87", "compute_120"}) {
    const auto loaded = load_configuration(
        write("camera: {source: replay, path: f}\ncompute: {image: " + std::string(image) + "}\n"));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->compute.image, image);
  }
  for (const char* image :
       {"sm_", "sm_8", "sm_87a", "sm_12345", "compute_", "foo", "universal_sm_30"}) {
    EXPECT_FALSE(load_configuration(
        write("camera: {source: replay, path: f}\ncompute: {image: " + std::string(image) + "}\n")))
        << image;
  }
}

TEST_F(ConfigurationFile, NamesTheKeysOfComputeByTheirPlaces) {
  const std::string file =
      write("camera: {source: replay, path: f}\ncompute: {backend: cuda, device: 5}\n");
  ConfigurationOverrides overrides;
  const auto loaded = load_configuration(file, overrides);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->compute.names.backend, file + ":2:20: compute.backend");
  EXPECT_EQ(loaded->compute.names.device, file + ":2:34: compute.device");
  EXPECT_EQ(loaded->compute.names.image, "compute.image");
  overrides.backend = ComputeConfig::Backend::kCuda;
  EXPECT_EQ(load_configuration(file, overrides)->compute.names.backend, "patternd: --backend");
}

TEST(ConfigurationReadme, HasTheTableOfKeysThatTheCodeHas) {
  const std::string readme = content(kSource + "/config/README.md");
  EXPECT_NE(readme.find(configuration_key_table()), std::string::npos)
      << "put this table into config/README.md (patternd --keys prints it):\n"
      << configuration_key_table();
  for (const std::string_view key : later_keys())
    EXPECT_NE(readme.find("`" + std::string(key) + "`"), std::string::npos) << key;
}

TEST(Address, IsAUnixSocketThatStandsInThisFolder) {
  const std::string name = "patternd-test-" + std::to_string(::getpid()) + ".sock";
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  name.copy(place.sun_path, sizeof place.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  EXPECT_EQ(shown(*parse_service_address(name)), name);
  ::unlink(name.c_str());
  ::close(listener);
  EXPECT_EQ(shown(*parse_service_address(name)), name + ":5577");
}

TEST(Address, IsReadInEveryFormAndShownAsWritten) {
  for (const char* good : {"127.0.0.1:5577", "[::1]:80", "localhost:0", "10.1.2.3:65535"}) {
    const auto address = parse_tcp_address(good);
    ASSERT_TRUE(address) << good;
    EXPECT_EQ(shown(*address), good);
  }
  for (const char* bad : {"", ":", "5577", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                          "[::1]", "[127.0.0.1]:1", "example.org:80", "127.0.0.1:8a", "1.2.3:4"}) {
    EXPECT_FALSE(parse_tcp_address(bad)) << bad;
  }
  EXPECT_EQ(shown(*parse_service_address("example.org")), "example.org:5577");
  EXPECT_EQ(shown(*parse_service_address(":80")), "127.0.0.1:80");
  EXPECT_EQ(shown(*parse_service_address("/run/p.sock")), "/run/p.sock");
  EXPECT_EQ(shown(*parse_service_address("[::1]")), "[::1]:5577");
  EXPECT_FALSE(parse_service_address("a:b:c"));
}

TEST(Address, KnowsWhichOnesStayOnThisMachine) {
  for (const char* here : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(is_loopback(*parse_tcp_address(here))) << here;
  for (const char* beyond : {"0.0.0.0:1", "[::]:1", "192.168.0.1:1"})
    EXPECT_FALSE(is_loopback(*parse_tcp_address(beyond))) << beyond;
}

}  // namespace
}  // namespace patternd
