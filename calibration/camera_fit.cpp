#include "calibration/camera_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibration/camera_model_check.h"
#include "calibration/homography.h"
#include "calibration/lens.h"

namespace patternd {
namespace {

constexpr std::size_t kPoseSize = 6;  // turn about x, y, z; shift along x, y, z
constexpr int kMaxSteps = 200;

using Vector3 = std::array<double, 3>;

Vector3 times(const Matrix3& m, const Vector3& v) {
  return {m[0] * v[0] + m[1] * v[1] + m[2] * v[2], m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
          m[6] * v[0] + m[7] * v[1] + m[8] * v[2]};
}

// The rotation by |v| about v (Rodrigues).
Matrix3 rotation_by(const Vector3& v) {
  const double angle = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  const double s = angle > 1e-12 ? std::sin(angle) / angle : 1;
  const double c = angle > 1e-12 ? (1 - std::cos(angle)) / (angle * angle) : 0.5;
  const Matrix3 cross = {0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0};
  const Matrix3 squared = product(cross, cross);
  Matrix3 result = kIdentity3;
  for (std::size_t i = 0; i < 9; ++i) result[i] += s * cross[i] + c * squared[i];
  return result;
}

// Which numbers of the lens are fitted: fx fy cx cy and the first coefficients.
struct Parameters {
  std::size_t coefficients = 0;
  [[nodiscard]] std::size_t size() const { return 4 + coefficients; }
};

void move(Lens& lens, const Parameters& parameters, const Matrix& delta) {
  lens.camera_matrix[0] += delta(0, 0);
  lens.camera_matrix[4] += delta(1, 0);
  lens.camera_matrix[2] += delta(2, 0);
  lens.camera_matrix[5] += delta(3, 0);
  for (std::size_t i = 0; i < parameters.coefficients; ++i) lens.distortion[i] += delta(4 + i, 0);
}

BoardPose moved(const BoardPose& pose, const Matrix& delta) {
  BoardPose result;
  result.rotation = product(rotation_by({delta(0, 0), delta(1, 0), delta(2, 0)}), pose.rotation);
  for (std::size_t i = 0; i < 3; ++i) {
    result.translation_mm[i] = pose.translation_mm[i] + delta(3 + i, 0);
  }
  return result;
}

// One point's residual and its derivatives: rows x and y.
struct PointTerms {
  double residual[2];
  double by_lens[2][12];
  double by_pose[2][kPoseSize];
};

// False where the point lies behind the camera.
bool point_terms(const LensDistortion& distortion, const Lens& lens, const BoardPose& pose,
                 Point2 board, Point2 image, const Parameters& parameters, PointTerms& terms) {
  const Vector3 turned = times(pose.rotation, {board.x, board.y, 0});
  const Vector3 p = {turned[0] + pose.translation_mm[0], turned[1] + pose.translation_mm[1],
                     turned[2] + pose.translation_mm[2]};
  if (!(p[2] > 0)) return false;
  const Point2 n{p[0] / p[2], p[1] / p[2]};
  Jacobian2 j{};
  std::array<double, 16> by_coefficient{};
  const Point2 d = distortion.evaluate(n, j, by_coefficient);
  const double focal[2] = {lens.camera_matrix[0], lens.camera_matrix[4]};
  const double bent[2] = {d.x, d.y};
  terms.residual[0] = focal[0] * d.x + lens.camera_matrix[2] - image.x;
  terms.residual[1] = focal[1] * d.y + lens.camera_matrix[5] - image.y;
  for (std::size_t row = 0; row < 2; ++row) {
    double* by_lens = terms.by_lens[row];
    by_lens[0] = row == 0 ? bent[0] : 0;
    by_lens[1] = row == 1 ? bent[1] : 0;
    by_lens[2] = row == 0 ? 1 : 0;
    by_lens[3] = row == 1 ? 1 : 0;
    for (std::size_t i = 0; i < parameters.coefficients; ++i) {
      by_lens[4 + i] = focal[row] * by_coefficient[2 * i + row];
    }
    // d(pixel)/d(point in camera coordinates), then −[turned]× for the rotation.
    const double dx = focal[row] * j[2 * row] / p[2];
    const double dy = focal[row] * j[2 * row + 1] / p[2];
    const double dz = -(dx * n.x + dy * n.y);
    double* by_pose = terms.by_pose[row];
    by_pose[0] = dz * turned[1] - dy * turned[2];
    by_pose[1] = dx * turned[2] - dz * turned[0];
    by_pose[2] = dy * turned[0] - dx * turned[1];
    by_pose[3] = dx;
    by_pose[4] = dy;
    by_pose[5] = dz;
  }
  return true;
}

// The normal equations of one view: [lens·lens, lens·pose; ·, pose·pose] and the gradients.
struct ViewSystem {
  Matrix lens_lens, lens_pose, pose_pose, lens_gradient, pose_gradient;
  double squared_sum = 0;
};

std::optional<ViewSystem> view_system(const BoardView& view, const Lens& lens,
                                      const BoardPose& pose, const Parameters& parameters) {
  const std::size_t n = parameters.size();
  ViewSystem s{Matrix(n, n), Matrix(n, kPoseSize), Matrix(kPoseSize, kPoseSize), Matrix(n, 1),
               Matrix(kPoseSize, 1)};
  const LensDistortion distortion(lens);
  PointTerms t{};
  for (std::size_t k = 0; k < view.board_mm.size(); ++k) {
    if (!point_terms(distortion, lens, pose, view.board_mm[k], view.image_px[k], parameters, t)) {
      return std::nullopt;
    }
    for (std::size_t row = 0; row < 2; ++row) {
      s.squared_sum += t.residual[row] * t.residual[row];
      for (std::size_t i = 0; i < n; ++i) {
        s.lens_gradient(i, 0) -= t.by_lens[row][i] * t.residual[row];
        for (std::size_t c = 0; c < n; ++c)
          s.lens_lens(i, c) += t.by_lens[row][i] * t.by_lens[row][c];
        for (std::size_t c = 0; c < kPoseSize; ++c) {
          s.lens_pose(i, c) += t.by_lens[row][i] * t.by_pose[row][c];
        }
      }
      for (std::size_t i = 0; i < kPoseSize; ++i) {
        s.pose_gradient(i, 0) -= t.by_pose[row][i] * t.residual[row];
        for (std::size_t c = 0; c < kPoseSize; ++c) {
          s.pose_pose(i, c) += t.by_pose[row][i] * t.by_pose[row][c];
        }
      }
    }
  }
  if (!std::isfinite(s.squared_sum)) return std::nullopt;
  return s;
}

// All views' systems and the sum of squares; nothing where a point is behind the camera.
struct System {
  std::vector<ViewSystem> views;
  double squared_sum = 0;
};
std::optional<System> make_system(const std::vector<BoardView>& views, const Lens& lens,
                                  const std::vector<BoardPose>& poses,
                                  const Parameters& parameters) {
  System system;
  for (std::size_t i = 0; i < views.size(); ++i) {
    auto view = view_system(views[i], lens, poses[i], parameters);
    if (!view) return std::nullopt;
    system.squared_sum += view->squared_sum;
    system.views.push_back(std::move(*view));
  }
  return system;
}

// The lens's normal matrix with every pose eliminated, and what is needed to find the poses again.
struct Reduced {
  Matrix normal, gradient;
  std::vector<Matrix> pose_solutions;  // pose_pose⁻¹ · [pose·lens | pose gradient], by view
};
std::optional<Reduced> reduce(const System& system, std::size_t n, double damping) {
  Reduced r{Matrix(n, n), Matrix(n, 1), {}};
  for (const ViewSystem& v : system.views) {
    Matrix pose = v.pose_pose;
    for (std::size_t i = 0; i < kPoseSize; ++i) pose(i, i) *= 1 + damping;
    Matrix right(kPoseSize, n + 1);
    for (std::size_t i = 0; i < kPoseSize; ++i) {
      for (std::size_t c = 0; c < n; ++c) right(i, c) = v.lens_pose(c, i);
      right(i, n) = v.pose_gradient(i, 0);
    }
    auto solution = solve_positive_definite(std::move(pose), std::move(right));
    if (!solution) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c <= n; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < kPoseSize; ++k) sum += v.lens_pose(i, k) * (*solution)(k, c);
        if (c < n) r.normal(i, c) += v.lens_lens(i, c) * (i == c ? 1 + damping : 1) - sum;
        if (c == n) r.gradient(i, 0) += v.lens_gradient(i, 0) - sum;
      }
    }
    r.pose_solutions.push_back(std::move(*solution));
  }
  return r;
}

struct State {
  Lens lens;
  std::vector<BoardPose> poses;
};

std::optional<State> stepped(const State& state, const System& system, const Parameters& parameters,
                             double damping) {
  const std::size_t n = parameters.size();
  const auto reduced = reduce(system, n, damping);
  if (!reduced) return std::nullopt;
  const auto delta = solve_positive_definite(reduced->normal, reduced->gradient);
  if (!delta) return std::nullopt;
  State next = state;
  move(next.lens, parameters, *delta);
  if (!(next.lens.camera_matrix[0] > 0 && next.lens.camera_matrix[4] > 0)) return std::nullopt;
  for (std::size_t v = 0; v < state.poses.size(); ++v) {
    Matrix pose_delta(kPoseSize, 1);
    for (std::size_t i = 0; i < kPoseSize; ++i) {
      pose_delta(i, 0) = reduced->pose_solutions[v](i, n);
      for (std::size_t c = 0; c < n; ++c) {
        pose_delta(i, 0) -= reduced->pose_solutions[v](i, c) * (*delta)(c, 0);
      }
    }
    next.poses[v] = moved(state.poses[v], pose_delta);
  }
  return next;
}

// Levenberg–Marquardt until the sum of squares stands still.
std::optional<System> optimise(const std::vector<BoardView>& views, const Parameters& parameters,
                               State& state) {
  auto system = make_system(views, state.lens, state.poses, parameters);
  if (!system) return std::nullopt;
  double damping = 1e-3;
  for (int i = 0; i < kMaxSteps && damping < 1e10; ++i) {
    auto next = stepped(state, *system, parameters, damping);
    auto next_system =
        next ? make_system(views, next->lens, next->poses, parameters) : std::nullopt;
    if (!next_system || next_system->squared_sum > system->squared_sum) {
      damping *= 10;
      continue;
    }
    const bool settled =
        system->squared_sum - next_system->squared_sum <= 1e-13 * system->squared_sum;
    state = std::move(*next);
    system = std::move(next_system);
    damping = std::max(damping * 0.1, 1e-12);
    if (settled) break;
  }
  return system;
}

// Board millimetres to the camera's normalised, undistorted coordinates.
Result<Matrix3> normalised_homography(const BoardView& view, const Lens& lens) {
  const LensDistortion distortion(lens);
  std::vector<PointPair> pairs;
  for (std::size_t i = 0; i < view.board_mm.size(); ++i) {
    const Point2 bent{(view.image_px[i].x - lens.camera_matrix[2]) / lens.camera_matrix[0],
                      (view.image_px[i].y - lens.camera_matrix[5]) / lens.camera_matrix[4]};
    if (const auto p = distortion.undistort(bent)) pairs.push_back({view.board_mm[i], *p});
  }
  auto fit = fit_homography(pairs);
  if (!fit) return fail(fit.error().code, view.name + ": " + fit.error().message);
  return fit->homography;
}

BoardPose pose_of(const Matrix3& h) {
  const auto column = [&](std::size_t i) { return Vector3{h[i], h[3 + i], h[6 + i]}; };
  const auto length = [](const Vector3& v) {
    return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  };
  Vector3 x = column(0);
  Vector3 y = column(1);
  double scale = 2 / (length(x) + length(y));
  if (h[8] < 0) scale = -scale;  // in front of the camera
  const double x_length = length(x) * (scale < 0 ? -1 : 1);
  for (double& v : x) v /= x_length;
  for (double& v : y) v *= scale;
  const double along = x[0] * y[0] + x[1] * y[1] + x[2] * y[2];
  for (std::size_t i = 0; i < 3; ++i) y[i] -= along * x[i];
  const double y_length = length(y);
  for (double& v : y) v /= y_length;
  const Vector3 z = {x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2],
                     x[0] * y[1] - x[1] * y[0]};
  BoardPose pose;
  pose.rotation = {x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]};
  pose.translation_mm = {h[2] * scale, h[5] * scale, h[8] * scale};
  return pose;
}

// Zhang's constraints with the principal point in the picture's middle: two linear equations in
// 1/fx² and 1/fy² a view.
Lens starting_lens(const std::vector<BoardView>& views, int width, int height, LensModel model) {
  Lens lens;
  lens.model = model;
  const double cx = (width - 1) / 2.0;
  const double cy = (height - 1) / 2.0;
  double fx = 1.2 * std::max(width, height);
  double fy = fx;
  if (model == LensModel::kFisheye) {
    fx = fy = std::max(width, height) / std::acos(-1.0);
  } else {
    double aa = 0, ab = 0, bb = 0, ar = 0, br = 0;
    const auto add = [&](double a, double b, double r) {
      const double scale = 1 / std::max(std::hypot(a, b), 1e-300);
      a *= scale, b *= scale, r *= scale;
      aa += a * a, ab += a * b, bb += b * b, ar += a * r, br += b * r;
    };
    for (const BoardView& view : views) {
      std::vector<PointPair> pairs;
      for (std::size_t i = 0; i < view.board_mm.size(); ++i) {
        pairs.push_back({view.board_mm[i], {view.image_px[i].x - cx, view.image_px[i].y - cy}});
      }
      const auto fit = fit_homography(pairs);
      if (!fit) continue;
      const Matrix3& h = fit->homography;
      add(h[0] * h[1], h[3] * h[4], -h[6] * h[7]);
      add(h[0] * h[0] - h[1] * h[1], h[3] * h[3] - h[4] * h[4], h[7] * h[7] - h[6] * h[6]);
    }
    const double det = aa * bb - ab * ab;
    const double a = (ar * bb - br * ab) / det;
    const double b = (br * aa - ar * ab) / det;
    const double least = 1 / (400.0 * std::max(width, height) * std::max(width, height));
    if (a > least && b > least) {
      fx = 1 / std::sqrt(a);
      fy = 1 / std::sqrt(b);
    }
  }
  lens.camera_matrix = {fx, 0, cx, 0, fy, cy, 0, 0, 1};
  return lens;
}

void describe(const std::vector<BoardView>& views, const System& system, const State& state,
              const Parameters& parameters, CameraFit& fit) {
  std::size_t points = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    points += views[i].board_mm.size();
    fit.view_rms_px.push_back(
        std::sqrt(system.views[i].squared_sum / static_cast<double>(views[i].board_mm.size())));
  }
  fit.lens = state.lens;
  fit.poses = state.poses;
  fit.rms_px = std::sqrt(system.squared_sum / static_cast<double>(points));
  const auto& k = state.lens.camera_matrix;
  fit.names = {"fx", "fy", "cx", "cy"};
  fit.values = {k[0], k[4], k[2], k[5]};
  for (std::size_t i = 0; i < parameters.coefficients; ++i) {
    fit.names.push_back(coefficient_names(state.lens.model)[i]);
    fit.values.push_back(state.lens.distortion[i]);
  }
  const double freedom = 2.0 * static_cast<double>(points) -
                         static_cast<double>(parameters.size() + kPoseSize * views.size());
  fit.noise_px = freedom > 0 ? std::sqrt(system.squared_sum / freedom) : 0;
}

Result<void> check_views(const std::vector<BoardView>& views, const CameraFitOptions& options) {
  if (views.size() < 2) {
    return fail(ErrorCode::kInvalidArgument,
                std::to_string(views.size()) +
                    " picture(s) with a board; at least 3 from different angles are needed");
  }
  const std::size_t most = coefficient_names(options.model).size();
  if (options.coefficients < 0 || static_cast<std::size_t>(options.coefficients) > most) {
    return fail(ErrorCode::kInvalidArgument, std::string(name_of(options.model)) + " has 0 to " +
                                                 std::to_string(most) + " coefficients");
  }
  for (const BoardView& view : views) {
    if (view.board_mm.size() >= 4 && view.board_mm.size() == view.image_px.size()) continue;
    return fail(ErrorCode::kInvalidArgument,
                view.name + ": " + std::to_string(view.board_mm.size()) + " points; at least 4");
  }
  return {};
}

}  // namespace

Result<CameraFit> fit_camera(const std::vector<BoardView>& views, int image_width, int image_height,
                             const CameraFitOptions& options) {
  if (auto sound = check_views(views, options); !sound) {
    return tl::make_unexpected(sound.error());
  }
  State state;
  state.lens = starting_lens(views, image_width, image_height, options.model);
  for (const BoardView& view : views) {
    auto h = normalised_homography(view, state.lens);
    if (!h) return tl::make_unexpected(h.error());
    state.poses.push_back(pose_of(*h));
  }
  // Few numbers first: the focal lengths settle before coefficients can take their part.
  const auto wanted = static_cast<std::size_t>(options.coefficients);
  std::optional<System> system;
  for (const std::size_t count : {std::min<std::size_t>(wanted, 1), wanted}) {
    system = optimise(views, Parameters{count}, state);
    if (!system) break;
  }
  const Parameters parameters{wanted};
  const char* hint =
      "the pictures don't determine the camera; take more, with the board tilted in different "
      "directions and reaching into the corners, or fit fewer coefficients";
  if (!system) return fail(ErrorCode::kInvalidArgument, hint);
  const auto reduced = reduce(*system, parameters.size(), 0);
  const auto covariance = reduced ? invert_positive_definite(reduced->normal) : std::nullopt;
  if (!covariance) return fail(ErrorCode::kInvalidArgument, hint);
  CameraFit fit;
  describe(views, *system, state, parameters, fit);
  fit.covariance = *covariance;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      fit.covariance(i, j) *= fit.noise_px * fit.noise_px;
    }
    fit.standard_deviations.push_back(std::sqrt(fit.covariance(i, i)));
  }
  return fit;
}

Result<BoardPose> fit_pose(const BoardView& view, const Lens& lens) {
  auto h = normalised_homography(view, lens);
  if (!h) return tl::make_unexpected(h.error());
  BoardPose pose = pose_of(*h);
  double damping = 1e-3;
  auto system = view_system(view, lens, pose, Parameters{});
  for (int i = 0; system && i < kMaxSteps && damping < 1e10; ++i) {
    Matrix normal = system->pose_pose;
    for (std::size_t k = 0; k < kPoseSize; ++k) normal(k, k) *= 1 + damping;
    const auto delta = solve_positive_definite(std::move(normal), system->pose_gradient);
    const BoardPose next = delta ? moved(pose, *delta) : pose;
    auto next_system = delta ? view_system(view, lens, next, Parameters{}) : std::nullopt;
    if (!next_system || next_system->squared_sum > system->squared_sum) {
      damping *= 10;
      continue;
    }
    const bool settled =
        system->squared_sum - next_system->squared_sum <= 1e-14 * system->squared_sum;
    pose = next;
    system = std::move(next_system);
    damping *= 0.1;
    if (settled) break;
  }
  if (!system) return fail(ErrorCode::kInvalidArgument, view.name + ": no pose fits its points");
  return pose;
}

std::optional<Point2> project(const Lens& lens, const BoardPose& pose, Point2 board_mm) {
  const Vector3 turned = times(pose.rotation, {board_mm.x, board_mm.y, 0});
  const double z = turned[2] + pose.translation_mm[2];
  if (!(z > 0)) return std::nullopt;
  const auto p = LensDistortion(lens).distort(
      {(turned[0] + pose.translation_mm[0]) / z, (turned[1] + pose.translation_mm[1]) / z});
  if (!p) return std::nullopt;
  const auto& k = lens.camera_matrix;
  return Point2{k[0] * p->x + k[2], k[4] * p->y + k[5]};
}

Matrix3 plane_homography(const Lens& lens, const BoardPose& pose) {
  const Matrix3& r = pose.rotation;
  const Vector3& t = pose.translation_mm;
  return product(lens.camera_matrix, Matrix3{r[0], r[1], t[0], r[3], r[4], t[1], r[6], r[7], t[2]});
}

}  // namespace patternd
