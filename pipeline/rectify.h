// Rectification: one pass, backward mapped, bilinear (T1–T4). The map from output to input pixels
// is computed once in double precision from the camera model and kept in a form that the inner loop
// can stream through.
#pragma once

#include <cstdint>
#include <memory>

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"

namespace patternd {

class Rectifier {
 public:
  // Formats: kGray8, kGray16, kGrayF32. The model must have passed check_camera_model.
  [[nodiscard]] static Result<Rectifier> create(const CameraModel& model, PixelFormat format);
  Rectifier(Rectifier&&) noexcept;
  Rectifier& operator=(Rectifier&&) noexcept;
  ~Rectifier();

  // `input`: model.image_width × image_height; `output`: model.output_width() × output_height(),
  // both of the format given to create. Each output pixel whose source lies in [0, w−1] × [0, h−1]
  // is the bilinear value, rounded half up for integers; the others are the border. Allocates
  // nothing. `pool` may be null.
  void process(const ImageView& input, MutableImageView output, ThreadPool* pool) const;

  // The output pixels that have a source: 255, the others 0; kGray8.
  [[nodiscard]] ImageView valid_mask() const;
  // True where every output pixel has a source.
  [[nodiscard]] bool all_valid() const;

 private:
  struct Map;
  explicit Rectifier(std::unique_ptr<Map> map);
  std::unique_ptr<Map> map_;
};

}  // namespace patternd
