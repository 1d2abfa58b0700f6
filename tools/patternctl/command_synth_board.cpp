// patternctl synth board: a series of pictures of a board, one of it lying on a plane, and the
// camera that took them.
#include "tools/patternctl/command_synth_board.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "calibration/plane_output.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "tools/synth/board.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

struct BoardArguments {
  std::string chessboard = "9x6";
  double square_mm = 30;
  std::string picture;
  double picture_mm_per_px = 0.1;
  std::string calibration;
  std::vector<int> size{1280, 720};
  double focal_px = 0;
  std::vector<double> lens{-0.12, 0.05, 0.0008, -0.0006, 0};
  int count = 12;
  double tilt_deg = 35;
  double plane_tilt_deg = 30;
  double mm_per_px = 0;  // 0: chosen
  synth::BoardOptions options;
  std::string output;
};

Result<synth::BoardFace> make_face(const BoardArguments& a) {
  synth::BoardFace face;
  face.square_mm = a.square_mm;
  if (!a.picture.empty()) {
    auto picture = read_image(a.picture);
    if (!picture) return tl::make_unexpected(picture.error());
    if (picture->format() != PixelFormat::kGray8 || picture->width() < 2 || picture->height() < 2) {
      return fail(ErrorCode::kInvalidArgument, a.picture + ": an 8-bit picture is expected");
    }
    face.picture = std::move(*picture);
    face.picture_mm_per_px = a.picture_mm_per_px;
    return face;
  }
  char rest = 0;
  if (std::sscanf(a.chessboard.c_str(), "%dx%d%c", &face.columns, &face.rows, &rest) != 2 ||
      face.columns < 2 || face.rows < 2 || face.columns > 200 || face.rows > 200) {
    return fail(ErrorCode::kInvalidArgument,
                "--chessboard " + a.chessboard + ": not two counts; CxR, 2 to 200 each");
  }
  return face;
}

// The camera: of a calibration file, or from the options; its plane is set later.
Result<CameraModel> make_lens(const BoardArguments& a) {
  CameraModel camera;
  if (!a.calibration.empty()) {
    auto model = load_camera_model(a.calibration);
    if (!model) return tl::make_unexpected(model.error());
    camera = *model;
    camera.plane.reset();
    camera.border = 0;
    if (camera.lens.model != LensModel::kBrownConrady && camera.lens.model != LensModel::kFisheye) {
      return fail(ErrorCode::kInvalidArgument,
                  a.calibration + ": lens.model must be brown_conrady or fisheye here");
    }
    return camera;
  }
  camera.image_width = a.size[0];
  camera.image_height = a.size[1];
  const double focal = a.focal_px > 0 ? a.focal_px : a.size[0];
  camera.lens.model = LensModel::kBrownConrady;
  camera.lens.camera_matrix = {focal, 0, (a.size[0] - 1) / 2.0, 0, focal, (a.size[1] - 1) / 2.0, 0,
                               0,     1};
  std::copy(a.lens.begin(), a.lens.end(), camera.lens.distortion.begin());
  if (auto sound = check_camera_model(camera, "--lens"); !sound) {
    return tl::make_unexpected(sound.error());
  }
  return camera;
}

Result<void> write_picture(const std::string& path, Result<Image> picture) {
  if (!picture) return tl::make_unexpected(picture.error());
  return write_image(path, std::as_const(*picture).view());
}

// The board's own corners: what the plane's output is chosen around.
std::vector<Point2> face_points(const synth::BoardFace& face) {
  const Point2 low = face.upper_left_mm();
  const Point2 high = face.lower_right_mm();
  return {low, {high.x, low.y}, high, {low.x, high.y}};
}

Result<void> make(BoardArguments a) {
  for (const char* written : {"/camera.yaml", "/plane.png"})
    if (auto kept = keep_inputs(a.output + written, {a.calibration, a.picture}); !kept) return kept;
  const auto face = make_face(a);
  if (!face) return tl::make_unexpected(face.error());
  auto camera = make_lens(a);
  if (!camera) return tl::make_unexpected(camera.error());
  a.options.width = camera->image_width;
  a.options.height = camera->image_height;
  std::error_code failed;
  std::filesystem::create_directories(a.output + "/board", failed);
  if (failed) return fail(ErrorCode::kIo, a.output + ": " + failed.message());

  synth::Random random(a.options.seed);
  nlohmann::json truth = {{"type", "board"}, {"views", nlohmann::json::array()}};
  for (int i = 0; i <= a.count; ++i) {  // the last one lies on the plane
    const bool plane = i == a.count;
    const auto pose = synth::random_board_pose(*face, camera->lens, a.options,
                                               plane ? a.plane_tilt_deg : a.tilt_deg, random);
    if (!pose) return tl::make_unexpected(pose.error());
    char name[40];
    std::snprintf(name, sizeof name, plane ? "plane.png" : "board/%02d.png", i);
    auto written = write_picture(a.output + "/" + name,
                                 synth::render_board(*face, camera->lens, *pose, a.options, i));
    if (!written) return written;
    truth["views"].push_back(
        {{"image", name}, {"rotation", pose->rotation}, {"translation_mm", pose->translation_mm}});
    if (!plane) continue;
    PlaneWishes wishes;
    if (a.mm_per_px > 0) wishes.mm_per_px = a.mm_per_px;
    auto model =
        with_plane(*camera, plane_homography(camera->lens, *pose), face_points(*face), wishes);
    if (!model) return tl::make_unexpected(model.error());
    *camera = *model;
  }
  if (auto done = write_file(a.output + "/camera.yaml", to_yaml(*camera)); !done) return done;
  return write_file(a.output + "/truth.json", truth.dump() + "\n");
}

}  // namespace

void add_synth_board(CLI::App& synth, Context& context) {
  auto arguments = std::make_shared<BoardArguments>();
  BoardArguments& a = *arguments;
  CLI::App* command = synth.add_subcommand(
      "board", "Pictures of a board to calibrate with, and the true camera with its plane");
  command->add_option("--chessboard", a.chessboard, "Inner corners, CxR")->capture_default_str();
  command->add_option("--square", a.square_mm, "Side of a square, mm")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--picture", a.picture,
                      "Any board as a picture (patternctl calibrate --print-board)");
  command->add_option("--picture-mm-per-px", a.picture_mm_per_px, "Its scale")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--calibration", a.calibration, "Take the lens of this calibration file");
  command->add_option("--size", a.size, "WIDTH,HEIGHT of the pictures")
      ->delimiter(',')
      ->expected(2)
      ->check(between(64, 32767));
  command->add_option("--focal", a.focal_px, "Focal length, pixels; default: the picture's width")
      ->check(above_zero());
  command->add_option("--lens", a.lens, "k1,k2,p1,p2[,k3]")->delimiter(',')->expected(4, 5);
  command->add_option("--count", a.count, "Pictures of the board, beside that on the plane")
      ->check(between(1, 100))
      ->capture_default_str();
  command->add_option("--tilt", a.tilt_deg, "Largest tilt about each axis, degrees")
      ->check(between(0.0, 70.0))
      ->capture_default_str();
  command->add_option("--plane-tilt", a.plane_tilt_deg, "The same of the plane")
      ->check(between(0.0, 70.0))
      ->capture_default_str();
  command->add_option("--mm-per-px", a.mm_per_px, "Scale of the rectified plane [chosen]")
      ->check(above_zero());
  command->add_option("--noise", a.options.noise_sigma, "Standard deviation, grey levels")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--blur", a.options.blur_px, "Standard deviation, pixels")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--seed", a.options.seed, "Fixes everything")->capture_default_str();
  command->add_option("-o,--output", a.output, "Folder to write into")->required();
  command->callback([arguments, &context] {
    if (auto done = make(*arguments); !done) context.fail("synth board", done.error());
  });
}

}  // namespace patternd::tools
