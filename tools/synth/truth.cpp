#include "tools/synth/truth.h"

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace patternd::synth {
namespace {

double wrapped_deg(double angle_deg) {
  const double wrapped = angle_deg - 360 * std::floor((angle_deg + 180) / 360);
  return wrapped >= 180 ? -180 : wrapped;
}

bool inside(Point2 point, int width, int height) {
  return point.x >= 0 && point.y >= 0 && point.x <= width - 1 && point.y <= height - 1;
}

// A plane point has content in the rectified picture.
bool valid(const SceneRenderer& renderer, Point2 plane_px) {
  const Scene& scene = renderer.scene();
  if (!inside(plane_px, scene.width, scene.height)) return false;
  const auto picture = renderer.view().to_picture(plane_px);
  return picture && inside(*picture, scene.picture_width(), scene.picture_height());
}

Result<double> visible_share(const SceneRenderer& renderer, const ScenePattern& pattern,
                             const Pose& pose) {
  const auto mask = mask_of(pattern);
  if (!mask) return tl::make_unexpected(mask.error());
  std::int64_t seen = 0;
  std::int64_t all = 0;
  for (int v = 0; v < pattern.height; ++v) {
    for (int u = 0; u < pattern.width; ++u) {
      if (!mask->empty() && mask->row<std::uint8_t>(v)[u] == 0) continue;
      ++all;
      const Point2 pattern_px{static_cast<double>(u), static_cast<double>(v)};
      if (valid(renderer, to_plane(pose, pattern, pattern_px))) ++seen;
    }
  }
  return all == 0 ? 0 : static_cast<double>(seen) / static_cast<double>(all);
}

}  // namespace

Result<std::vector<InstanceTruth>> truth_of(const SceneRenderer& renderer, int frame,
                                            bool with_bound) {
  const Scene& scene = renderer.scene();
  std::vector<InstanceTruth> truths;
  for (std::size_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    const ScenePattern& pattern = scene.patterns[instance.pattern];
    const Pose pose = instance.pose_in(frame);
    InstanceTruth truth;
    truth.pattern = pattern.name;
    truth.x_px = pose.x_px;
    truth.y_px = pose.y_px;
    truth.angle_deg = wrapped_deg(pose.angle_deg);
    truth.scale = pose.scale;
    truth.cover = instance.cover;
    const auto visible = visible_share(renderer, pattern, pose);
    if (!visible) return tl::make_unexpected(visible.error());
    truth.visible = *visible;
    if (scene.camera) truth.raw_px = renderer.view().to_picture({pose.x_px, pose.y_px});
    if (with_bound) {
      const auto bound = cramer_rao_bound(renderer, frame, i);
      if (!bound) return tl::make_unexpected(bound.error());
      truth.bound = *bound;
    }
    truths.push_back(truth);
  }
  return truths;
}

std::string truth_line(std::uint64_t seq, const std::vector<InstanceTruth>& truths) {
  nlohmann::ordered_json line;
  line["seq"] = seq;
  line["instances"] = nlohmann::ordered_json::array();
  for (const InstanceTruth& truth : truths) {
    nlohmann::ordered_json item;
    item["pattern"] = truth.pattern;
    item["x_px"] = truth.x_px;
    item["y_px"] = truth.y_px;
    item["angle_deg"] = truth.angle_deg;
    item["scale"] = truth.scale;
    item["visible"] = truth.visible;
    item["cover"] = truth.cover;
    if (truth.raw_px) {
      item["raw_x_px"] = truth.raw_px->x;
      item["raw_y_px"] = truth.raw_px->y;
    }
    if (truth.bound) {
      item["x_std_px"] = truth.bound->x_std_px;
      item["y_std_px"] = truth.bound->y_std_px;
      item["angle_std_deg"] = truth.bound->angle_std_deg;
    }
    line["instances"].push_back(std::move(item));
  }
  return line.dump();
}

}  // namespace patternd::synth
