#include "tools/calibrate/view_collection.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "pipeline/image_file.h"
#include "tools/calibrate/input_pictures.h"

namespace patternd::calibrate {
namespace {

// A running service has shown enough with so many views over this share of the picture.
constexpr std::size_t kEnoughViews = 25;
constexpr double kEnoughCoverage = 0.85;

}  // namespace

Result<void> ViewCollection::add(const std::string& name) {
  if (is_stream(name, request_.most_views)) return add_stream(name);
  const auto paths = picture_paths(name, request_.every);
  if (!paths) return tl::make_unexpected(paths.error());
  for (const std::string& path : *paths) {
    if (auto added = add_picture(path); !added) return added;
  }
  return {};
}

void ViewCollection::leave_out(std::size_t view, const std::string& why) {
  const auto at = static_cast<std::ptrdiff_t>(view);
  outcome_.pictures[sources_[view].report].left_out = why;
  views_.erase(views_.begin() + at);
  sources_.erase(sources_.begin() + at);
}

Result<void> ViewCollection::add_picture(const std::string& path) {
  auto picture = read_image(path);
  if (!picture) return tl::make_unexpected(picture.error());
  if (auto fits = agree_on_size(outcome_.model, path, std::as_const(*picture).view()); !fits)
    return fits;
  auto view = find_board(std::as_const(*picture).view(), *request_.board, path);
  if (view) {
    add_view(std::move(*view), std::filesystem::path(path).stem().string(), {});
    return {};
  }
  if (view.error().code != ErrorCode::kNotFound) return tl::make_unexpected(view.error());
  outcome_.pictures.push_back({path, 0, 0, 0, 0, {}});
  outcome_.pictures.back().left_out = view.error().message;
  not_found_ = view.error().message;
  return {};
}

void ViewCollection::add_view(BoardView view, std::string stem, Image picture) {
  outcome_.pictures.push_back({view.name, 0, 0, 0, 0, {}});
  sources_.push_back({outcome_.pictures.size() - 1, std::move(stem), std::move(picture)});
  views_.push_back(std::move(view));
}

Result<void> ViewCollection::add_stream(const std::string& name) {
  auto stream = open_stream(name);
  if (!stream) return tl::make_unexpected(stream.error());
  StreamProgress progress{name, 0, 0, 0, 0};
  std::vector<ViewSelection::Kept> chosen;
  if (auto watched = watch(**stream, progress, chosen); !watched) return watched;
  outcome_.streams.push_back(progress);
  for (ViewSelection::Kept& kept : chosen) {
    add_view(std::move(kept.view), "frame-" + std::to_string(kept.seq), std::move(kept.picture));
  }
  return {};
}

// Looks at frames until the stream ends or has shown enough; the most different views are kept.
Result<void> ViewCollection::watch(FrameStream& stream, StreamProgress& progress,
                                   std::vector<ViewSelection::Kept>& kept) {
  std::optional<ViewSelection> selection;
  SameAsBefore same;
  for (std::uint64_t number = 0;; ++number) {
    auto frame = stream.next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame || (stream.is_live() && is_enough(progress, (*frame)->seconds))) break;
    const ImageView& luma = (*frame)->luma;
    if (auto fits = agree_on_size(outcome_.model, progress.name, luma); !fits) return fits;
    if (number % static_cast<std::uint64_t>(request_.every) != 0) continue;
    if (!selection)
      selection.emplace(request_.most_views, luma.width, luma.height, !request_.drawings.empty());
    ++progress.frames;
    if (same(luma)) {
      selection->stood_still();
    } else if (auto looked = look_at(**frame, *selection, progress); !looked) {
      return looked;
    }
    if (request_.progress) request_.progress(progress);
  }
  if (selection) kept = selection->take();
  return {};
}

Result<void> ViewCollection::look_at(const StreamFrame& frame, ViewSelection& selection,
                                     StreamProgress& progress) {
  auto view = find_board(frame.luma, *request_.board,
                         progress.name + ", frame " + std::to_string(frame.seq), true);
  if (!view) {
    if (view.error().code != ErrorCode::kNotFound) return tl::make_unexpected(view.error());
    not_found_ = view.error().message;
    return {};
  }
  ++progress.with_board;
  selection.offer(std::move(*view), frame.seq, frame.luma);
  std::vector<BoardView> kept;
  for (const ViewSelection::Kept& each : selection.kept()) kept.push_back(each.view);
  progress.taken = kept.size();
  progress.coverage = coverage(kept, frame.luma.width, frame.luma.height);
  return {};
}

bool ViewCollection::is_enough(const StreamProgress& progress, double seconds) const {
  return seconds > request_.most_seconds ||
         (progress.taken >= kEnoughViews && progress.coverage >= kEnoughCoverage);
}

}  // namespace patternd::calibrate
