// The calibration program's parts: boards found and drawn, OpenCV's own series, checks, other
// programs' files.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>

#include "pipeline/image_file.h"
#include "tests/support/test_files.h"
#include "tools/calibrate/calibration_run.h"
#include "tools/calibrate/conversions.h"
#include "tools/calibrate/point_pairs.h"

namespace patternd::calibrate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Board kSample{BoardKind::kChessboard, 9, 6, 25, 0, {}};

std::vector<std::string> series(const std::string& side) {
  std::vector<std::string> paths;
  for (int i = 1; i <= 14; ++i) {
    const std::string path =
        test::opencv_sample(side + (i < 10 ? "0" : "") + std::to_string(i) + ".jpg");
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

double opencv_rms(const std::vector<BoardView>& views, cv::Size size, cv::Mat& matrix) {
  std::vector<std::vector<cv::Point3f>> objects;
  std::vector<std::vector<cv::Point2f>> images;
  for (const BoardView& view : views) {
    objects.emplace_back();
    images.emplace_back();
    for (std::size_t i = 0; i < view.board_mm.size(); ++i) {
      objects.back().emplace_back(static_cast<float>(view.board_mm[i].x),
                                  static_cast<float>(view.board_mm[i].y), 0.0F);
      images.back().emplace_back(static_cast<float>(view.image_px[i].x),
                                 static_cast<float>(view.image_px[i].y));
    }
  }
  cv::Mat distortion;
  std::vector<cv::Mat> rotations;
  std::vector<cv::Mat> translations;
  return cv::calibrateCamera(objects, images, size, matrix, distortion, rotations, translations);
}

TEST(Calibrate, AgreesWithOpenCvOnItsOwnSeries) {
  for (const char* side : {"left", "right"}) {
    SCOPED_TRACE(side);
    const std::vector<std::string> paths = series(side);
    if (paths.empty()) GTEST_SKIP() << "opencv-doc is not installed";
    std::vector<BoardView> views;
    for (const std::string& path : paths) {
      const Image picture = read_image(path).value();
      auto view = find_board(picture.view(), kSample, path);
      ASSERT_TRUE(view) << view.error().message;
      views.push_back(std::move(*view));
    }
    const auto fit = fit_camera(views, 640, 480, {});
    ASSERT_TRUE(fit) << fit.error().message;
    cv::Mat matrix;
    const double rms = opencv_rms(views, {640, 480}, matrix);
    EXPECT_LE(fit->rms_px, rms * (1 + 1e-6));
    EXPECT_LE(fit->rms_px, 0.21);
    EXPECT_NEAR(fit->values[0] / matrix.at<double>(0, 0), 1, 1e-3);
    EXPECT_NEAR(fit->values[1] / matrix.at<double>(1, 1), 1, 1e-3);
    EXPECT_TRUE(check_calibration(views, *fit, 640, 480).size() <= 1)
        << "only the corners are uncovered";
  }
}

TEST(Calibrate, FindsEveryKindOfBoardThatItDraws) {
  const Board boards[] = {{BoardKind::kChessboard, 9, 6, 20, 0, {}},
                          {BoardKind::kCharuco, 7, 5, 20, 15, "DICT_5X5_50"},
                          {BoardKind::kCircles, 7, 6, 20, 0, {}},
                          {BoardKind::kAsymmetricCircles, 4, 11, 20, 0, {}}};
  for (const Board& board : boards) {
    SCOPED_TRACE(describe(board));
    const double fineness = 3;
    const auto drawn = draw_board(board, fineness);
    if (!drawn && drawn.error().code == ErrorCode::kUnsupported) continue;  // without aruco
    ASSERT_TRUE(drawn) << drawn.error().message;
    const auto view = find_board(drawn->view(), board, "drawn");
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_FALSE(is_mirrored(*view));
    // Straight on: distances in the picture are those on the board.
    const Point2 mm0 = view->board_mm.front();
    const Point2 px0 = view->image_px.front();
    const double direction =
        looks_the_same_turned(board) && view->image_px.back().x < px0.x ? -1 : 1;
    for (std::size_t i = 0; i < view->board_mm.size(); ++i) {
      ASSERT_NEAR(view->image_px[i].x - px0.x, direction * (view->board_mm[i].x - mm0.x) * fineness,
                  0.6);
      ASSERT_NEAR(view->image_px[i].y - px0.y, direction * (view->board_mm[i].y - mm0.y) * fineness,
                  0.6);
    }
  }
}

TEST(Calibrate, StartsAChessboardAtItsDarkCornerWhicheverWayItLies) {
  const Board board{BoardKind::kChessboard, 9, 6, 20, 0, {}};
  const Image drawn = draw_board(board, 3).value();
  Image turned = Image::create(drawn.width(), drawn.height(), PixelFormat::kGray8).value();
  for (int y = 0; y < drawn.height(); ++y) {
    for (int x = 0; x < drawn.width(); ++x) {
      turned.row<std::uint8_t>(y)[x] =
          drawn.row<std::uint8_t>(drawn.height() - 1 - y)[drawn.width() - 1 - x];
    }
  }
  const BoardView straight = find_board(drawn.view(), board, "straight").value();
  const BoardView half_turn =
      find_board(std::as_const(turned).view(), board, "half a turn").value();
  for (std::size_t i = 0; i < straight.image_px.size(); ++i) {
    ASSERT_NEAR(half_turn.image_px[i].x, drawn.width() - 1 - straight.image_px[i].x, 0.05);
    ASSERT_NEAR(half_turn.image_px[i].y, drawn.height() - 1 - straight.image_px[i].y, 0.05);
  }
}

TEST(Calibrate, SaysWhatToDoWhereNoBoardIs) {
  Image blank = Image::create(320, 240, PixelFormat::kGray8).value();
  blank.fill_bytes(128);
  const auto view = find_board(std::as_const(blank).view(), kSample, "blank.png");
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(view.error().message, HasSubstr("blank.png: no 9x6 chessboard of 25 mm found"));
}

// A lens and boards seen through it, without noise.
std::vector<BoardView> made_views(int count, bool alike) {
  Lens lens;
  lens.model = LensModel::kBrownConrady;
  lens.camera_matrix = {800, 0, 319.5, 0, 800, 239.5, 0, 0, 1};
  std::vector<BoardView> views;
  for (int i = 0; i < count; ++i) {
    const double a = alike ? 0.3 : 0.5 * std::sin(2.1 * i);
    const double b = alike ? 0.02 * i : 0.5 * std::cos(1.3 * i);
    BoardPose pose;
    pose.rotation = {std::cos(b),
                     std::sin(a) * std::sin(b),
                     std::cos(a) * std::sin(b),
                     0,
                     std::cos(a),
                     -std::sin(a),
                     -std::sin(b),
                     std::sin(a) * std::cos(b),
                     std::cos(a) * std::cos(b)};
    pose.translation_mm = {-90.0 + 5 * i, -60.0 - 3 * i, 420.0 + 10 * i};
    BoardView view{"made" + std::to_string(i), {}, {}};
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 9; ++x) {
        const Point2 mm{x * 20.0, y * 20.0};
        const Point2 px = project(lens, pose, mm).value();
        view.board_mm.push_back(mm);
        // A little disorder, so that uncertainties are not nothing.
        view.image_px.push_back({px.x + 0.05 * std::sin(31.0 * (x + 9 * y) + i), px.y});
      }
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::string findings_of(const std::vector<BoardView>& views, int width = 640, int height = 480) {
  const auto fit = fit_camera(views, width, height, {});
  if (!fit) return fit.error().message;
  std::string all;
  for (const Finding& finding : check_calibration(views, *fit, width, height)) {
    all += finding.message + "\n";
  }
  return all;
}

TEST(Calibrate, WarnsInPlainWords) {
  EXPECT_THAT(findings_of(made_views(4, false)), HasSubstr("only 4 pictures"));
  EXPECT_THAT(findings_of(made_views(10, true)), HasSubstr("too alike"));
  EXPECT_THAT(findings_of(made_views(10, false)), HasSubstr("no board reaches into the picture's"));
  std::vector<BoardView> views = made_views(10, false);
  for (std::size_t i = 0; i < views[3].image_px.size(); ++i) {
    views[3].image_px[i].y += i % 2 == 0 ? 2 : -2;
  }
  EXPECT_THAT(findings_of(views), HasSubstr("made3: its error stands out"));
  views = made_views(10, false);
  for (Point2& p : views[2].board_mm) p.x = -p.x;
  EXPECT_THAT(findings_of(views), HasSubstr("made2: the board is wrong side up"));
}

std::string findings_of_changed(const std::vector<BoardView>& views,
                                const std::function<void(CameraFit&)>& change) {
  auto fit = fit_camera(views, 640, 480, {});
  if (!fit) return fit.error().message;
  change(*fit);
  std::string all;
  for (const Finding& finding : check_calibration(views, *fit, 640, 480))
    all += (finding.fault ? "fault: " : "warning: ") + finding.message + "\n";
  return all;
}

TEST(Calibrate, WarnsOfNumbersThatNoCameraHas) {
  const std::vector<BoardView> views = made_views(10, false);
  EXPECT_THAT(
      findings_of_changed(views, [](CameraFit& fit) { fit.values[0] = fit.values[1] = 90; }),
      HasSubstr("warning: the focal length is out of reason (90.0, 90.0 pixels"));
  EXPECT_THAT(findings_of_changed(views, [](CameraFit& fit) { fit.values[1] *= 1.3; }),
              HasSubstr("the focal length is out of reason"));
  EXPECT_THAT(findings_of_changed(views, [](CameraFit& fit) { fit.values[2] = 620; }),
              HasSubstr("the optical axis meets the picture far from its middle (620.0, "));
  EXPECT_THAT(findings_of_changed(
                  views, [](CameraFit& fit) { fit.standard_deviations[0] = 0.02 * fit.values[0]; }),
              HasSubstr("the focal length is uncertain"));
  EXPECT_THAT(findings_of_changed(views, [](CameraFit& fit) { fit.lens.distortion = {-3}; }),
              HasSubstr("fault: the lens: lens.distortion: the lens polynomial folds back within"));
}

// The series with a thirteenth picture whose paper waves.
std::vector<std::string> series_with_a_bent_board(const test::TemporaryFolder& folder) {
  std::vector<std::string> paths = series("left");
  if (paths.empty()) return paths;
  Image flat = read_image(paths[4]).value();
  cv::Mat bent(flat.height(), flat.width(), CV_8U);
  cv::Mat map_x(bent.size(), CV_32F);
  cv::Mat map_y(bent.size(), CV_32F);
  for (int y = 0; y < bent.rows; ++y) {
    for (int x = 0; x < bent.cols; ++x) {
      map_x.at<float>(y, x) = static_cast<float>(x + 5 * std::sin(y / 20.0));
      map_y.at<float>(y, x) = static_cast<float>(y + 5 * std::sin(x / 20.0));
    }
  }
  cv::remap(cv::Mat(bent.size(), CV_8U, flat.view().data, flat.view().stride_bytes), bent, map_x,
            map_y, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  paths[4] = folder.file("bent.png");
  EXPECT_TRUE(write_image(paths[4], {bent.data, bent.cols, bent.rows, bent.step}));
  return paths;
}

TEST(Calibrate, NamesTheOnePictureThatIsBadAndDoesWithoutItOnRequest) {
  const test::TemporaryFolder folder;
  Request request;
  request.board = kSample;
  request.pictures = series_with_a_bent_board(folder);
  if (request.pictures.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  const auto with = calibrate(request);
  ASSERT_TRUE(with) << with.error().message;
  std::string findings;
  for (const Finding& finding : with->findings) findings += finding.message + "\n";
  EXPECT_THAT(findings, HasSubstr("bent.png: its error stands out"));
  request.leave_out = true;
  const auto without = calibrate(request);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->pictures[4].left_out, "its error stood out");
  EXPECT_LT(without->fit->rms_px, 0.21);
  EXPECT_GT(with->fit->rms_px, 2 * without->fit->rms_px);
}

TEST(Calibrate, ReadsPairsAndSaysWhereTheyAreWrong) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("pairs.txt");
  std::ofstream(path) << "# x_px y_px x_mm y_mm\n100 100 0 0\n\n500.5, 110; -20.5 1e1 # b\n";
  const auto pairs = read_pairs(path);
  ASSERT_TRUE(pairs) << pairs.error().message;
  ASSERT_EQ(pairs->size(), 2U);
  EXPECT_EQ((*pairs)[1].to.x, 500.5);
  EXPECT_EQ((*pairs)[1].from.x, -20.5);
  EXPECT_EQ((*pairs)[1].from.y, 10);
  std::ofstream(path) << "1 2 3 4\n1 2 3\n";
  EXPECT_THAT(read_pairs(path).error().message, HasSubstr("pairs.txt:2: not four numbers"));
}

Request points_request(const test::TemporaryFolder& folder) {
  const std::string path = folder.file("scene.png");
  Image picture = Image::create(640, 480, PixelFormat::kGray8).value();
  picture.fill_bytes(90);
  EXPECT_TRUE(write_image(path, std::as_const(picture).view()));
  Request request;
  request.pictures = {path};
  const Matrix3 h = {2.1, 0.1, 100, -0.05, 1.9, 80, 1e-4, 8e-4, 1};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) {
      const Point2 mm{x * 40.0, y * 40.0};
      request.plane_pairs.push_back({mm, apply(h, mm).value()});
    }
  }
  return request;
}

TEST(Calibrate, MakesAPlaneFromPairsAndNamesOutliers) {
  const test::TemporaryFolder folder;
  Request request = points_request(folder);
  request.plane_pairs[7].to.x += 30;
  const auto outcome = calibrate(request);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->model.lens.model, LensModel::kNone);
  ASSERT_TRUE(outcome->plane);
  EXPECT_LT(outcome->plane->rms_mm, 1e-6);
  EXPECT_THAT(outcome->plane->outliers, ElementsAre(8));
  EXPECT_THAT(outcome->findings.at(0).message, HasSubstr("pair 8 is 30"));
}

TEST(Calibrate, RefusesMirroredPairs) {
  const test::TemporaryFolder folder;
  Request request = points_request(folder);
  for (PointPair& pair : request.plane_pairs) pair.from.y = -pair.from.y;
  const auto outcome = calibrate(request);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("comes out mirrored"));
}

TEST(Calibrate, RefusesPointsOnALine) {
  const test::TemporaryFolder folder;
  Request request = points_request(folder);
  request.plane_pairs.resize(5);  // one row of the grid
  const auto outcome = calibrate(request);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("the points lie nearly on a line on the plane"));
}

TEST(Calibrate, RefusesAnOutputThatReachesThePlanesHorizon) {
  const test::TemporaryFolder folder;
  Request request = points_request(folder);
  request.wishes.mm_per_px = 1;
  request.wishes.size_px = Point2{3000, 3000};
  request.wishes.origin_px = Point2{1500, 2500};
  const auto outcome = calibrate(request);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("infinity"));
}

TEST(Calibrate, RefusesPicturesOfDifferentSizes) {
  const std::vector<std::string> paths = series("left");
  const std::string other = test::opencv_sample("graf1.png");
  if (paths.empty() || other.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  Request request;
  request.board = kSample;
  request.pictures = {paths[0], other};
  const auto outcome = calibrate(request);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message,
              HasSubstr("has 800x640 pixels, the pictures before it 640x480"));
}

TEST(Conversions, ComeBackFromOpenCvsFile) {
  const test::TemporaryFolder folder;
  CameraModel model;
  model.image_width = 640;
  model.image_height = 480;
  model.lens.model = LensModel::kBrownConrady;
  model.lens.camera_matrix = {533.5, 0, 341.25, 0, 534, 232.5, 0, 0, 1};
  model.lens.distortion = {-0.28, 0.1, 0.001, -0.0002, 0.01, 0, 0, 0};
  for (const LensModel kind : {LensModel::kBrownConrady, LensModel::kFisheye}) {
    model.lens.model = kind;
    if (kind == LensModel::kFisheye) model.lens.distortion = {0.02, -0.01, 0.003, -0.0005};
    ASSERT_TRUE(to_opencv(model, folder.file("camera.yml")));
    const auto back = from_opencv(folder.file("camera.yml"));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_yaml(*back), to_yaml(model));
  }
}

TEST(Conversions, ReadRosCameraInfo) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("ost.yaml");
  const std::string text =
      "image_width: 640\nimage_height: 480\ncamera_name: narrow\n"
      "camera_matrix:\n  rows: 3\n  cols: 3\n  data: [533.5, 0, 341.2, 0, 534, 232.5, 0, 0, 1]\n"
      "distortion_model: plumb_bob\n"
      "distortion_coefficients:\n  rows: 1\n  cols: 5\n  data: [-0.28, 0.1, 0.001, -0.0002, 0]\n"
      "rectification_matrix:\n  rows: 3\n  cols: 3\n  data: [1, 0, 0, 0, 1, 0, 0, 0, 1]\n";
  std::ofstream(path) << text;
  const auto model = from_ros(path);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->image_width, 640);
  EXPECT_EQ(model->lens.distortion[1], 0.1);
  std::string wrong = text;
  wrong.replace(wrong.find("plumb_bob"), 9, "equidistant");
  std::ofstream(path) << wrong;
  EXPECT_THAT(from_ros(path).error().message,
              HasSubstr("5 distortion coefficients; a fisheye lens has 4"));
}

}  // namespace
}  // namespace patternd::calibrate
