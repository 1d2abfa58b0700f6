#include "tools/calibrate/drawings.h"

#include <filesystem>
#include <utility>

#include <opencv2/imgproc.hpp>

#include "calibration/plane_point.h"
#include "pipeline/image_file.h"
#include "pipeline/rectify.h"

namespace patternd::calibrate {
namespace {

constexpr double kArrowScale = 50;
constexpr int kShift = 4;  // OpenCV draws in 1/16 pixel

cv::Point fixed_point(Point2 p) {
  return {cvRound(p.x * (1 << kShift)), cvRound(p.y * (1 << kShift))};
}

Result<Image> in_colour(const ImageView& picture) {
  auto colour = Image::create(picture.width, picture.height, PixelFormat::kRgb8);
  if (!colour) return colour;
  for (int y = 0; y < picture.height; ++y) {
    std::uint8_t* out = colour->row<std::uint8_t>(y);
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t level =
          picture.format == PixelFormat::kGray8
              ? picture.row<std::uint8_t>(y)[x]
              : static_cast<std::uint8_t>(picture.row<std::uint16_t>(y)[x] >> 8);
      out[3 * x] = out[3 * x + 1] = out[3 * x + 2] = level;
    }
  }
  return colour;
}

cv::Mat wrapped(Image& image) {
  return {image.height(), image.width(), CV_8UC3, image.view().data, image.view().stride_bytes};
}

}  // namespace

std::string drawing_path(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / (name + ".png")).string();
}

Result<void> draw_residuals(const std::string& path, const ImageView& picture,
                            const BoardView& view, const Lens& lens, const BoardPose& pose) {
  auto colour = in_colour(picture);
  if (!colour) return tl::make_unexpected(colour.error());
  cv::Mat canvas = wrapped(*colour);
  for (std::size_t i = 0; i < view.image_px.size(); ++i) {
    const Point2 found = view.image_px[i];
    if (i > 0) {
      cv::line(canvas, fixed_point(view.image_px[i - 1]), fixed_point(found), {60, 140, 255}, 1,
               cv::LINE_AA, kShift);
    }
    cv::circle(canvas, fixed_point(found), 4 << kShift, {0, 255, 0}, 1, cv::LINE_AA, kShift);
    if (const auto expected = project(lens, pose, view.board_mm[i])) {
      const Point2 tip{found.x + (found.x - expected->x) * kArrowScale,
                       found.y + (found.y - expected->y) * kArrowScale};
      cv::arrowedLine(canvas, fixed_point(found), fixed_point(tip), {255, 40, 40}, 1, cv::LINE_AA,
                      kShift, 0.2);
    }
  }
  return write_image(path, std::as_const(*colour).view());
}

Result<void> draw_rectified(const std::string& path, const ImageView& picture,
                            const CameraModel& model, const BoardView& view) {
  auto rectifier = Rectifier::create(model, picture.format);
  if (!rectifier) return tl::make_unexpected(rectifier.error());
  auto flat = Image::create(model.output_width(), model.output_height(), picture.format);
  if (!flat) return tl::make_unexpected(flat.error());
  rectifier->process(picture, flat->view(), nullptr);
  auto colour = in_colour(std::as_const(*flat).view());
  if (!colour) return tl::make_unexpected(colour.error());
  cv::Mat canvas = wrapped(*colour);
  for (const Point2& mm : view.board_mm) {
    cv::drawMarker(canvas, {cvRound(mm_to_output(model, mm).x), cvRound(mm_to_output(model, mm).y)},
                   {0, 255, 0}, cv::MARKER_CROSS, 13, 1, cv::LINE_AA);
  }
  return write_image(path, std::as_const(*colour).view());
}

}  // namespace patternd::calibrate
