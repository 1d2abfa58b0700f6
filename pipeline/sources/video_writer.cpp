#include "pipeline/sources/video_writer.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>
#include <mutex>
#include <optional>
#include <utility>

#include "pipeline/sources/gstreamer_support.h"

namespace patternd {
namespace {

constexpr std::size_t kFramesAhead = 4;
constexpr auto kLongestWait = std::chrono::seconds(30);

}  // namespace

struct VideoWriter::State {
  std::string path;
  GstVideoInfo info;
  GstElementPtr pipeline;
  GstElementPtr source;
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::optional<Error> fault;
  bool ended = false;

  ~State() {
    if (pipeline) gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  }

  static GstBusSyncReply on_message(GstBus*, GstMessage* message, gpointer data) {
    State& state = *static_cast<State*>(data);
    const GstMessageType type = GST_MESSAGE_TYPE(message);
    if (type == GST_MESSAGE_ERROR || type == GST_MESSAGE_EOS) {
      const std::lock_guard<std::mutex> lock(state.mutex);
      if (type == GST_MESSAGE_EOS)
        state.ended = true;
      else if (!state.fault)
        state.fault = Error{ErrorCode::kIo, state.path + ": " + bus_error_text(message)};
      state.changed.notify_all();
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
  }
  static void on_need_data(GstAppSrc*, guint, gpointer data) {
    State& state = *static_cast<State*>(data);
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.changed.notify_all();
  }

  [[nodiscard]] Result<void> open(const ImageView& first);
  [[nodiscard]] Result<void> wait_for_room();
};

// Builds the pipeline and runs it; it then waits for frames.
Result<void> VideoWriter::State::open(const ImageView& first) {
  if (auto ready = initialise_gstreamer(); !ready) return ready;
  GError* error = nullptr;
  pipeline.reset(gst_parse_launch_full(
      "appsrc name=source format=time ! avenc_ffv1 ! matroskamux ! filesink name=sink", nullptr,
      GST_PARSE_FLAG_FATAL_ERRORS, &error));
  if (error != nullptr || !pipeline) {
    const std::string text = error != nullptr ? error->message : "unknown reason";
    g_clear_error(&error);
    return fail(ErrorCode::kUnsupported,
                path + ": no lossless video can be written: " + text +
                    "; gstreamer1.0-libav has the encoder, and pictures need none");
  }
  gst_video_info_set_format(
      &info,
      first.format == PixelFormat::kGray16 ? GST_VIDEO_FORMAT_GRAY16_LE : GST_VIDEO_FORMAT_GRAY8,
      static_cast<guint>(first.width), static_cast<guint>(first.height));
  source.reset(gst_bin_get_by_name(GST_BIN(pipeline.get()), "source"));
  const GstElementPtr sink(gst_bin_get_by_name(GST_BIN(pipeline.get()), "sink"));
  g_object_set(sink.get(), "location", path.c_str(), nullptr);
  GstCaps* caps = gst_video_info_to_caps(&info);
  gst_app_src_set_caps(GST_APP_SRC(source.get()), caps);
  gst_caps_unref(caps);
  GstAppSrcCallbacks callbacks{};
  callbacks.need_data = on_need_data;
  gst_app_src_set_callbacks(GST_APP_SRC(source.get()), &callbacks, this, nullptr);
  GstBus* bus = gst_element_get_bus(pipeline.get());
  gst_bus_set_sync_handler(bus, on_message, this, nullptr);
  gst_object_unref(bus);
  const auto outcome = gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const std::lock_guard<std::mutex> lock(mutex);
  if (fault) return tl::make_unexpected(*fault);
  if (outcome == GST_STATE_CHANGE_FAILURE)
    return fail(ErrorCode::kIo, path + ": GStreamer cannot write there");
  return {};
}

// Waits until the encoder is no more than a few frames behind.
Result<void> VideoWriter::State::wait_for_room() {
  const guint64 most = GST_VIDEO_INFO_SIZE(&info) * kFramesAhead;
  const auto has_room = [&] {
    return fault || gst_app_src_get_current_level_bytes(GST_APP_SRC(source.get())) < most;
  };
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  std::unique_lock<std::mutex> lock(mutex);
  // It tells when it has nothing left; that there is room again shows only by looking.
  while (!has_room() && std::chrono::steady_clock::now() < deadline)
    changed.wait_for(lock, std::chrono::milliseconds(2));
  if (fault) return tl::make_unexpected(*fault);
  if (!has_room())
    return fail(ErrorCode::kTimeout, path + ": the encoder takes no frames any more");
  return {};
}

Result<std::unique_ptr<VideoWriter>> VideoWriter::create(const std::string& path,
                                                         const ImageView& first) {
  auto state = std::make_unique<State>();
  state->path = path;
  if (auto opened = state->open(first); !opened) return tl::make_unexpected(opened.error());
  return std::unique_ptr<VideoWriter>(new VideoWriter(std::move(state)));
}

VideoWriter::VideoWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
VideoWriter::~VideoWriter() = default;

Result<void> VideoWriter::write(const ImageView& luma, std::int64_t since_first_ns) {
  if (auto room = state_->wait_for_room(); !room) return room;
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&state_->info), nullptr);
  GstVideoFrame frame;
  if (buffer == nullptr || !gst_video_frame_map(&frame, &state_->info, buffer, GST_MAP_WRITE)) {
    if (buffer != nullptr) gst_buffer_unref(buffer);
    return fail(ErrorCode::kExhausted, state_->path + ": no memory for a frame");
  }
  auto* to = static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
  const auto to_stride = static_cast<std::size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0));
  const std::size_t row = static_cast<std::size_t>(luma.width) * bytes_per_pixel(luma.format);
  for (int y = 0; y < luma.height; ++y)
    std::memcpy(to + static_cast<std::size_t>(y) * to_stride, luma.row_bytes(y), row);
  gst_video_frame_unmap(&frame);
  GST_BUFFER_PTS(buffer) = static_cast<GstClockTime>(since_first_ns);
  if (gst_app_src_push_buffer(GST_APP_SRC(state_->source.get()), buffer) != GST_FLOW_OK) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->fault) return tl::make_unexpected(*state_->fault);
    return fail(ErrorCode::kIo, state_->path + ": the encoder takes no frames any more");
  }
  return {};
}

Result<void> VideoWriter::finish() {
  gst_app_src_end_of_stream(GST_APP_SRC(state_->source.get()));
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait_for(lock, kLongestWait, [this] { return state_->ended || state_->fault; });
  if (state_->fault) return tl::make_unexpected(*state_->fault);
  if (!state_->ended)
    return fail(ErrorCode::kTimeout, state_->path + ": the encoder does not come to an end");
  return {};
}

}  // namespace patternd
