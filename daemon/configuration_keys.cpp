#include "daemon/configuration_keys.h"

#include <cassert>

#include "pipeline/image.h"
#include "pipeline/match.h"

namespace patternd {
namespace {

constexpr double kSide = kMaxImageSide;

}  // namespace

const std::vector<ConfigurationKey>& configuration_keys() {
  static const std::vector<ConfigurationKey> keys = {
      {"camera.name", "cam0", "1 to 64 bytes without control characters", 0, 0, "said in `hello`"},
      {"camera.source", "", "`v4l2`, `gstreamer` or `replay`", 0, 0, "where frames come from"},
      {"camera.device", "", "a path", 0, 0,
       "`v4l2`: the device; `/dev/v4l/by-path/…` stays the same over reboots"},
      {"camera.pipeline", "", "text", 0, 0,
       "`gstreamer`: a `gst-launch` description without a sink"},
      {"camera.path", "", "a path", 0, 0,
       "`replay`: a video file, a folder of pictures or a recording"},
      {"camera.loop", "false", "`true` or `false`", 0, 0, "`replay`: begin again at the end"},
      {"camera.realtime", "true", "`true` or `false`", 0, 0,
       "`replay`: at the recorded pace; otherwise as fast as possible"},
      {"camera.width", "auto", "`auto` or a number from 1 to 32767", 1, kSide,
       "pixels; `auto`: as the source gives"},
      {"camera.height", "auto", "`auto` or a number from 1 to 32767", 1, kSide,
       "pixels; `auto`: as the source gives"},
      {"camera.format", "auto", "`auto` or the name of a pixel format", 0, 0,
       "`GREY`, `Y10`, `Y12`, `Y16`, `YUYV`, `UYVY`, `NV12`, `RGB3`, `MJPG`, …"},
      {"camera.fps", "auto", "`auto` or a number from 0.01 to 10000", 0.01, 10000,
       "frames a second; `auto`: as the source gives, 25 for a folder of pictures"},
      {"camera.max_silence_s", "2", "`none` or a number from 0.1 to 86400", 0.1, 86400,
       "`v4l2`, `gstreamer`: seconds without a frame after which the camera is opened anew; `none` "
       "for one on an external trigger"},
      {"camera.controls", "{}", "a map of names to whole numbers", -2147483648.0, 4294967295.0,
       "`v4l2`: controls by the names that `v4l2-ctl -l` prints"},
      {"calibration", "", "a path", 0, 0,
       "the calibration file; left out: frames are searched as they come"},
      {"patterns[].name", "", "1 to 64 bytes without control characters, no name twice", 0, 0,
       "said with each match"},
      {"patterns[].pattern", "", "a path", 0, 0,
       "a pattern file from `patternctl teach`, or a plain picture"},
      {"patterns[].min_score", "0.7", "a number from 0.01 to 1", 0.01, 1,
       "NCC below which nothing is reported"},
      {"patterns[].max_matches", "10", "a number from 1 to 1000", 1, 1000,
       "the most matches of this pattern a frame"},
      {"patterns[].angle", "all", "`all`, `[low, high]` or a list of such ranges, from -360 to 360",
       -360, 360, "degrees, clockwise; may cross ±180"},
      {"patterns[].scale", "[1, 1]", "`[low, high]` from 0.1 to 10", 0.1, 10,
       "size over taught size"},
      {"patterns[].max_overlap", "0.3", "a number from 0 to 1", 0, 1,
       "of two finds that overlap by more (share of the smaller) the better stays"},
      {"patterns[].min_visible", "1", "a number from 0.01 to 1", 0.01, 1,
       "least share of the pattern inside the picture"},
      {"patterns[].min_contrast", "2", "a number from 0 to 255", 0, 255,
       "grey levels of 8 bit; flatter places score 0"},
      {"patterns[].polarity", "same", "`same` or `any`", 0, 0, "`any`: negatives are found too"},
      {"patterns[].symmetry", "1", "a number from 1 to 360", 1, 360,
       "n-fold: the pattern looks the same turned by 360/n degrees"},
      {"patterns[].levels", "auto", "`auto` or a number from 0 to 12", 0, 12,
       "pyramid levels above the picture; `auto`: as taught"},
      {"patterns[].angle_step", "auto", "`auto` or a number from 0.01 to 60", kAngleStepLimits.low,
       kAngleStepLimits.high, "degrees at the coarsest level; `auto`: as taught"},
      {"patterns[].roi", "all", "`all` or `[x, y, width, height]`", -kSide, kSide,
       "pixels searched; where the reference point may lie"},
      {"blobs.threshold", "200",
       "a number from 0 to 65535, `otsu` or `{adaptive: [radius, offset]}`", 0, 65535,
       "grey levels; foreground is brighter (`adaptive`: than the local mean + offset)"},
      {"blobs.similarity", "", "a number from 0 to 65535, in place of `threshold`", 0, 65535,
       "grey levels by which neighbours of one component may differ"},
      {"blobs.below", "false", "`true` or `false`", 0, 0, "foreground is darker instead"},
      {"blobs.connectivity", "8", "`8` or `4`", 0, 0, "neighbours that hang together"},
      {"blobs.min_area", "1", "a number from 1 to 1000000000", 1, 1e9,
       "pixels below which a component is left out"},
      {"blobs.max_area", "none", "`none` or a number from 1 to 1000000000", 1, 1e9,
       "pixels above which a component is left out"},
      {"blobs.min_width", "1", "a number from 1 to 32767", 1, kSide, "pixels, of the bounding box"},
      {"blobs.max_width", "none", "`none` or a number from 1 to 32767", 1, kSide,
       "pixels, of the bounding box"},
      {"blobs.min_height", "1", "a number from 1 to 32767", 1, kSide,
       "pixels, of the bounding box"},
      {"blobs.max_height", "none", "`none` or a number from 1 to 32767", 1, kSide,
       "pixels, of the bounding box"},
      {"blobs.min_elongation", "1", "a number from 1 to 1000000", 1, 1e6, "major over minor axis"},
      {"blobs.max_elongation", "none", "`none` or a number from 1 to 1000000", 1, 1e6,
       "major over minor axis"},
      {"blobs.min_peak", "0", "a number from 0 to 65535", 0, 65535,
       "grey levels that a component's brightest pixel must reach"},
      {"blobs.max_blobs", "1000", "a number from 1 to 100000", 1, 100000,
       "the most components a frame, the largest"},
      {"blobs.reference", "off", "`off`, `dark` or `alternate`", 0, 0,
       "subtract a dark frame, or the frame before"},
      {"blobs.dark_frame", "", "a path", 0, 0,
       "`reference: dark`: a picture as the camera gives it without light"},
      {"blobs.roi", "all", "`all` or `[x, y, width, height]`", -kSide, kSide, "pixels looked at"},
      {"fiducials.patterns", "", "a list of names of `patterns`, none twice", 0, 0,
       "patterns whose places on the plane are known: their drift tells that the camera moved"},
      {"fiducials.places_mm", "", "a list of `[x, y]`, one a pattern", -1e6, 1e6,
       "where their reference points lie, millimetres of the calibration's plane"},
      {"fiducials.limit_mm", "0.5", "a number from 0.001 to 10000", 0.001, 10000,
       "millimetres; farther off in three comparisons in a row is a move"},
      {"fiducials.every", "100", "a number from 1 to 1000000", 1, 1e6,
       "frames between two comparisons"},
      {"compute.backend", "auto", "`auto`, `cpu` or `cuda`", 0, 0,
       "`cuda`: a GPU, or nothing is started, and a frame that fails on it is lost, and counted; "
       "`auto`: a GPU where one can be used, else the CPU, which also does again the frames that "
       "fail on the GPU"},
      {"compute.device", "0", "a number from 0 to 63", 0, 63, "`cuda`: number of the device"},
      {"compute.memory", "auto", "`auto`, `copy`, `mapped` or `managed`", 0, 0,
       "`cuda`: how frames reach the device: `copy` from page-locked memory, read in place where "
       "it is `mapped` or `managed`; `auto`: `copy` on a GPU with memory of its own; on one that "
       "shares the host's `mapped` from compute capability 7.2 (Xavier, Orin, Thor), `managed` "
       "before; a camera opened before a reload that changes this keeps its "
       "memory until it is opened again"},
      {"compute.streams", "2", "a number from 1 to 8", 1, 8,
       "`cuda`: frames in flight: the next ones are copied and computed while the first is; a "
       "result never waits for the next frame"},
      {"compute.threads", "0", "a number from 0 to 256", 0, 256,
       "`cpu`: threads a frame; 0: as many as the process may use"},
      {"compute.image", "auto", "`auto`, `universal`, `sm_NN` or `compute_NN`", 0, 0,
       "`cuda`: which device image is loaded; `patternd --version` lists them"},
      {"publish.tcp.listen", "127.0.0.1:5577", "`ADDRESS:PORT`", 0, 65535,
       "where results are given out; port 0: one that is free. An address that other machines can "
       "reach needs `allow`, and `token_file` or `tls.client_ca`"},
      {"publish.tcp.allow", "", "a list of networks such as `192.168.1.0/24` or `fd00::/8`", 0, 0,
       "who may connect; left out: whoever can reach the address"},
      {"publish.tcp.token_file", "", "a path", 0, 0,
       "one line, 16 to 256 characters, closed to other users: what commands that change something "
       "must bring"},
      {"publish.tcp.tls.cert", "", "a path", 0, 0,
       "PEM: the service's certificate and those behind it; with `tls`, TLS 1.2 or 1.3 alone is "
       "spoken"},
      {"publish.tcp.tls.key", "", "a path", 0, 0,
       "PEM: its key, without a passphrase, closed to other users"},
      {"publish.tcp.tls.client_ca", "", "a path", 0, 0,
       "PEM: who signs the certificates without which no client gets in"},
      {"publish.unix.path", "", "a path of at most 107 bytes", 0, 0, "the same on a Unix socket"},
      {"publish.unix.mode", "0660", "three octal digits, with or without a 0 before them", 0, 0777,
       "of the socket's file: whoever may write to it may connect, and change things"},
      {"publish.unix.group", "", "a group's name or number", 0, 0,
       "of the socket's file; left out: that of the service or the folder"},
      {"latency.log", "", "a path", 0, 0, "CSV, one line a frame, appended to"},
      {"log.level", "info", "`debug`, `info`, `warning` or `error`", 0, 0, "what is logged"},
  };
  return keys;
}

const ConfigurationKey& configuration_key(std::string_view path) {
  for (const ConfigurationKey& key : configuration_keys()) {
    if (key.path == path) return key;
  }
  assert(false && "a key that is not in the table");
  return configuration_keys().front();
}

const std::vector<std::string_view>& later_keys() {
  static const std::vector<std::string_view> keys = {"publish.http", "publish.mqtt", "recording"};
  return keys;
}

std::string configuration_key_table() {
  std::string table = "| key | default | accepted | meaning |\n| --- | --- | --- | --- |\n";
  for (const ConfigurationKey& key : configuration_keys()) {
    table.append("| `").append(key.path).append("` | ");
    if (!key.fallback.empty()) table.append("`").append(key.fallback).append("`");
    table.append(" | ").append(key.accepted).append(" | ").append(key.meaning).append(" |\n");
  }
  return table;
}

}  // namespace patternd
