// patternd-calibrate, which `patternctl calibrate` starts: a program of its own because it brings
// OpenCV.
//
//   patternctl calibrate --chessboard 9x6 --square 25 --plane flat.png shots/ -o camera.yaml
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "pipeline/decimal_number.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "tools/calibrate/calibration_run.h"
#include "tools/calibrate/conversions.h"
#include "tools/calibrate/point_pairs.h"
#include "tools/calibrate/report.h"
#include "tools/patternctl/number_list.h"
#include "tools/standard_output.h"
#include "tools/usage_error.h"
#include "tools/version.h"

namespace patternd::calibrate {
namespace {

enum ExitCode : int { kGood = 0, kFailed = 1, kWrongUse = 2 };

struct Arguments {
  Request request;
  std::string chessboard, charuco, circles, asymmetric_circles;
  Board board;
  std::string model = "brown_conrady";
  int coefficients = -1;
  std::vector<std::string> pair_files;
  std::vector<double> pairs;      // x and y in pixels, x and y in mm, four a pair
  std::vector<double> corners;    // of a rectangle, x,y four times
  std::vector<double> rectangle;  // its width and height in mm
  double mm_per_px = 0;
  std::vector<double> size_px;
  std::vector<double> origin_px;
  std::string output;
  std::string opencv_output;
  std::string report;
  std::string print_board;
  double print_pixels_per_mm = 10;
  bool json = false;
};

Error wrong_use(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// "9x6"
Result<std::pair<int, int>> counts(const std::string& text, const std::string& option) {
  const std::size_t cross = std::min(text.find('x'), text.size());
  const std::string_view rest = std::string_view(text).substr(std::min(cross + 1, text.size()));
  const auto is_count = [](std::string_view word, std::int64_t& count) {
    return read_decimal(word, count) == NumberFault::kNone && count >= 2 && count <= 200;
  };
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  if (is_count(std::string_view(text).substr(0, cross), columns) && is_count(rest, rows))
    return std::pair(static_cast<int>(columns), static_cast<int>(rows));
  return tl::make_unexpected(
      wrong_use(option + " " + text + ": not two counts; CxR, 2 to 200 each, like 9x6"));
}

Result<void> settle_board(Arguments& a) {
  const std::pair<const std::string*, BoardKind> kinds[] = {
      {&a.chessboard, BoardKind::kChessboard},
      {&a.charuco, BoardKind::kCharuco},
      {&a.circles, BoardKind::kCircles},
      {&a.asymmetric_circles, BoardKind::kAsymmetricCircles}};
  for (const auto& [text, kind] : kinds) {
    if (text->empty()) continue;
    if (a.request.board) return tl::make_unexpected(wrong_use("give one kind of board only"));
    const auto size = counts(*text, "the board's size");
    if (!size) return tl::make_unexpected(size.error());
    if (!(a.board.square_mm > 0)) {
      return tl::make_unexpected(
          wrong_use("--square MM is missing: the side of a square, or the distance of circles"));
    }
    a.board.kind = kind;
    std::tie(a.board.columns, a.board.rows) = *size;
    if (a.board.marker_mm <= 0) a.board.marker_mm = 0.75 * a.board.square_mm;
    if (kind == BoardKind::kCharuco && a.board.marker_mm >= a.board.square_mm) {
      return tl::make_unexpected(wrong_use("--marker must be smaller than --square"));
    }
    a.request.board = a.board;
  }
  return {};
}

Result<void> settle_pairs(Arguments& a) {
  for (const std::string& file : a.pair_files) {
    auto pairs = read_pairs(file);
    if (!pairs) return tl::make_unexpected(pairs.error());
    a.request.plane_pairs.insert(a.request.plane_pairs.end(), pairs->begin(), pairs->end());
  }
  for (std::size_t i = 0; i + 3 < a.pairs.size(); i += 4) {
    const double* v = &a.pairs[i];
    a.request.plane_pairs.push_back({{v[2], v[3]}, {v[0], v[1]}});
  }
  if (a.corners.empty() != a.rectangle.empty()) {
    return tl::make_unexpected(wrong_use("--corners and --rectangle belong together"));
  }
  if (!a.rectangle.empty() && !(a.rectangle[0] > 0 && a.rectangle[1] > 0)) {
    return tl::make_unexpected(wrong_use("--rectangle: width and height must be above 0"));
  }
  if (!a.corners.empty()) {
    const double w = a.rectangle[0];
    const double h = a.rectangle[1];
    const Point2 places[4] = {{0, 0}, {w, 0}, {w, h}, {0, h}};
    for (std::size_t i = 0; i < 4; ++i) {
      a.request.plane_pairs.push_back({places[i], {a.corners[2 * i], a.corners[2 * i + 1]}});
    }
  }
  const bool asked = !a.pair_files.empty() || !a.pairs.empty() || !a.corners.empty();
  if (asked && a.request.plane_pairs.size() < 4) {
    return tl::make_unexpected(wrong_use(std::to_string(a.request.plane_pairs.size()) +
                                         " pairs of points; a plane needs at least 4"));
  }
  return {};
}

Result<void> settle(Arguments& a) {
  if (auto done = settle_board(a); !done) return done;
  if (auto done = settle_pairs(a); !done) return done;
  Request& r = a.request;
  const bool fisheye = a.model == "fisheye";
  r.fit.model = fisheye ? LensModel::kFisheye : LensModel::kBrownConrady;
  const int most = fisheye ? 4 : 8;
  r.fit.coefficients = a.coefficients < 0 ? (fisheye ? 4 : 5) : a.coefficients;
  if (r.fit.coefficients > most) {
    return tl::make_unexpected(
        wrong_use("--coefficients: " + a.model + " has 0 to " + std::to_string(most)));
  }
  if (a.mm_per_px > 0) r.wishes.mm_per_px = a.mm_per_px;
  if (!a.size_px.empty()) r.wishes.size_px = Point2{a.size_px[0], a.size_px[1]};
  if (!a.origin_px.empty()) r.wishes.origin_px = Point2{a.origin_px[0], a.origin_px[1]};
  for (const double side : a.size_px) {
    if (side >= 1 && side <= 32767 && side == std::floor(side)) continue;
    return tl::make_unexpected(wrong_use("--size: two whole numbers, 1 to 32767 each"));
  }
  const bool from_file = !r.lens_file.empty() || !r.opencv_file.empty() || !r.ros_file.empty();
  if (!r.board && r.plane_pairs.empty() && !from_file) {
    return tl::make_unexpected(wrong_use(
        "nothing to calibrate with; give --chessboard CxR --square MM with pictures, or --points "
        "FILE with a picture, or a lens (--lens, --from-opencv, --from-ros)"));
  }
  return {};
}

Result<void> print_board(const Arguments& a) {
  if (!a.request.board) {
    return tl::make_unexpected(wrong_use("--print-board needs a board and --square"));
  }
  if (auto named = check_image_file_name(a.print_board); !named) return named;
  auto drawn = draw_board(*a.request.board, a.print_pixels_per_mm);
  if (!drawn) return tl::make_unexpected(drawn.error());
  return write_image(a.print_board, std::as_const(*drawn).view());
}

Result<void> write_outcome(const Arguments& a, const Outcome& outcome) {
  for (const Finding& finding : outcome.findings) {
    if (finding.fault) {
      return fail(ErrorCode::kInternal, finding.message + "; nothing was written");
    }
  }
  if (!a.opencv_output.empty()) {
    if (auto done = to_opencv(outcome.model, a.opencv_output); !done) return done;
  }
  if (!a.output.empty()) {
    if (auto done = write_file(a.output, to_yaml(outcome.model)); !done) return done;
  }
  if (!a.report.empty()) {
    if (auto done = write_file(a.report, report_json(outcome, a.output) + "\n"); !done) return done;
  }
  return {};
}

void show_progress(const StreamProgress& p) {
  std::fprintf(stderr, "\r%s: %llu frames, the board in %llu, %zu views taken, %.0f %% covered ",
               p.name.c_str(), static_cast<unsigned long long>(p.frames),
               static_cast<unsigned long long>(p.with_board), p.taken, p.coverage * 100);
}

// By their names no output is a picture, and none is what is read. --lens alone may be: a lens that
// gets a plane.
Result<void> check_outputs(const Arguments& a) {
  const auto ends_in = [](const std::string& name, std::initializer_list<const char*> endings) {
    const std::string ending = std::filesystem::path(name).extension().string();
    return name.empty() || std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  if (!ends_in(a.output, {".yaml", ".yml"}))
    return tl::make_unexpected(wrong_use("-o: " + a.output + ": must end in .yaml or .yml"));
  if (!ends_in(a.report, {".json"}))
    return tl::make_unexpected(wrong_use("--report: " + a.report + ": must end in .json"));
  std::vector<std::string> inputs = a.request.pictures;
  inputs.insert(inputs.end(), a.pair_files.begin(), a.pair_files.end());
  inputs.insert(inputs.end(), {a.request.opencv_file, a.request.ros_file, a.request.plane_picture});
  for (const std::string& output : {a.output, a.opencv_output, a.report})
    if (auto kept = keep_inputs(output, inputs); !kept) return kept;
  return {};
}

Result<void> run(Arguments& a) {
  if (auto done = settle(a); !done) return done;
  if (!a.print_board.empty()) return print_board(a);
  if (a.output.empty() && a.opencv_output.empty()) {
    return tl::make_unexpected(wrong_use("-o camera.yaml is missing: where to write the result"));
  }
  if (auto named = check_outputs(a); !named) return named;
  if (!a.request.drawings.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(a.request.drawings, failed);
    if (failed) return fail(ErrorCode::kIo, a.request.drawings + ": " + failed.message());
  }
  if (::isatty(STDERR_FILENO) == 1) a.request.progress = show_progress;
  auto outcome = calibrate(a.request);
  if (a.request.progress) std::fputs("\n", stderr);
  if (!outcome) return tl::make_unexpected(outcome.error());
  const std::string& file = a.output.empty() ? a.opencv_output : a.output;
  const std::string report =
      a.json ? report_json(*outcome, file) + "\n" : report_text(*outcome, file);
  std::fputs(report.c_str(), stdout);
  return write_outcome(a, *outcome);
}

void add_board_options(CLI::App& program, Arguments& a) {
  program.add_option("--chessboard", a.chessboard, "Inner corners, CxR, like 9x6");
  program.add_option("--charuco", a.charuco, "Squares of a ChArUco board, CxR");
  program.add_option("--circles", a.circles, "A grid of circles, CxR");
  program.add_option("--asymmetric-circles", a.asymmetric_circles, "A staggered grid, CxR");
  program.add_option("--square", a.board.square_mm, "Side of a square, or distance of circles, mm")
      ->check(tools::above_zero());
  program.add_option("--marker", a.board.marker_mm, "ChArUco: side of a marker, mm [3/4 square]")
      ->check(tools::above_zero());
  program.add_option("--dictionary", a.board.dictionary, "ChArUco: the markers' dictionary")
      ->capture_default_str();
  program.add_option("--print-board", a.print_board, "Write the board as a picture, and end");
  program.add_option("--print-fineness", a.print_pixels_per_mm, "Pixels a mm of that picture")
      ->check(tools::between(0.5, 100.0))
      ->capture_default_str();
}

void add_lens_options(CLI::App& program, Arguments& a) {
  program.add_option("--model", a.model, "The lens's model")
      ->check(CLI::IsMember({"brown_conrady", "fisheye"}))
      ->capture_default_str();
  program
      .add_option("--coefficients", a.coefficients,
                  "How many to fit, in the model's order [5; fisheye 4]")
      ->check(tools::between(0, 8));
  program.add_flag("--leave-out", a.request.leave_out, "Leave pictures out whose error stands out");
  program.add_option("--lens", a.request.lens_file, "Take the lens of this calibration file");
  program.add_option("--from-opencv", a.request.opencv_file, "Take the lens of OpenCV's file");
  program.add_option("--from-ros", a.request.ros_file, "Take the lens of a ROS camera_info file");
  program.add_option("--to-opencv", a.opencv_output, "Write the lens as OpenCV does, too");
}

void add_plane_options(CLI::App& program, Arguments& a) {
  program.add_option(
      "--plane", a.request.plane_picture,
      "A picture of the board lying on the plane (or a recording, or HOST:PORT); its "
      "first point is (0, 0) mm");
  program.add_option("--points", a.pair_files, "File of pairs, a line each: x_px y_px x_mm y_mm")
      ->allow_extra_args(false);
  tools::add_number_lists(&program, "--pair", a.pairs, 4, "X_PX,Y_PX,X_MM,Y_MM",
                          "One pair; again for more");
  tools::add_number_list(&program, "--corners", a.corners, 8, "X,Y,X,Y,X,Y,X,Y",
                         "A rectangle's corners in the picture: upper left, upper right, lower "
                         "right, lower left");
  tools::add_number_list(&program, "--rectangle", a.rectangle, 2, "W,H", "Its size in mm");
  program.add_option("--mm-per-px", a.mm_per_px, "Scale of the rectified picture [chosen]")
      ->check(tools::above_zero());
  tools::add_number_list(&program, "--size", a.size_px, 2, "W,H",
                         "Size of the rectified picture, pixels [chosen]");
  tools::add_number_list(&program, "--origin", a.origin_px, 2, "X,Y",
                         "Its pixel that is (0, 0) mm [chosen]");
}

int main_without_exceptions(int argc, char** argv) {
  CLI::App program{"Calibrates a camera from pictures of a board, and the plane that it looks at",
                   "patternctl calibrate"};
  Arguments a;
  program.set_version_flag("--version", [] { return version_text("patternd-calibrate"); });
  program.add_flag("--json", a.json, "The report as one compact JSON object");
  add_board_options(program, a);
  add_lens_options(program, a);
  add_plane_options(program, a);
  program.add_option("-o,--output", a.output, "The calibration file to write");
  program.add_option("--report", a.report, "Write the report as JSON here, too");
  program.add_option("--draw", a.request.drawings,
                     "Folder for pictures: points, residuals, the rectified plane");
  program.add_option("--every", a.request.every, "Look at every n-th picture of what brings many")
      ->check(tools::between(1, 1000000))
      ->capture_default_str();
  program
      .add_option("--views", a.request.most_views,
                  "Of a recording or a service, take so many views at most, the most different")
      ->check(tools::between(4, 200))
      ->capture_default_str();
  program
      .add_option("--seconds", a.request.most_seconds,
                  "Watch a running service for so long at most")
      ->check(tools::between(1.0, 86400.0))
      ->capture_default_str();
  program.add_option("IMAGE", a.request.pictures,
                     "Pictures of the board, folders of them, recordings, videos, or HOST:PORT of "
                     "a running service");
  if (const auto ended = tools::parse_command_line(program, argc, argv)) return *ended;
  const auto done = run(a);
  if (done) return kGood;
  std::fprintf(stderr, "patternctl calibrate: %s\n", done.error().message.c_str());
  const ErrorCode code = done.error().code;
  const bool wrong = code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ||
                     code == ErrorCode::kParse;
  return wrong ? kWrongUse : kFailed;
}

}  // namespace
}  // namespace patternd::calibrate

int main(int argc, char** argv) {
  try {
    return patternd::checked_output("patternctl calibrate",
                                    patternd::calibrate::main_without_exceptions(argc, argv));
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "patternctl calibrate: internal error: %s\n", fault.what());
    return patternd::calibrate::kFailed;
  }
}
