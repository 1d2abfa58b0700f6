#include "tools/synth/scene_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "pipeline/image_file.h"
#include "pipeline/sources/recording.h"
#include "tools/synth/truth.h"

namespace patternd::synth {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstStampNs = 1'767'225'600'000'000'000;  // 2026-01-01T00:00:00Z

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    return fail(ErrorCode::kInvalidArgument,
                folder + ": exists already and is not empty; give a new folder");
  }
  fs::create_directories(fs::path(folder) / "patterns", error);
  if (error) return fail(ErrorCode::kIo, folder + ": cannot be made: " + error.message());
  return {};
}

Result<void> write_patterns_and_camera(const Scene& scene, const std::string& folder) {
  for (const ScenePattern& pattern : scene.patterns) {
    const std::string stem = folder + "/patterns/" + pattern.name;
    const auto picture = picture_of(pattern, scene.format);
    if (!picture) return tl::make_unexpected(picture.error());
    if (auto ok = write_image(stem + ".png", picture->view()); !ok) return ok;
    const auto mask = mask_of(pattern);
    if (!mask) return tl::make_unexpected(mask.error());
    if (mask->empty()) continue;
    if (auto ok = write_image(stem + "_mask.png", mask->view()); !ok) return ok;
  }
  if (!scene.camera) return {};
  return write_file(folder + "/camera.yaml", to_yaml(*scene.camera));
}

Result<std::string> truth_text(const SceneRenderer& renderer, int frame, bool with_bound) {
  const auto truth = truth_of(renderer, frame, with_bound);
  if (!truth) return tl::make_unexpected(truth.error());
  return truth_line(static_cast<std::uint64_t>(frame) + 1, *truth) + "\n";
}

// Angles, scales and numbers of finds stay the service's defaults but for what the scene needs.
std::string configuration_text(const Scene& scene) {
  std::string text = "camera:\n  name: synth\n  source: replay\n  path: recording\n";
  if (scene.camera) text += "calibration: camera.yaml\n";
  text += "patterns:\n";
  for (std::size_t i = 0; i < scene.patterns.size(); ++i) {
    const std::string& name = scene.patterns[i].name;
    const auto count = std::count_if(scene.instances.begin(), scene.instances.end(),
                                     [&](const Instance& one) { return one.pattern == i; });
    text.append("  - {name: ").append(name).append(", pattern: patterns/").append(name);
    text += ".png, max_matches: " + std::to_string(std::max<std::ptrdiff_t>(count, 1)) + "}\n";
  }
  return text + "publish:\n  tcp: {listen: \"127.0.0.1:5577\"}\n";
}

Result<void> write_frames(const SceneRenderer& renderer, const std::string& folder,
                          const RecordingOptions& options) {
  auto recording = RecordingWriter::create(folder + "/recording", RecordingFormat::kPgm);
  if (!recording) return tl::make_unexpected(recording.error());
  for (int frame = 0; frame < options.frame_count; ++frame) {
    if (options.progress) options.progress(frame);
    const auto picture = options.in_frame(renderer, frame).render(frame);
    if (!picture) return tl::make_unexpected(picture.error());
    const auto since_start = static_cast<std::int64_t>(std::floor(frame * 1e9 / options.fps + 0.5));
    const FrameStamp stamp{static_cast<std::uint64_t>(frame) + 1, 1'000'000'000 + since_start,
                           kFirstStampNs + since_start};
    if (auto ok = recording->write(picture->view(), stamp); !ok) return ok;
  }
  return recording->finish();
}

}  // namespace

Result<void> write_scene(const SceneRenderer& renderer, const std::string& folder,
                         bool with_bound) {
  if (auto ok = make_folder(folder); !ok) return ok;
  if (auto ok = write_patterns_and_camera(renderer.scene(), folder); !ok) return ok;
  const auto truth = truth_text(renderer, 0, with_bound);
  if (!truth) return tl::make_unexpected(truth.error());
  if (auto ok = write_file(folder + "/truth.jsonl", *truth); !ok) return ok;
  const auto picture = renderer.render(0);
  if (!picture) return tl::make_unexpected(picture.error());
  return write_image(folder + "/picture.png", picture->view());
}

Result<void> write_recording(const SceneRenderer& renderer, const std::string& folder,
                             const RecordingOptions& options) {
  if (options.frame_count < 1 || !(options.fps >= 0.001 && options.fps <= 100'000)) {
    return fail(ErrorCode::kInvalidArgument,
                "a recording has 1 frame or more, and 0.001 to 100000 frames a second");
  }
  if (auto ok = make_folder(folder); !ok) return ok;
  if (auto ok = write_patterns_and_camera(renderer.scene(), folder); !ok) return ok;
  if (auto ok = write_file(folder + "/patternd.yaml", configuration_text(renderer.scene())); !ok)
    return ok;
  std::string truths;
  for (int frame = 0; frame < options.frame_count; ++frame) {
    const auto truth = truth_text(options.in_frame(renderer, frame), frame, options.with_bound);
    if (!truth) return tl::make_unexpected(truth.error());
    truths += *truth;
  }
  if (auto ok = write_file(folder + "/truth.jsonl", truths); !ok) return ok;
  return write_frames(renderer, folder, options);
}

}  // namespace patternd::synth
