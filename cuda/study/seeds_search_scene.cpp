#include "cuda/study/seeds_search_scene.h"

#include <algorithm>
#include <cmath>

#include "cuda/picture.h"
#include "cuda/study/seeds_bench.h"
#include "tools/synth/render.h"
#include "tools/synth/sample_photos.h"

namespace patternd::cuda {
namespace {

constexpr double kAngleStepDeg = 360.0 / kSeedAngles;

synth::Scene describe_scene(int size) {
  auto textures = value_of(synth::made_textures(7));
  synth::Scene scene;
  scene.width = size;
  scene.height = size;
  scene.background.photo = textures[1];
  scene.patterns = {value_of(
      synth::cut_pattern("part", textures[0], 200, 150, kSeedPatternSide, kSeedPatternSide))};
  scene.noise_sigma = 5;
  const double places[5][2] = {{0.2, 0.22}, {0.75, 0.2}, {0.5, 0.5}, {0.24, 0.78}, {0.78, 0.76}};
  for (int i = 0; i < 5; ++i) {
    synth::Instance instance;
    // On pixels that every level's grid hits.
    instance.pose.x_px = std::floor(places[i][0] * size / 8) * 8 + 3.5;
    instance.pose.y_px = std::floor(places[i][1] * size / 8) * 8 + 3.5;
    instance.pose.angle_deg = kAngleStepDeg * ((7 * i) % kSeedAngles) - 180;
    scene.instances.push_back(instance);
  }
  return scene;
}

// 8 bit to 0..1.
Image as_float(const Image& grey) {
  Image out = value_of(Image::create(grey.width(), grey.height(), PixelFormat::kGrayF32));
  for (int y = 0; y < grey.height(); ++y)
    for (int x = 0; x < grey.width(); ++x)
      out.row<float>(y)[x] = static_cast<float>(grey.row<std::uint8_t>(y)[x]) / 255.0F;
  return out;
}

Image halved(const Image& in) {
  Image out = value_of(Image::create(in.width() / 2, in.height() / 2, PixelFormat::kGrayF32));
  for (int y = 0; y < out.height(); ++y) {
    const float* upper = in.row<float>(2 * y);
    const float* lower = in.row<float>(2 * y + 1);
    for (int x = 0; x < out.width(); ++x)
      out.row<float>(y)[x] =
          0.25F * (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]);
  }
  return out;
}

// Takes the mean out; returns ΣP² (the pattern's part of eq. 2.3, worked out once).
float centre(Image& pattern) {
  double sum = 0;
  for (int y = 0; y < pattern.height(); ++y)
    for (int x = 0; x < pattern.width(); ++x) sum += static_cast<double>(pattern.row<float>(y)[x]);
  const double mean = sum / (static_cast<double>(pattern.width()) * pattern.height());
  double energy = 0;
  for (int y = 0; y < pattern.height(); ++y) {
    for (int x = 0; x < pattern.width(); ++x) {
      float& value = pattern.row<float>(y)[x];
      value = static_cast<float>(static_cast<double>(value) - mean);
      energy += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  return static_cast<float>(energy);
}

double bilinear(const ImageView& picture, double x, double y) {
  const int left = std::clamp(static_cast<int>(std::floor(x)), 0, picture.width - 2);
  const int top = std::clamp(static_cast<int>(std::floor(y)), 0, picture.height - 2);
  const double fx = x - left;
  const double fy = y - top;
  const float* upper = picture.row<float>(top) + left;
  const float* lower = picture.row<float>(top + 1) + left;
  const auto mix = [&](const float* row) {
    return static_cast<double>(row[0]) +
           fx * (static_cast<double>(row[1]) - static_cast<double>(row[0]));
  };
  return mix(upper) + fy * (mix(lower) - mix(upper));
}

}  // namespace

SearchScene make_search_scene(int size) {
  const synth::Scene description = describe_scene(size);
  auto renderer = value_of(synth::SceneRenderer::create(description, nullptr));
  SearchScene scene;
  scene.grey = value_of(renderer.render(0));
  const Image taught = value_of(synth::picture_of(description.patterns[0]));
  scene.pattern =
      std::make_shared<const Pattern>(value_of(teach_pattern("part", taught.view(), {}, {})));
  for (std::size_t i = 0; i < description.instances.size(); ++i) {
    const synth::Pose& pose = description.instances[i].pose;
    scene.instances.push_back(
        {pose.x_px, pose.y_px,
         static_cast<int>(std::lround((pose.angle_deg + 180) / kAngleStepDeg))});
  }
  scene.pictures.push_back(as_float(scene.grey));
  scene.patterns.push_back(as_float(taught));
  for (int i = 0; i < kSeedLevels; ++i) {
    scene.pictures.push_back(halved(scene.pictures.back()));
    scene.patterns.push_back(halved(scene.patterns.back()));
  }
  for (Image& pattern : scene.patterns) scene.energies.push_back(centre(pattern));
  return scene;
}

std::vector<StudyTurn> seed_turns(const Image& pattern) {
  constexpr double kSlack = 0.01;  // of single precision, so that no sample lies on the edge
  std::vector<StudyTurn> turns;
  const double half_x = (pattern.width() - 1) / 2.0;
  const double half_y = (pattern.height() - 1) / 2.0;
  for (int i = 0; i < kSeedAngles; ++i) {
    const double angle = (kAngleStepDeg * i - 180) * 0.017453292519943295;
    const double c = std::abs(std::cos(angle));
    const double s = std::abs(std::sin(angle));
    turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)),
                     static_cast<float>(c * half_x + s * half_y + kSlack),
                     static_cast<float>(s * half_x + c * half_y + kSlack)});
  }
  return turns;
}

float ncc_reference(const ImageView& picture, const ImageView& pattern, float energy,
                    const StudyTurn& turn, int x, int y) {
  const auto fx = static_cast<float>(x);
  const auto fy = static_cast<float>(y);
  if (fx < turn.reach_x || fy < turn.reach_y ||
      fx + turn.reach_x > static_cast<float>(picture.width - 1) ||
      fy + turn.reach_y > static_cast<float>(picture.height - 1))
    return 0;
  const auto cosine = static_cast<double>(turn.cosine);
  const auto sine = static_cast<double>(turn.sine);
  double s = 0;
  double ss = 0;
  double sp = 0;
  for (int j = 0; j < pattern.height; ++j) {
    const float* row = pattern.row<float>(j);
    const double py = j - (pattern.height - 1) / 2.0;
    for (int i = 0; i < pattern.width; ++i) {
      const double px = i - (pattern.width - 1) / 2.0;
      const double value =
          bilinear(picture, x + px * cosine - py * sine, y + px * sine + py * cosine);
      s += value;
      ss += value * value;
      sp += value * static_cast<double>(row[i]);
    }
  }
  const double n = static_cast<double>(pattern.width) * pattern.height;
  const double window = ss - s * s / n;
  if (!(window > n * 1.5e-7)) return 0;
  return static_cast<float>(sp / std::sqrt(window * static_cast<double>(energy)));
}

std::vector<float> suppress_reference(const std::vector<float>& scores, int width, int height) {
  std::vector<float> out(scores.size());
  const auto at = [&](int x, int y) {
    return scores[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      bool beaten = false;
      for (int ny = std::max(y - 1, 0); ny <= std::min(y + 1, height - 1); ++ny)
        for (int nx = std::max(x - 1, 0); nx <= std::min(x + 1, width - 1); ++nx)
          beaten = beaten || at(nx, ny) > at(x, y);
      out[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
          static_cast<std::size_t>(x)] = beaten ? 0 : at(x, y);
    }
  }
  return out;
}

std::vector<StudyCandidate> best_candidates(const std::vector<float>& suppressed, int width,
                                            int height, std::size_t limit) {
  std::vector<StudyCandidate> all;
  const int plane = width * height;
  for (std::size_t i = 0; i < suppressed.size(); ++i) {
    if (!(suppressed[i] > 0)) continue;
    const int at = static_cast<int>(i) % plane;
    all.push_back({at % width, at / width, static_cast<int>(i) / plane, 1, suppressed[i], 0});
  }
  const std::size_t count = std::min(limit, all.size());
  std::partial_sort(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
      [](const StudyCandidate& a, const StudyCandidate& b) { return a.score > b.score; });
  all.resize(count);
  return all;
}

void trace_reference(const ImageView& picture, const ImageView& pattern, float energy,
                     const std::vector<StudyTurn>& turns, float least_score,
                     std::vector<StudyCandidate>& candidates) {
  for (StudyCandidate& candidate : candidates) {
    if (candidate.alive == 0) continue;
    const StudyTurn& turn = turns[static_cast<std::size_t>(candidate.angle)];
    StudyCandidate best = candidate;
    best.score = -2;
    for (int k = 0; k < kStudyNeighbours; ++k) {
      const int x = 2 * candidate.x + k % 3 - 1;
      const int y = 2 * candidate.y + k / 3 - 1;
      const float score = ncc_reference(picture, pattern, energy, turn, x, y);
      if (score > best.score) best = {x, y, candidate.angle, 1, score, 0};
    }
    if (best.score < least_score) best.alive = 0;
    candidate = best;
  }
}

SearchLevels::SearchLevels(const SeedBench& bench, const SearchScene& scene, MemoryMode mode) {
  for (std::size_t i = 0; i < scene.pictures.size(); ++i)
    levels_.push_back(make_level(bench, scene, i, mode));
}

SearchLevels::Level SearchLevels::make_level(const SeedBench& bench, const SearchScene& scene,
                                             std::size_t index, MemoryMode mode) {
  const Image& picture = scene.pictures[index];
  const Image& pattern = scene.patterns[index];
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width()) * sizeof(float);
  const std::size_t stride = aligned_stride(bench.device()->properties(), row_bytes);
  const std::size_t bytes = stride * static_cast<std::size_t>(picture.height());
  Level level;
  level.memory = value_of(SharedBuffer::create(bench.device(), mode, bytes));
  for (int y = 0; y < picture.height(); ++y)
    std::copy_n(picture.view().row_bytes(y), row_bytes,
                level.memory.host() + static_cast<std::size_t>(y) * stride);
  require(level.memory.upload(bench.stream(), bytes));
  require(bench.stream().wait());
  level.host = {level.memory.host(), picture.width(), picture.height(), stride,
                PixelFormat::kGrayF32};
  level.texture = value_of(Texture::create(bench.device(), level.memory.device(), picture.width(),
                                           picture.height(), stride, PixelFormat::kGrayF32, 1,
                                           FilterMode::kPoint));
  std::vector<float> dense;
  for (int y = 0; y < pattern.height(); ++y)
    dense.insert(dense.end(), pattern.row<float>(y), pattern.row<float>(y) + pattern.width());
  level.pattern =
      value_of(DeviceBuffer::copy_of(bench.device(), dense.data(), dense.size() * sizeof(float)));
  level.host_turns = seed_turns(pattern);
  level.turns = value_of(DeviceBuffer::copy_of(bench.device(), level.host_turns.data(),
                                               level.host_turns.size() * sizeof(StudyTurn)));
  level.parameters = {
      level.texture.get(), level.pattern.address(), picture.width(),       picture.height(),
      pattern.width(),     pattern.height(),        scene.energies[index], 0};
  return level;
}

}  // namespace patternd::cuda
