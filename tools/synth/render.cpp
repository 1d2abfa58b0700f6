#include "tools/synth/render.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "tools/synth/coverage.h"
#include "tools/synth/placed_instance.h"
#include "tools/synth/sensor.h"
#include "tools/synth/view.h"

namespace patternd::synth {
namespace {

constexpr double kCells = kCellsPerSide;

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

void draw(const PlacedInstance& placed, const View& view, MutableImageView picture,
          ThreadPool* pool) {
  const PictureRect bounds = placed.bounds(view);
  for_each_row(pool, bounds.top, bounds.bottom, [&](int y) {
    float* row = picture.row<float>(y);
    for (int x = bounds.left; x < bounds.right; ++x) {
      const View::Spot spot = view.at(x, y);
      if (!spot.sees_plane) continue;
      const PlacedInstance::Paint paint = placed.paint(placed.spot(spot));
      const auto behind = static_cast<double>(row[x]);
      row[x] = static_cast<float>(behind * (1 - paint.share) + paint.value);
    }
  });
}

Result<Image> black(int width, int height) {
  auto picture = Image::create(width, height, PixelFormat::kGrayF32);
  if (picture) picture->fill_bytes(0);
  return picture;
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
const View& SceneRenderer::view() const { return state_->view; }

Result<Image> SceneRenderer::render_exact(int frame) const {
  const Scene& scene = state_->scene;
  auto picture = Image::copy_of(state_->background.view());
  if (!picture) return picture;
  for (const Instance& instance : scene.instances) {
    const PlacedInstance placed(scene.patterns[instance.pattern], instance, frame);
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
  const PlacedInstance placed(scene.patterns[what.pattern], what, frame);
  const PictureRect bounds = placed.bounds(view);
  if (bounds.empty()) return std::optional<PoseGradient>();
  PoseGradient gradient;
  gradient.left = bounds.left;
  gradient.top = bounds.top;
  const std::array<Image*, 5> planes = {&gradient.inside, &gradient.value, &gradient.by_x,
                                        &gradient.by_y, &gradient.by_angle};
  for (Image* plane : planes) {
    auto made = black(bounds.right - bounds.left, bounds.bottom - bounds.top);
    if (!made) return tl::make_unexpected(made.error());
    *plane = std::move(*made);
  }
  for_each_row(state_->pool, bounds.top, bounds.bottom, [&](int y) {
    for (int x = bounds.left; x < bounds.right; ++x) {
      const View::Spot seen = view.at(x, y);
      if (!seen.sees_plane) continue;
      const PlacedInstance::Spot spot = placed.spot(seen);
      const PlacedInstance::Slope slope = placed.slope(spot);
      const double light = light_factor(scene.light, x, y, view.width(), view.height());
      const std::array<double, 5> values = {placed.fills(spot) ? 1.0 : 0.0, slope.value * light,
                                            slope.by_x * light, slope.by_y * light,
                                            slope.by_angle * light};
      for (std::size_t i = 0; i < planes.size(); ++i)
        planes[i]->row<float>(y - bounds.top)[x - bounds.left] = static_cast<float>(values[i]);
    }
  });
  for (std::size_t i = 1; i < planes.size(); ++i) {
    if (auto ok = blur(planes[i]->view(), scene.blur_sigma_px); !ok)
      return tl::make_unexpected(ok.error());
  }
  return std::optional<PoseGradient>(std::move(gradient));
}

Result<Image> picture_of(const ScenePattern& pattern, PixelFormat format) {
  auto exact = Image::create(pattern.width, pattern.height, PixelFormat::kGrayF32);
  if (!exact) return exact;
  Instance upright;
  upright.pose = {pattern.ref_x(), pattern.ref_y(), 0, 1};
  const PlacedInstance placed(pattern, upright, 0);
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
