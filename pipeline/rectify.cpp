#include "pipeline/rectify.h"

#include <utility>

#include "pipeline/rectify_job.h"
#include "pipeline/rectify_map.h"

namespace patternd {

struct Rectifier::Map {
  RectifyMap map;
};

Rectifier::Rectifier(std::unique_ptr<Map> map) : map_(std::move(map)) {}
Rectifier::Rectifier(Rectifier&&) noexcept = default;
Rectifier& Rectifier::operator=(Rectifier&&) noexcept = default;
Rectifier::~Rectifier() = default;

Result<Rectifier> Rectifier::create(const CameraModel& model, PixelFormat format) {
  if (format != PixelFormat::kGray8 && format != PixelFormat::kGray16 &&
      format != PixelFormat::kGrayF32) {
    return fail(ErrorCode::kInvalidArgument, std::string("rectification of ") + name_of(format) +
                                                 " pictures; gray8, gray16 or gray_f32");
  }
  auto map = make_rectify_map(model, format);
  if (!map) return tl::make_unexpected(map.error());
  return Rectifier(std::make_unique<Map>(Map{std::move(*map)}));
}

void Rectifier::process(const ImageView& input, MutableImageView output, ThreadPool* pool) const {
  const RectifyMap& map = map_->map;
  auto job = [&](std::size_t i) { rectify_job(map, i, input, output); };
  if (pool != nullptr) {
    pool->for_each(map.jobs.size(), job);
    return;
  }
  for (std::size_t i = 0; i < map.jobs.size(); ++i) job(i);
}

ImageView Rectifier::valid_mask() const { return std::as_const(map_->map.valid).view(); }

bool Rectifier::all_valid() const { return map_->map.all_valid; }

}  // namespace patternd
