#include "tools/synth/render.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "tools/synth/coverage.h"
#include "tools/synth/portable_math.h"
#include "tools/synth/sensor.h"
#include "tools/synth/view.h"

namespace patternd::synth {
namespace {

constexpr double kRadiansPerDegree = 0.017453292519943295;
constexpr double kCells = kCellsPerSide;

// Centre of cell i, from the pixel's centre.
double cell_offset(int i) { return (i + 0.5) / kCells - 0.5; }

// A pixel's square on the pattern: where its centre lies, and d(pattern)/d(picture).
struct PatternSpot {
  double u = 0;
  double v = 0;
  Jacobian2 sides{};
};

// An instance as it lies in one frame, ready to be sampled.
class Placed {
 public:
  Placed(const ScenePattern& pattern, const Instance& instance, int frame)
      : pattern_(pattern),
        instance_(instance),
        pose_(instance.pose_in(frame)),
        turn_(sin_cos_deg(pose_.angle_deg)),
        shape_(pattern, instance.cover) {}

  PatternSpot spot(const View::Spot& view) const {
    const double x = (view.x - pose_.x_px) / pose_.scale;
    const double y = (view.y - pose_.y_px) / pose_.scale;
    const double c = turn_.cos / pose_.scale;
    const double s = turn_.sin / pose_.scale;
    const Jacobian2& j = view.sides;
    return {pattern_.ref_x() + turn_.cos * x + turn_.sin * y,
            pattern_.ref_y() - turn_.sin * x + turn_.cos * y,
            {c * j[0] + s * j[2], c * j[1] + s * j[3], c * j[2] - s * j[0], c * j[3] - s * j[1]}};
  }

  VisibleShape::Place place(const PatternSpot& spot) const {
    return shape_.place(spot.u, spot.v, (std::abs(spot.sides[0]) + std::abs(spot.sides[1])) / 2,
                        (std::abs(spot.sides[2]) + std::abs(spot.sides[3])) / 2);
  }

  struct Paint {
    double share = 0;  // of the pixel that the instance covers
    double value = 0;  // its grey level there, times the share
  };
  Paint paint(const PatternSpot& spot) const {
    const VisibleShape::Place where = place(spot);
    if (where == VisibleShape::Place::kOutside) return {};
    Jacobian2 cell = spot.sides;
    for (double& side : cell) side /= kCells;
    Paint sum;
    for_each_cell(spot, [&](double u, double v) {
      const double share = where == VisibleShape::Place::kInside ? 1 : shape_.share(u, v, cell);
      if (share <= 0) return;
      sum.share += share;
      sum.value += share * grey(pattern_.sample(u, v).value);
    });
    return {sum.share / (kCells * kCells), sum.value / (kCells * kCells)};
  }

  struct Slope {
    double value = 0;
    double by_x = 0;
    double by_y = 0;
    double by_angle = 0;
  };
  // Derivatives of the pixel's grey level by the pose. With p = R(−a)·(q − t)/s + ref:
  // dp/dt = −R(−a)/s, dp/da = (v − ref_v, −(u − ref_u)).
  Slope slope(const PatternSpot& spot) const {
    const double c = turn_.cos / pose_.scale;
    const double s = turn_.sin / pose_.scale;
    Slope sum;
    for_each_cell(spot, [&](double u, double v) {
      const SplinePicture::Sample sample = pattern_.sample(u, v);
      sum.value += grey(sample.value);
      sum.by_x += s * sample.dy - c * sample.dx;
      sum.by_y += -s * sample.dx - c * sample.dy;
      sum.by_angle += sample.dx * (v - pattern_.ref_y()) - sample.dy * (u - pattern_.ref_x());
    });
    const double scale = instance_.gain / (kCells * kCells);
    return {sum.value / (kCells * kCells), sum.by_x * scale, sum.by_y * scale,
            sum.by_angle * scale * kRadiansPerDegree};
  }

  struct Bounds {
    int left = 0, top = 0, right = 0, bottom = 0;  // right and bottom excluded
    [[nodiscard]] bool empty() const { return left >= right || top >= bottom; }
  };
  // The pixels that the instance can reach, two more on each side; the whole picture where the
  // camera does not see all of its outline.
  Bounds bounds(const View& view) const {
    constexpr int kPointsPerSide = 16;
    double low_x = 1e9, low_y = 1e9, high_x = -1e9, high_y = -1e9;
    for (int i = 0; i < 4 * kPointsPerSide; ++i) {
      const auto picture = view.to_picture(
          to_plane(pose_, pattern_, outline(i / kPointsPerSide, i % kPointsPerSide / 16.0)));
      if (!picture) return {0, 0, view.width(), view.height()};
      low_x = std::min(low_x, picture->x);
      high_x = std::max(high_x, picture->x);
      low_y = std::min(low_y, picture->y);
      high_y = std::max(high_y, picture->y);
    }
    const auto clip = [](double value, int high) {
      return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(high)));
    };
    return {clip(std::floor(low_x) - 2, view.width()), clip(std::floor(low_y) - 2, view.height()),
            clip(std::ceil(high_x) + 3, view.width()), clip(std::ceil(high_y) + 3, view.height())};
  }

 private:
  double grey(double value) const { return instance_.gain * value + instance_.offset; }

  template <class Body>
  void for_each_cell(const PatternSpot& spot, Body&& body) const {
    for (int j = 0; j < kCellsPerSide; ++j) {
      for (int i = 0; i < kCellsPerSide; ++i) {
        const double x = cell_offset(i);
        const double y = cell_offset(j);
        body(spot.u + spot.sides[0] * x + spot.sides[1] * y,
             spot.v + spot.sides[2] * x + spot.sides[3] * y);
      }
    }
  }

  // A point of the rectangle's outline: `along` [0, 1) of side 0 to 3.
  Point2 outline(int side, double along) const {
    const double right = pattern_.width - 0.5;
    const double bottom = pattern_.height - 0.5;
    switch (side) {
      case 0:
        return {-0.5 + along * pattern_.width, -0.5};
      case 1:
        return {right, -0.5 + along * pattern_.height};
      case 2:
        return {right - along * pattern_.width, bottom};
      default:
        return {-0.5, bottom - along * pattern_.height};
    }
  }

  const ScenePattern& pattern_;
  const Instance& instance_;
  Pose pose_;
  SinCos turn_;
  VisibleShape shape_;
};

// The background's mean over a pixel; one sample where the photo is not made smaller there.
double background_at(const Background& background, const View::Spot& spot) {
  if (!spot.sees_plane) return 0;
  const double k = background.photo_px_per_px;
  const double x = background.left + k * spot.x;
  const double y = background.top + k * spot.y;
  const double step_x = k * std::max(std::abs(spot.sides[0]), std::abs(spot.sides[1]));
  const double step_y = k * std::max(std::abs(spot.sides[2]), std::abs(spot.sides[3]));
  if (std::max(step_x, step_y) <= 1) return background.photo->value(x, y);
  double sum = 0;
  for (int j = 0; j < kCellsPerSide; ++j) {
    for (int i = 0; i < kCellsPerSide; ++i) {
      const double dx = k * cell_offset(i);
      const double dy = k * cell_offset(j);
      sum += background.photo->value(x + spot.sides[0] * dx + spot.sides[1] * dy,
                                     y + spot.sides[2] * dx + spot.sides[3] * dy);
    }
  }
  return sum / (kCells * kCells);
}

template <class Body>
void for_each_row(ThreadPool* pool, int first, int end, Body&& body) {
  const auto count = static_cast<std::size_t>(std::max(0, end - first));
  auto row = [&](std::size_t i) { body(first + static_cast<int>(i)); };
  if (pool != nullptr) {
    pool->for_each(count, row);
  } else {
    for (std::size_t i = 0; i < count; ++i) row(i);
  }
}

void draw(const Placed& placed, const View& view, MutableImageView picture, ThreadPool* pool) {
  const Placed::Bounds bounds = placed.bounds(view);
  for_each_row(pool, bounds.top, bounds.bottom, [&](int y) {
    float* row = picture.row<float>(y);
    for (int x = bounds.left; x < bounds.right; ++x) {
      const View::Spot spot = view.at(x, y);
      if (!spot.sees_plane) continue;
      const Placed::Paint paint = placed.paint(placed.spot(spot));
      const auto behind = static_cast<double>(row[x]);
      row[x] = static_cast<float>(behind * (1 - paint.share) + paint.value);
    }
  });
}

Result<Image> paint_background(const Scene& scene, const View& view, ThreadPool* pool) {
  auto picture = Image::create(view.width(), view.height(), PixelFormat::kGrayF32);
  if (!picture) return picture;
  for_each_row(pool, 0, view.height(), [&](int y) {
    float* row = picture->row<float>(y);
    for (int x = 0; x < view.width(); ++x)
      row[x] = static_cast<float>(background_at(scene.background, view.at(x, y)));
  });
  return picture;
}

}  // namespace

struct SceneRenderer::State {
  Scene scene;
  ThreadPool* pool;
  View view;
  Image background;  // kGrayF32

  State(const Scene& what, ThreadPool* threads)
      : scene(what), pool(threads), view(scene, threads) {}
};

SceneRenderer::SceneRenderer(std::unique_ptr<State> state) : state_(std::move(state)) {}
SceneRenderer::SceneRenderer(SceneRenderer&&) noexcept = default;
SceneRenderer& SceneRenderer::operator=(SceneRenderer&&) noexcept = default;
SceneRenderer::~SceneRenderer() = default;

Result<SceneRenderer> SceneRenderer::create(const Scene& scene, ThreadPool* pool) {
  if (auto ok = check_scene(scene); !ok) return tl::make_unexpected(ok.error());
  auto state = std::make_unique<State>(scene, pool);
  auto background = paint_background(state->scene, state->view, pool);
  if (!background) return tl::make_unexpected(background.error());
  state->background = std::move(*background);
  return SceneRenderer(std::move(state));
}

const Scene& SceneRenderer::scene() const { return state_->scene; }

Result<Image> SceneRenderer::render_exact(int frame) const {
  const Scene& scene = state_->scene;
  auto picture = Image::copy_of(state_->background.view());
  if (!picture) return picture;
  for (const Instance& instance : scene.instances) {
    const Placed placed(scene.patterns[instance.pattern], instance, frame);
    draw(placed, state_->view, picture->view(), state_->pool);
  }
  if (scene.light.gradient > 0) {
    for_each_row(state_->pool, 0, picture->height(), [&](int y) {
      float* row = picture->row<float>(y);
      for (int x = 0; x < picture->width(); ++x) {
        const double factor = light_factor(scene.light, x, y, picture->width(), picture->height());
        row[x] = static_cast<float>(static_cast<double>(row[x]) * factor);
      }
    });
  }
  if (auto ok = blur(picture->view(), scene.blur_sigma_px); !ok)
    return tl::make_unexpected(ok.error());
  return picture;
}

Result<Image> SceneRenderer::render(int frame) const {
  auto exact = render_exact(frame);
  if (!exact) return exact;
  const Scene& scene = state_->scene;
  return expose(exact->view(), scene.format, scene.noise_sigma, scene.seed, frame);
}

Result<std::optional<SceneRenderer::PoseGradient>> SceneRenderer::pose_gradient(
    int frame, std::size_t instance) const {
  const Scene& scene = state_->scene;
  const View& view = state_->view;
  if (instance >= scene.instances.size())
    return fail(ErrorCode::kInvalidArgument, "scene: no instance " + std::to_string(instance));
  const Instance& what = scene.instances[instance];
  const Placed placed(scene.patterns[what.pattern], what, frame);
  const Placed::Bounds bounds = placed.bounds(view);
  if (bounds.empty()) return std::optional<PoseGradient>();
  PoseGradient gradient;
  gradient.left = bounds.left;
  gradient.top = bounds.top;
  const std::array<Image*, 5> planes = {&gradient.value, &gradient.by_x, &gradient.by_y,
                                        &gradient.by_angle, &gradient.inside};
  for (Image* plane : planes) {
    auto made = Image::create(bounds.right - bounds.left, bounds.bottom - bounds.top,
                              PixelFormat::kGrayF32);
    if (!made) return tl::make_unexpected(made.error());
    made->fill_bytes(0);
    *plane = std::move(*made);
  }
  for_each_row(state_->pool, bounds.top, bounds.bottom, [&](int y) {
    for (int x = bounds.left; x < bounds.right; ++x) {
      const View::Spot seen = view.at(x, y);
      if (!seen.sees_plane) continue;
      const PatternSpot spot = placed.spot(seen);
      const Placed::Slope slope = placed.slope(spot);
      const double light = light_factor(scene.light, x, y, view.width(), view.height());
      const bool inside = placed.place(spot) == VisibleShape::Place::kInside;
      const std::array<double, 5> values = {slope.value * light, slope.by_x * light,
                                            slope.by_y * light, slope.by_angle * light,
                                            inside ? 1.0 : 0.0};
      for (std::size_t i = 0; i < planes.size(); ++i)
        planes[i]->row<float>(y - bounds.top)[x - bounds.left] = static_cast<float>(values[i]);
    }
  });
  for (Image* plane : {&gradient.value, &gradient.by_x, &gradient.by_y, &gradient.by_angle}) {
    if (auto ok = blur(plane->view(), scene.blur_sigma_px); !ok)
      return tl::make_unexpected(ok.error());
  }
  return std::optional<PoseGradient>(std::move(gradient));
}

Result<Image> picture_of(const ScenePattern& pattern, PixelFormat format) {
  auto exact = Image::create(pattern.width, pattern.height, PixelFormat::kGrayF32);
  if (!exact) return exact;
  Instance upright;
  upright.pose = {pattern.ref_x(), pattern.ref_y(), 0, 1};
  const Placed placed(pattern, upright, 0);
  for (int v = 0; v < pattern.height; ++v) {
    for (int u = 0; u < pattern.width; ++u) {
      View::Spot spot;
      spot.x = u;
      spot.y = v;
      exact->row<float>(v)[u] = static_cast<float>(placed.slope(placed.spot(spot)).value);
    }
  }
  return expose(exact->view(), format, 0, 0, 0);
}

Result<Image> mask_of(const ScenePattern& pattern) {
  if (pattern.shape == ScenePattern::Shape::kRectangle) return Image();
  auto mask = Image::create(pattern.width, pattern.height, PixelFormat::kGray8);
  if (!mask) return mask;
  const VisibleShape shape(pattern, 0);
  for (int v = 0; v < pattern.height; ++v) {
    for (int u = 0; u < pattern.width; ++u)
      mask->row<std::uint8_t>(v)[u] =
          shape.place(u, v, 0.5, 0.5) == VisibleShape::Place::kInside ? 255 : 0;
  }
  return mask;
}

}  // namespace patternd::synth
