// The peer of the match benchmark: pyramid NCC as a good engineer builds it from OpenCV's parts.
// matchTemplate on the coarsest level for each angle, with either the pattern or the picture
// turned; each candidate refined down the pyramid by warpAffine and matchTemplate at three angles,
// followed to the best; parabola fits at level 0. No mask of ours, no illumination model, no scale.
#pragma once

#include <utility>
#include <vector>

#include <opencv2/core.hpp>

namespace patternd::bench {

class OpencvPyramid {
 public:
  enum class Turned { kPattern, kPicture };  // which one is turned at the coarsest level

  struct Hit {
    double x = 0;  // of the pattern's centre
    double y = 0;
    double angle_deg = 0;  // OpenCV's sign: counter-clockwise on the screen
    double score = 0;
  };

  OpencvPyramid(Turned turned, int max_matches, double min_score);
  // The coarsest level keeps at most `coarsest_pixels` pattern pixels.
  void learn(const cv::Mat& pattern, int coarsest_pixels = 256);
  [[nodiscard]] std::vector<Hit> match(const cv::Mat& picture) const;

 private:
  using Peaks = std::vector<std::pair<cv::Point, double>>;

  void learn_turned_pattern(double angle_deg);
  [[nodiscard]] std::vector<Hit> search_turned_pattern(const cv::Mat& top, std::size_t angle) const;
  [[nodiscard]] std::vector<Hit> search_turned_picture(const cv::Mat& top, std::size_t angle) const;
  [[nodiscard]] Peaks best_peaks(cv::Mat& scores) const;
  [[nodiscard]] std::vector<Hit> without_overlaps(std::vector<Hit> hits, double distance,
                                                  std::size_t most) const;

  // Scores of one level around a pose: the picture turned upright, the pattern shifted over it.
  struct Look {
    cv::Mat scores;
    cv::Point best;
    double score = 0;
  };
  [[nodiscard]] Look look(const cv::Mat& level, std::size_t index, const Hit& at,
                          double angle_deg) const;
  [[nodiscard]] Hit to_level(const Hit& hit, std::size_t from, std::size_t to) const;
  // Returns false where the candidate falls under its level's threshold.
  [[nodiscard]] bool refine(const std::vector<cv::Mat>& pyramid, Hit& hit) const;
  [[nodiscard]] bool refine_at(const cv::Mat& level, std::size_t index, Hit& hit) const;

  Turned turned_;
  int max_matches_;
  double min_score_;
  std::vector<cv::Mat> levels_;
  std::vector<double> step_deg_;  // of each level
  std::vector<double> angles_deg_;
  std::vector<cv::Mat> turned_patterns_;
  std::vector<cv::Mat> turned_masks_;
};

}  // namespace patternd::bench
