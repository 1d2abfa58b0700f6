#include "pipeline/sources/gstreamer_frames.h"

#include <array>
#include <chrono>
#include <cstring>
#include <gst/app/gstappsink.h>
#include <gst/video/video.h>
#include <utility>

#include "pipeline/sources/frame_reader.h"
#include "pipeline/stage.h"

namespace patternd {
namespace {

constexpr const char* kSinkName = "patternd_sink";
constexpr std::size_t kQueueLength = 2;

// GStreamer's formats that we take, the cheapest for us first. Of those with a luma plane only that
// plane is copied: nothing after it looks at colour.
struct Taken {
  GstVideoFormat theirs;
  RawFormat ours;
  bool has_luma_plane;
};
constexpr std::array<Taken, 8> kTaken = {{{GST_VIDEO_FORMAT_GRAY8, RawFormat::kGrey, true},
                                          {GST_VIDEO_FORMAT_GRAY16_LE, RawFormat::kY16, true},
                                          {GST_VIDEO_FORMAT_NV12, RawFormat::kGrey, true},
                                          {GST_VIDEO_FORMAT_I420, RawFormat::kGrey, true},
                                          {GST_VIDEO_FORMAT_YUY2, RawFormat::kYuyv, false},
                                          {GST_VIDEO_FORMAT_UYVY, RawFormat::kUyvy, false},
                                          {GST_VIDEO_FORMAT_RGB, RawFormat::kRgb3, false},
                                          {GST_VIDEO_FORMAT_BGR, RawFormat::kBgr3, false}}};

const Taken* find_taken(GstVideoFormat format) {
  for (const Taken& taken : kTaken)
    if (taken.theirs == format) return &taken;
  return nullptr;
}

// What the appsink takes, as caps: a structure for each format, ours to prefer first. (Of a list
// within one structure the source would choose by its own order.)
std::string caps_text(const GstreamerOptions& options, bool only_luma) {
  std::string size;
  if (options.width > 0) size += ", width=(int)" + std::to_string(options.width);
  if (options.height > 0) size += ", height=(int)" + std::to_string(options.height);
  std::string text;
  for (const Taken& taken : kTaken) {
    const std::string name = gst_video_format_to_string(taken.theirs);
    if (options.format.empty() ? only_luma && !taken.has_luma_plane : options.format != name)
      continue;
    if (!text.empty()) text += "; ";
    text.append("video/x-raw, format=(string)").append(name).append(size);
  }
  return text;
}

bool has_klass(GstElement* element, const char* word) {
  const char* klass = gst_element_get_metadata(element, GST_ELEMENT_METADATA_KLASS);
  return klass != nullptr && std::strstr(klass, word) != nullptr;
}

// Where the pads of an element lead, one step against the stream; null where nothing is linked yet.
GstElementPtr element_before(GstElement* element) {
  GstPad* pad = gst_element_get_static_pad(element, "sink");
  GstPad* peer = pad != nullptr ? gst_pad_get_peer(pad) : nullptr;
  GstElementPtr before(peer != nullptr ? gst_pad_get_parent_element(peer) : nullptr);
  if (peer != nullptr) gst_object_unref(peer);
  if (pad != nullptr) gst_object_unref(pad);
  return before;
}

// True where what feeds the sink can convert to luma. A converter left to itself hands colours on
// as it was given them, and we would have to make luma of all of it.
bool converts_to_luma(GstElement* sink) {
  GstElementPtr feeding = element_before(sink);
  while (feeding && has_klass(feeding.get(), "Generic")) feeding = element_before(feeding.get());
  if (!feeding || !has_klass(feeding.get(), "Converter")) return false;
  GstPad* pad = gst_element_get_static_pad(sink, "sink");
  GstCaps* luma = gst_caps_from_string("video/x-raw, format=(string)GRAY8");
  GstCaps* offered = gst_pad_peer_query_caps(pad, luma);
  const bool converts = !gst_caps_is_empty(offered);
  gst_caps_unref(offered);
  gst_caps_unref(luma);
  gst_object_unref(pad);
  return converts;
}

}  // namespace

struct GstreamerFrames::Shared {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::string name;
  bool live = false;
  std::deque<GstreamerFrame> frames;
  std::uint64_t dropped = 0;  // since the last frame taken
  std::optional<Error> end;   // error or end of stream
  bool stopping = false;
  bool interrupted = false;

  void end_with(ErrorCode code, std::string message) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!end) end = Error{code, std::move(message)};
    changed.notify_all();
  }

  // A streaming thread brings a frame.
  GstFlowReturn push(GstSamplePtr sample) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!live) changed.wait(lock, [this] { return stopping || frames.size() < kQueueLength; });
    if (stopping) return GST_FLOW_FLUSHING;
    while (frames.size() >= kQueueLength) {
      dropped += 1 + frames.front().dropped;
      frames.pop_front();
    }
    frames.push_back({std::move(sample), monotonic_ns(), std::exchange(dropped, 0)});
    changed.notify_all();
    return GST_FLOW_OK;
  }

  static void free_reference(gpointer data) { delete static_cast<std::shared_ptr<Shared>*>(data); }
  static Shared& from(gpointer data) { return **static_cast<std::shared_ptr<Shared>*>(data); }

  static GstFlowReturn on_sample(GstAppSink* sink, gpointer data) {
    GstSamplePtr sample(gst_app_sink_pull_sample(sink));
    return sample ? from(data).push(std::move(sample)) : GST_FLOW_EOS;
  }
  static void on_end(GstAppSink*, gpointer data) {
    Shared& shared = from(data);
    shared.end_with(ErrorCode::kEndOfStream, shared.name + ": the stream has ended");
  }
  // Called by whichever thread posts a message; nothing stays on the bus.
  static GstBusSyncReply on_message(GstBus*, GstMessage* message, gpointer data) {
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
      Shared& shared = from(data);
      shared.end_with(ErrorCode::kDevice, shared.name + ": " + bus_error_text(message));
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
  }
};

GstreamerFrames::GstreamerFrames(GstElementPtr pipeline, GstreamerOptions options)
    : options_(std::move(options)),
      pipeline_(std::move(pipeline)),
      shared_(std::make_shared<Shared>()) {
  shared_->name = options_.name;
  shared_->live = options_.live;
}

Result<std::unique_ptr<GstreamerFrames>> GstreamerFrames::create(const std::string& description,
                                                                 const GstreamerOptions& options) {
  if (auto ready = initialise_gstreamer(); !ready) return tl::make_unexpected(ready.error());
  const std::string whole = description + " ! appsink name=" + kSinkName;
  GError* error = nullptr;
  GstElementPtr pipeline(
      gst_parse_launch_full(whole.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error));
  if (error != nullptr || !pipeline || !GST_IS_PIPELINE(pipeline.get())) {
    const std::string text = error != nullptr ? error->message : "it is no pipeline";
    g_clear_error(&error);
    return fail(ErrorCode::kInvalidArgument,
                options.name + ": GStreamer does not take the pipeline: " + text +
                    "; it must be as for gst-launch-1.0, without a sink at its end");
  }
  return std::unique_ptr<GstreamerFrames>(new GstreamerFrames(std::move(pipeline), options));
}

Result<void> GstreamerFrames::start() {
  if (auto wired = wire(); !wired) return wired;
  if (auto playing = change_state(GST_STATE_PLAYING); !playing) return playing;
  return agree_on_format();
}

// Connects our sink, the bus and the clock.
Result<void> GstreamerFrames::wire() {
  GstElementPtr sink(gst_bin_get_by_name(GST_BIN(pipeline_.get()), kSinkName));
  if (!sink) return fail(ErrorCode::kInternal, options_.name + ": the appsink is gone");
  if (!options_.live) stream_end_.watch(pipeline_.get());
  auto* appsink = GST_APP_SINK(sink.get());
  const std::string caps_wanted = caps_text(options_, converts_to_luma(sink.get()));
  GstCaps* caps = gst_caps_from_string(caps_wanted.c_str());
  gst_app_sink_set_caps(appsink, caps);
  gst_caps_unref(caps);
  gst_app_sink_set_max_buffers(appsink, kQueueLength);
  gst_app_sink_set_drop(appsink, options_.live ? TRUE : FALSE);
  g_object_set(sink.get(), "sync", options_.live ? TRUE : FALSE, nullptr);
  gst_base_sink_set_last_sample_enabled(GST_BASE_SINK(sink.get()), FALSE);  // it holds a buffer
  if (options_.memory != nullptr) {
    const GstObjectPtr<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
    options_.memory->offer_at(*pad);
  }
  GstAppSinkCallbacks callbacks{};
  callbacks.new_sample = Shared::on_sample;
  callbacks.eos = Shared::on_end;
  gst_app_sink_set_callbacks(appsink, &callbacks, new std::shared_ptr<Shared>(shared_),
                             Shared::free_reference);
  GstBus* bus = gst_element_get_bus(pipeline_.get());
  gst_bus_set_sync_handler(bus, Shared::on_message, new std::shared_ptr<Shared>(shared_),
                           Shared::free_reference);
  gst_object_unref(bus);
  // The system's monotonic clock, whatever else the pipeline could offer: stamps are then instants
  // of CLOCK_MONOTONIC.
  GstClock* clock = gst_system_clock_obtain();
  gst_pipeline_use_clock(GST_PIPELINE(pipeline_.get()), clock);
  gst_object_unref(clock);
  return {};
}

// Changes the state on one of GStreamer's own threads, because an element may block in it.
Result<void> GstreamerFrames::change_state(GstState state) {
  struct Change {
    std::shared_ptr<Shared> shared;
    GstState state;
    std::optional<GstStateChangeReturn> outcome;
  };
  const auto change = std::make_shared<Change>(Change{shared_, state, std::nullopt});
  gst_element_call_async(
      pipeline_.get(),
      [](GstElement* element, gpointer data) {
        Change& c = **static_cast<std::shared_ptr<Change>*>(data);
        const GstStateChangeReturn outcome = gst_element_set_state(element, c.state);
        const std::lock_guard<std::mutex> lock(c.shared->mutex);
        c.outcome = outcome;
        c.shared->changed.notify_all();
      },
      new std::shared_ptr<Change>(change),
      [](gpointer data) { delete static_cast<std::shared_ptr<Change>*>(data); });
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const bool done = shared_->changed.wait_for(lock, std::chrono::milliseconds(options_.deadline_ms),
                                              [&] { return change->outcome.has_value(); });
  if (!done) {
    return fail(ErrorCode::kTimeout, options_.name + ": the pipeline did not reach " +
                                         gst_element_state_get_name(state) + " within " +
                                         std::to_string(options_.deadline_ms) + " ms");
  }
  if (*change->outcome != GST_STATE_CHANGE_FAILURE) return {};
  if (shared_->end) return tl::make_unexpected(*shared_->end);
  return fail(ErrorCode::kDevice, options_.name + ": the pipeline cannot be set to " +
                                      gst_element_state_get_name(state));
}

// Waits for the first frame and takes the format from it.
Result<void> GstreamerFrames::agree_on_format() {
  const std::int64_t begin_ns = monotonic_ns();
  auto first = next(options_.deadline_ms);
  if (!first) {
    if (first.error().code != ErrorCode::kTimeout) return tl::make_unexpected(first.error());
    return fail(ErrorCode::kTimeout, options_.name + ": the pipeline gave no frame in its first " +
                                         std::to_string((monotonic_ns() - begin_ns) / 1'000'000) +
                                         " ms");
  }
  GstVideoInfo info;
  GstCaps* caps = gst_sample_get_caps(first->sample.get());
  const Taken* taken = nullptr;
  if (caps != nullptr && gst_video_info_from_caps(&info, caps))
    taken = find_taken(GST_VIDEO_INFO_FORMAT(&info));
  if (taken == nullptr) {
    return fail(ErrorCode::kUnsupported,
                options_.name + ": frames come as " +
                    (caps != nullptr ? take_text(gst_caps_to_string(caps)) : "nothing known") +
                    "; put videoconvert at the pipeline's end");
  }
  format_.width = GST_VIDEO_INFO_WIDTH(&info);
  format_.height = GST_VIDEO_INFO_HEIGHT(&info);
  if (format_.width > kMaxImageSide || format_.height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument,
                options_.name + ": frames are " + std::to_string(format_.width) + "x" +
                    std::to_string(format_.height) + "; both must be 1 to " +
                    std::to_string(kMaxImageSide));
  }
  format_.format = taken->ours;
  if (GST_VIDEO_INFO_FPS_D(&info) > 0)
    format_.fps = static_cast<double>(GST_VIDEO_INFO_FPS_N(&info)) / GST_VIDEO_INFO_FPS_D(&info);
  negotiated_ = gst_video_format_to_string(taken->theirs);
  agree_on_stride(*first->sample);
  find_out_whether_live();
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->frames.push_front(std::move(*first));
  return {};
}

// An element that writes into our memory may have rows of its own there.
void GstreamerFrames::agree_on_stride(GstSample& first) {
  format_.stride_bytes = aligned_stride_bytes(format_.format, format_.width);
  const auto pixels = map(first);
  if (!pixels || pixels->stride_bytes() <= 0) return;
  const std::size_t ours =
      std::exchange(format_.stride_bytes, static_cast<std::size_t>(pixels->stride_bytes()));
  in_our_memory_ = lie_in_our_memory(*pixels);
  if (!in_our_memory_) format_.stride_bytes = ours;
}

// Frames of a live source are taken as they come; the sink waits for nothing.
void GstreamerFrames::find_out_whether_live() {
  GstElementPtr sink(gst_bin_get_by_name(GST_BIN(pipeline_.get()), kSinkName));
  gboolean live = FALSE;
  if (sink &&
      gst_base_sink_query_latency(GST_BASE_SINK(sink.get()), nullptr, &live, nullptr, nullptr))
    live_source_ = live == TRUE;
  if (live_source_) g_object_set(sink.get(), "sync", FALSE, nullptr);
}

GstreamerFrames::~GstreamerFrames() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stopping = true;
    shared_->frames.clear();
  }
  shared_->changed.notify_all();
  // Past the deadline the pipeline is left to the thread that waits in it.
  static_cast<void>(change_state(GST_STATE_NULL));
}

Result<GstreamerFrame> GstreamerFrames::next(int timeout_ms) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] {
    return !shared_->frames.empty() || shared_->end || shared_->interrupted;
  });
  if (!shared_->frames.empty()) {
    GstreamerFrame frame = std::move(shared_->frames.front());
    shared_->frames.pop_front();
    lock.unlock();
    shared_->changed.notify_all();
    return frame;
  }
  if (shared_->end) return tl::make_unexpected(*shared_->end);
  shared_->interrupted = false;
  return fail(ErrorCode::kTimeout,
              options_.name + ": no frame within " + std::to_string(timeout_ms) + " ms");
}

bool GstreamerFrames::has_next() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return !shared_->frames.empty();
}

GstreamerPixels::~GstreamerPixels() {
  if (frame_.buffer != nullptr) gst_video_frame_unmap(&frame_);
}

GstreamerPixels::GstreamerPixels(GstreamerPixels&& other) noexcept : frame_(other.frame_) {
  other.frame_.buffer = nullptr;
}

std::uint8_t* GstreamerPixels::data() const {
  return static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, 0));
}

std::ptrdiff_t GstreamerPixels::stride_bytes() const {
  return static_cast<std::ptrdiff_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, 0));
}

Result<GstreamerPixels> GstreamerFrames::map(GstSample& sample) const {
  GstVideoInfo info;
  GstCaps* caps = gst_sample_get_caps(&sample);
  if (caps == nullptr || !gst_video_info_from_caps(&info, caps) ||
      GST_VIDEO_INFO_WIDTH(&info) != format_.width ||
      GST_VIDEO_INFO_HEIGHT(&info) != format_.height ||
      negotiated_ != gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info))) {
    return fail(ErrorCode::kDevice, options_.name + ": the stream changed its format, now " +
                                        (caps != nullptr ? take_text(gst_caps_to_string(caps))
                                                         : std::string("unknown")));
  }
  GstVideoFrame frame;
  GstBuffer* buffer = gst_sample_get_buffer(&sample);
  if (buffer == nullptr || !gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ))
    return fail(ErrorCode::kDevice, options_.name + ": a frame cannot be mapped into memory");
  return GstreamerPixels(frame);
}

bool GstreamerFrames::lie_in_our_memory(const GstreamerPixels& pixels) const {
  return options_.memory != nullptr &&
         pixels.stride_bytes() == static_cast<std::ptrdiff_t>(format_.stride_bytes) &&
         options_.memory->holds(pixels.data(),
                                frame_bytes(format_.format, format_.height, format_.stride_bytes));
}

void GstreamerFrames::copy(const GstreamerPixels& from, std::uint8_t* to) const {
  const std::uint8_t* const data = from.data();
  const std::ptrdiff_t stride = from.stride_bytes();
  const std::size_t row = min_stride_bytes(format_.format, format_.width);
  for (int y = 0; y < format_.height; ++y)
    std::memcpy(to + static_cast<std::size_t>(y) * format_.stride_bytes, data + y * stride, row);
}

std::optional<std::int64_t> GstreamerFrames::duration_ns() const {
  gint64 duration = 0;
  const bool known =
      gst_element_query_duration(pipeline_.get(), GST_FORMAT_TIME, &duration) == TRUE &&
      duration > 0;
  return known ? std::optional<std::int64_t>(duration) : std::nullopt;
}

std::optional<std::int64_t> GstreamerFrames::capture_ns(GstSample& sample) const {
  GstBuffer* const buffer = gst_sample_get_buffer(&sample);
  const GstSegment* segment = gst_sample_get_segment(&sample);
  if (buffer == nullptr || segment == nullptr || !GST_BUFFER_PTS_IS_VALID(buffer))
    return std::nullopt;
  const GstClockTime running =
      gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  const GstClockTime base = gst_element_get_base_time(pipeline_.get());
  if (!GST_CLOCK_TIME_IS_VALID(running) || !GST_CLOCK_TIME_IS_VALID(base)) return std::nullopt;
  return static_cast<std::int64_t>(base + running);
}

void GstreamerFrames::interrupt() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->interrupted = true;
  }
  shared_->changed.notify_all();
}

}  // namespace patternd
