#include "tools/synth/board.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calibration/camera_map.h"
#include "calibration/lens.h"
#include "tools/synth/sensor.h"

namespace patternd::synth {
namespace {

constexpr float kTable = 120;
constexpr float kDark = 30;
constexpr float kLight = 225;
constexpr int kSamples = 16;
const double kDegree = std::acos(-1.0) / 180;

bool on_board(const BoardFace& face, Point2 mm) {
  const Point2 low = face.upper_left_mm();
  const Point2 high = face.lower_right_mm();
  return mm.x >= low.x && mm.y >= low.y && mm.x < high.x && mm.y < high.y;
}

float picture_level(const BoardFace& face, Point2 mm) {
  const ImageView picture = face.picture.view();
  const double x = std::clamp(mm.x / face.picture_mm_per_px - 0.5, 0.0, picture.width - 1.001);
  const double y = std::clamp(mm.y / face.picture_mm_per_px - 0.5, 0.0, picture.height - 1.001);
  const int left = static_cast<int>(x);
  const int top = static_cast<int>(y);
  const double fx = x - left;
  const double fy = y - top;
  const std::uint8_t* upper = picture.row<std::uint8_t>(top) + left;
  const std::uint8_t* lower = picture.row<std::uint8_t>(top + 1) + left;
  return static_cast<float>((upper[0] * (1 - fx) + upper[1] * fx) * (1 - fy) +
                            (lower[0] * (1 - fx) + lower[1] * fx) * fy);
}

float level_at(const BoardFace& face, Point2 mm) {
  if (!on_board(face, mm)) return kTable;
  if (!face.picture.empty()) return picture_level(face, mm);
  const int column = static_cast<int>(std::floor(mm.x / face.square_mm));
  const int row = static_cast<int>(std::floor(mm.y / face.square_mm));
  const bool inside = column >= -1 && row >= -1 && column < face.columns && row < face.rows;
  return inside && (column + row) % 2 == 0 ? kDark : kLight;
}

// Whether the level may change within `reach` mm of a place along each axis.
bool near_edge(const BoardFace& face, Point2 mm, Point2 reach) {
  if (!face.picture.empty()) return true;
  const auto to_line = [&](double v) {
    const double steps = v / face.square_mm;
    return std::abs(steps - std::round(steps)) * face.square_mm;
  };
  return to_line(mm.x) <= reach.x || to_line(mm.y) <= reach.y;
}

float pixel_level(const BoardFace& face, Point2 mm, const Jacobian2& j) {
  const Point2 reach{(std::abs(j[0]) + std::abs(j[1])) / 2, (std::abs(j[2]) + std::abs(j[3])) / 2};
  if (!near_edge(face, mm, reach)) return level_at(face, mm);
  float sum = 0;
  for (int sy = 0; sy < kSamples; ++sy) {
    const double dy = (sy + 0.5) / kSamples - 0.5;
    for (int sx = 0; sx < kSamples; ++sx) {
      const double dx = (sx + 0.5) / kSamples - 0.5;
      sum += level_at(face, {mm.x + j[0] * dx + j[1] * dy, mm.y + j[2] * dx + j[3] * dy});
    }
  }
  return sum / (kSamples * kSamples);
}

Matrix3 turned(double ax, double ay, double az) {
  const Matrix3 x = {1, 0, 0, 0, std::cos(ax), -std::sin(ax), 0, std::sin(ax), std::cos(ax)};
  const Matrix3 y = {std::cos(ay), 0, std::sin(ay), 0, 1, 0, -std::sin(ay), 0, std::cos(ay)};
  const Matrix3 z = {std::cos(az), -std::sin(az), 0, std::sin(az), std::cos(az), 0, 0, 0, 1};
  return product(z, product(y, x));
}

bool shows_whole(const BoardFace& face, const Lens& lens, const BoardPose& pose,
                 const BoardOptions& options) {
  const Point2 low = face.upper_left_mm();
  const Point2 high = face.lower_right_mm();
  for (const double x : {low.x, (low.x + high.x) / 2, high.x}) {
    for (const double y : {low.y, (low.y + high.y) / 2, high.y}) {
      const auto p = project(lens, pose, {x, y});
      if (!p || p->x < 3 || p->y < 3 || p->x > options.width - 4 || p->y > options.height - 4) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

Point2 BoardFace::upper_left_mm() const {
  return picture.empty() ? Point2{-2 * square_mm, -2 * square_mm} : Point2{0, 0};
}

Point2 BoardFace::lower_right_mm() const {
  if (picture.empty()) return {(columns + 1) * square_mm, (rows + 1) * square_mm};
  return {picture.width() * picture_mm_per_px, picture.height() * picture_mm_per_px};
}

Result<Image> render_board(const BoardFace& face, const Lens& lens, const BoardPose& pose,
                           const BoardOptions& options, int number) {
  auto exact = Image::create(options.width, options.height, PixelFormat::kGrayF32);
  if (!exact) return exact;
  CameraModel millimetres;  // whose output pixels are millimetres on the board
  millimetres.image_width = options.width;
  millimetres.image_height = options.height;
  millimetres.lens = lens;
  millimetres.plane = Plane{plane_homography(lens, pose), options.width, options.height, 1, {}};
  const CameraMap map(millimetres);
  for (int y = 0; y < options.height; ++y) {
    float* row = exact->row<float>(y);
    for (int x = 0; x < options.width; ++x) {
      Jacobian2 j{};
      const auto mm = map.to_output({static_cast<double>(x), static_cast<double>(y)}, &j);
      row[x] = mm ? pixel_level(face, *mm, j) : kTable;
    }
  }
  if (auto done = blur(exact->view(), options.blur_px); !done) {
    return tl::make_unexpected(done.error());
  }
  return expose(std::as_const(*exact).view(), PixelFormat::kGray8, options.noise_sigma,
                options.seed, number);
}

Result<BoardPose> random_board_pose(const BoardFace& face, const Lens& lens,
                                    const BoardOptions& options, double most_tilt_deg,
                                    Random& random) {
  const Point2 low = face.upper_left_mm();
  const Point2 high = face.lower_right_mm();
  const Point2 middle{(low.x + high.x) / 2, (low.y + high.y) / 2};
  const double fill = std::max((high.x - low.x) / options.width, (high.y - low.y) / options.height);
  for (int attempt = 0; attempt < 5000; ++attempt) {
    BoardPose pose;
    // One statement each: the order in which arguments are worked out is the compiler's.
    const double az = random.uniform(-25, 25) * kDegree;
    const double ay = random.uniform(-most_tilt_deg, most_tilt_deg) * kDegree;
    const double ax = random.uniform(-most_tilt_deg, most_tilt_deg) * kDegree;
    pose.rotation = turned(ax, ay, az);
    const double distance = lens.camera_matrix[0] * fill * random.uniform(1.1, 2.2);
    const Point2 place{random.uniform(-0.5, 0.5) * options.width,
                       random.uniform(-0.5, 0.5) * options.height};
    const Matrix3& r = pose.rotation;
    pose.translation_mm = {
        place.x * distance / lens.camera_matrix[0] - r[0] * middle.x - r[1] * middle.y,
        place.y * distance / lens.camera_matrix[4] - r[3] * middle.x - r[4] * middle.y,
        distance - r[6] * middle.x - r[7] * middle.y};
    if (shows_whole(face, lens, pose, options)) return pose;
  }
  return fail(ErrorCode::kInvalidArgument,
              "the board finds no place in the picture; make the picture larger or the lens's "
              "distortion weaker");
}

}  // namespace patternd::synth
