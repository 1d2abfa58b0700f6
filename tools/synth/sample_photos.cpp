#include "tools/synth/sample_photos.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace patternd::synth {
namespace {

constexpr const char* kFolder = "/usr/share/doc/opencv-doc/examples/data/";
constexpr const char* kNames[] = {"graf1.png",        "fruits.jpg",     "baboon.jpg",  "home.jpg",
                                  "starry_night.jpg", "aloeL.jpg",      "leuvenA.jpg", "board.jpg",
                                  "butterfly.jpg",    "basketball1.png"};
constexpr int kTexturePx = 640;
constexpr int kCoarsestPx = 16;
constexpr std::uint64_t kTextureCount = 4;

}  // namespace

std::vector<std::string> sample_photo_paths() {
  std::vector<std::string> paths;
  for (const char* name : kNames) {
    const std::string path = std::string(kFolder) + name;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) paths.push_back(path);
  }
  return paths;
}

Result<std::vector<Photo>> load_photos(const std::vector<std::string>& paths) {
  std::vector<Photo> photos;
  for (const std::string& path : paths) {
    auto photo = load_photo(path);
    if (!photo) return tl::make_unexpected(photo.error());
    photos.push_back(std::move(*photo));
  }
  return photos;
}

Result<std::vector<Photo>> made_textures(std::uint64_t seed) {
  std::vector<Photo> photos;
  for (std::uint64_t i = 0; i < kTextureCount; ++i) {
    const auto texture = value_noise(kTexturePx, kTexturePx, kCoarsestPx, seed + i);
    if (!texture) return tl::make_unexpected(texture.error());
    auto photo = make_photo(texture->view());
    if (!photo) return tl::make_unexpected(photo.error());
    photos.push_back(std::move(*photo));
  }
  return photos;
}

}  // namespace patternd::synth
