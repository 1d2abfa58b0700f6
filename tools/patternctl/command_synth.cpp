// patternctl synth: pictures and recordings made by program, with their truth.
#include "tools/patternctl/command_synth.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "calibration/camera_model.h"
#include "pipeline/input_file.h"
#include "pipeline/thread_pool.h"
#include "tools/patternctl/command_synth_board.h"
#include "tools/patternctl/number_list.h"
#include "tools/synth/plane_camera.h"
#include "tools/synth/random_scene.h"
#include "tools/synth/sample_photos.h"
#include "tools/synth/scene_files.h"

namespace patternd::tools {
namespace {

using synth::Photo;
using synth::RandomSceneOptions;
using synth::SceneRenderer;

// What both commands ask for.
struct SynthArguments {
  RandomSceneOptions scene;
  std::vector<std::string> photos;
  std::vector<int> size{800, 600};
  std::vector<int> pattern_px{48, 256};
  std::vector<double> angles{-180, 180};
  std::vector<double> scales{1, 1};
  std::vector<double> speed{2, 1};
  std::vector<int> raw_size{1280, 720};
  std::vector<double> corners;
  std::vector<double> lens;
  double focal_px = 0;
  std::string calibration;
  int bits = 8;
  std::uint64_t seed = 1;
  bool bound = false;
  int frames = 1;
  std::vector<double> knock;  // frame, shift in plane pixels
  double fps = 25;
  std::string output;
};

Result<std::vector<Photo>> choose_photos(const SynthArguments& arguments) {
  const std::vector<std::string> paths =
      arguments.photos.empty() ? synth::sample_photo_paths() : arguments.photos;
  return paths.empty() ? synth::made_textures(arguments.seed) : synth::load_photos(paths);
}

// The camera that --calibration or --corners ask for, if any.
Result<std::optional<CameraModel>> make_camera(const SynthArguments& a) {
  if (!a.calibration.empty()) {
    auto model = load_camera_model(a.calibration);
    if (!model) return tl::make_unexpected(model.error());
    return std::optional<CameraModel>(*model);
  }
  if (a.corners.empty()) {
    if (a.lens.empty()) return std::optional<CameraModel>();
    return fail(ErrorCode::kInvalidArgument, "--lens: needs --corners, which make the camera");
  }
  Lens lens;
  lens.model = a.lens.empty() ? LensModel::kNone : LensModel::kBrownConrady;
  const double focal = a.focal_px > 0 ? a.focal_px : a.raw_size[0];
  lens.camera_matrix = {focal, 0, (a.raw_size[0] - 1) / 2.0, 0, focal, (a.raw_size[1] - 1) / 2.0, 0,
                        0,     1};
  for (std::size_t i = 0; i < a.lens.size(); ++i) lens.distortion[i] = a.lens[i];
  synth::Corners corners;
  for (std::size_t i = 0; i < 4; ++i) corners[i] = {a.corners[2 * i], a.corners[2 * i + 1]};
  auto model =
      synth::camera_from_corners(a.raw_size[0], a.raw_size[1], lens, corners, a.size[0], a.size[1]);
  if (!model) return tl::make_unexpected(model.error());
  return std::optional<CameraModel>(*model);
}

Result<synth::Scene> make_scene(const SynthArguments& a) {
  const auto photos = choose_photos(a);
  if (!photos) return tl::make_unexpected(photos.error());
  auto camera = make_camera(a);
  if (!camera) return tl::make_unexpected(camera.error());
  RandomSceneOptions options = a.scene;
  options.width = a.size[0];
  options.height = a.size[1];
  options.min_pattern_px = a.pattern_px[0];
  options.max_pattern_px = a.pattern_px[1];
  options.min_angle_deg = a.angles[0];
  options.max_angle_deg = a.angles[1];
  options.min_scale = a.scales[0];
  options.max_scale = a.scales[1];
  options.frame_count = a.frames;
  options.max_speed_px = a.speed[0];
  options.max_speed_deg = a.speed[1];
  options.format = a.bits == 16 ? PixelFormat::kGray16 : PixelFormat::kGray8;
  options.camera = *camera;
  return synth::random_scene(*photos, options, a.seed);
}

void print_made(const SynthArguments& a, const synth::Scene& scene, bool json) {
  if (json) {
    const nlohmann::ordered_json line = {{"type", "synth"},
                                         {"folder", a.output},
                                         {"frames", a.frames},
                                         {"width", scene.picture_width()},
                                         {"height", scene.picture_height()},
                                         {"patterns", scene.patterns.size()},
                                         {"instances", scene.instances.size()},
                                         {"seed", a.seed}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%s: %d frame(s) of %dx%d pixels, %zu pattern(s), %zu instance(s), seed %llu\n",
              a.output.c_str(), a.frames, scene.picture_width(), scene.picture_height(),
              scene.patterns.size(), scene.instances.size(),
              static_cast<unsigned long long>(a.seed));
  if (scene.instances.size() < static_cast<std::size_t>(a.scene.instance_count)) {
    std::fprintf(stderr, "patternctl synth: no room for %d instances; %zu were placed\n",
                 a.scene.instance_count, scene.instances.size());
  }
}

// What --knock asks for: the scene through the camera as it stands afterwards; else nothing.
Result<std::optional<SceneRenderer>> make_moved(const SynthArguments& a, const synth::Scene& scene,
                                                ThreadPool* pool) {
  if (a.knock.empty()) return std::optional<SceneRenderer>();
  if (!scene.camera) {
    return fail(ErrorCode::kInvalidArgument,
                "--knock: needs a camera; give --calibration or --corners");
  }
  auto camera = synth::moved_camera(*scene.camera, {a.knock[1], a.knock[2]});
  if (!camera) return tl::make_unexpected(camera.error());
  synth::Scene moved = scene;
  moved.camera = *camera;
  auto renderer = SceneRenderer::create(moved, pool);
  if (!renderer) return tl::make_unexpected(renderer.error());
  return std::optional<SceneRenderer>(std::move(*renderer));
}

Result<void> make(const SynthArguments& a, bool recording, bool json) {
  if (auto kept = keep_inputs(a.output + "/camera.yaml", {a.calibration}); !kept) return kept;
  const auto scene = make_scene(a);
  if (!scene) return tl::make_unexpected(scene.error());
  ThreadPool pool(0);
  const auto renderer = synth::SceneRenderer::create(*scene, &pool);
  if (!renderer) return tl::make_unexpected(renderer.error());
  if (recording) {
    synth::RecordingOptions options;
    options.frame_count = a.frames;
    options.fps = a.fps;
    options.with_bound = a.bound;
    const auto moved = make_moved(a, *scene, &pool);
    if (!moved) return tl::make_unexpected(moved.error());
    if (*moved) options.moved = &**moved;
    if (*moved) options.moved_from = static_cast<int>(a.knock[0]);
    if (isatty(STDERR_FILENO) != 0) {
      options.progress = [&a](int frame) {
        std::fprintf(stderr, "\rframe %d of %d%s", frame + 1, a.frames,
                     frame + 1 == a.frames ? "\n" : "");
      };
    }
    if (auto ok = synth::write_recording(*renderer, a.output, options); !ok) return ok;
  } else {
    if (auto ok = synth::write_scene(*renderer, a.output, a.bound); !ok) return ok;
  }
  print_made(a, *scene, json);
  return {};
}

template <class Value>
void add_list(CLI::App* command, const std::string& name, std::vector<Value>& values, int count,
              const std::string& description) {
  command->add_option(name, values, description)
      ->delimiter(',')
      ->expected(count)
      ->capture_default_str();
}

void add_scene_options(CLI::App* command, SynthArguments& a) {
  command->add_option(
      "--photo", a.photos,
      "Photographs: one a pattern, another for the background; default: opencv-doc's, "
      "or made textures");
  command->add_option("--seed", a.seed, "Fixes everything that is drawn")->capture_default_str();
  add_list(command, "--size", a.size, 2, "WIDTH,HEIGHT of the (rectified) picture");
  command->add_option("--patterns", a.scene.pattern_count, "Number of patterns")
      ->capture_default_str();
  add_list(command, "--pattern-size", a.pattern_px, 2, "Smallest and largest side, pixels");
  command->add_option("--instances", a.scene.instance_count, "Number of instances in all")
      ->capture_default_str();
  add_list(command, "--angle", a.angles, 2, "Range of angles, degrees");
  add_list(command, "--scale", a.scales, 2, "Range of scales");
  command->add_option("--detail", a.scene.photo_px_per_px, "Photo pixels a plane pixel")
      ->capture_default_str();
  command->add_option("--cover", a.scene.cover, "Share of each instance that is hidden")
      ->capture_default_str();
  command->add_option("--light", a.scene.light_gradient, "Fall of light, 0.4 for 1 ± 40 %")
      ->capture_default_str();
  command->add_option("--blur", a.scene.blur_sigma_px, "Sigma of the optics' blur, pixels")
      ->capture_default_str();
  command->add_option("--noise", a.scene.noise_sigma, "Sigma, grey levels of 8 bit")
      ->capture_default_str();
  command->add_option("--bits", a.bits, "Depth of the pictures")
      ->check(CLI::IsMember({8, 16}))
      ->capture_default_str();
  command->add_flag("--bound", a.bound, "Write the Cramér–Rao bounds too");
  command->add_option("-o,--output", a.output, "The folder to make")->required();
}

void add_camera_options(CLI::App* command, SynthArguments& a) {
  auto* calibration = command->add_option("--calibration", a.calibration,
                                          "Look at the plane through the camera of this file");
  auto* corners = command->add_option("--corners", a.corners,
                                      "X,Y of the plane's corners in the raw picture: upper left, "
                                      "upper right, lower right, lower left");
  corners->delimiter(',')->expected(8)->excludes(calibration);
  add_list(command, "--raw-size", a.raw_size, 2, "WIDTH,HEIGHT of the raw picture, for --corners");
  command->add_option("--lens", a.lens, "k1,k2,p1,p2[,k3], for --corners")
      ->delimiter(',')
      ->expected(4, 5);
  command->add_option("--focal", a.focal_px,
                      "Focal length for --lens, pixels; default: the raw picture's width");
}

CLI::App* add_making(CLI::App& synth, Context& context, const std::string& name,
                     const std::string& description, bool recording,
                     const std::shared_ptr<SynthArguments>& arguments) {
  CLI::App* command = synth.add_subcommand(name, description);
  add_scene_options(command, *arguments);
  add_camera_options(command, *arguments);
  command->callback([arguments, recording, name, &context] {
    if (auto ok = make(*arguments, recording, context.json); !ok)
      context.fail("synth " + name, ok.error());
  });
  return command;
}

}  // namespace

void add_synth_scene(CLI::App& synth, Context& context) {
  add_making(synth, context, "scene", "One picture, its patterns and its truth", false,
             std::make_shared<SynthArguments>());
}

void add_synth_recording(CLI::App& synth, Context& context) {
  auto arguments = std::make_shared<SynthArguments>();
  arguments->frames = 100;
  CLI::App* command = add_making(
      synth, context, "recording",
      "Patterns that move, as a recording with its configuration and its truth", true, arguments);
  command->add_option("--frames", arguments->frames, "Number of frames")->capture_default_str();
  command->add_option("--fps", arguments->fps, "Frames a second")->capture_default_str();
  add_number_list(command, "--knock", arguments->knock, 3, "FRAME,DX,DY",
                  "From this frame on the camera is knocked out of place: everything seems DX,DY "
                  "plane pixels elsewhere");
  add_list(command, "--speed", arguments->speed, 2, "Largest speeds: pixels and degrees a frame");
}

void add_synth(CLI::App& program, Context& context) {
  CLI::App* synth =
      program.add_subcommand("synth", "Makes pictures and recordings with known truth");
  synth->require_subcommand(1);
  add_synth_scene(*synth, context);
  add_synth_recording(*synth, context);
  add_synth_board(*synth, context);
}

}  // namespace patternd::tools
