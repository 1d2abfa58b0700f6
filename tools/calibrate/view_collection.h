// Views of the board from everything that was named: pictures, folders, recordings, a service.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/calibrate/calibration_run.h"
#include "tools/calibrate/frame_stream.h"
#include "tools/calibrate/view_selection.h"

namespace patternd::calibrate {

// Where a view comes from.
struct ViewSource {
  std::size_t report = 0;  // index into the outcome's pictures
  std::string stem;        // of its drawing's name
  Image picture;           // of a stream's frame that is to be drawn
};

// Fills the outcome's size of pictures, streams and pictures as it goes. Both live longer
// than the collection; the request has a board.
class ViewCollection {
 public:
  ViewCollection(const Request& request, Outcome& outcome) : request_(request), outcome_(outcome) {}

  // What one name brings. A picture without the board is no error, and is reported.
  [[nodiscard]] Result<void> add(const std::string& name);
  // Goes on without a view, whose report says why.
  void leave_out(std::size_t view, const std::string& why);

  [[nodiscard]] const std::vector<BoardView>& views() const { return views_; }
  [[nodiscard]] ViewSource& source(std::size_t view) { return sources_[view]; }
  // Why the board was not found, the last time.
  [[nodiscard]] const std::string& not_found() const { return not_found_; }

 private:
  [[nodiscard]] Result<void> add_picture(const std::string& path);
  [[nodiscard]] Result<void> add_stream(const std::string& name);
  [[nodiscard]] Result<void> watch(FrameStream& stream, StreamProgress& progress,
                                   std::vector<ViewSelection::Kept>& kept);
  [[nodiscard]] Result<void> look_at(const StreamFrame& frame, ViewSelection& selection,
                                     StreamProgress& progress);
  [[nodiscard]] bool is_enough(const StreamProgress& progress, double seconds) const;
  void add_view(BoardView view, std::string stem, Image picture);

  const Request& request_;
  Outcome& outcome_;
  std::vector<BoardView> views_;
  std::vector<ViewSource> sources_;  // one a view
  std::string not_found_;
};

}  // namespace patternd::calibrate
