#include "pipeline/sources/gstreamer_stream_end.h"

#include <cstring>

namespace patternd {
namespace {

using Latest = std::shared_ptr<std::atomic<std::int64_t>>;

void free_latest(gpointer data) { delete static_cast<Latest*>(data); }
void free_latest_of_closure(gpointer data, GClosure*) { free_latest(data); }
gpointer copy_of(gpointer data) { return new Latest(*static_cast<Latest*>(data)); }

// A buffer leaves a demuxer. Called by the thread that brings it.
GstPadProbeReturn on_buffer(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
  GstEvent* event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
  if (event == nullptr) return GST_PAD_PROBE_OK;
  const GstSegment* segment = nullptr;
  gst_event_parse_segment(event, &segment);
  const std::int64_t end_ns = stream_end_ns(GST_PAD_PROBE_INFO_BUFFER(info), segment);
  gst_event_unref(event);
  std::atomic<std::int64_t>& latest_ns = **static_cast<Latest*>(data);
  std::int64_t before_ns = latest_ns;
  while (end_ns > before_ns && !latest_ns.compare_exchange_weak(before_ns, end_ns)) {
  }
  return GST_PAD_PROBE_OK;
}

void on_pad(GstElement*, GstPad* pad, gpointer data) {
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_buffer, copy_of(data), free_latest);
}

void on_element(GstBin*, GstBin*, GstElement* element, gpointer data) {
  const char* klass = gst_element_get_metadata(element, GST_ELEMENT_METADATA_KLASS);
  if (klass == nullptr || std::strstr(klass, "Demuxer") == nullptr) return;
  g_signal_connect_data(element, "pad-added", G_CALLBACK(on_pad), copy_of(data),
                        free_latest_of_closure, GConnectFlags{});
}

}  // namespace

void GstreamerStreamEnd::watch(GstElement* pipeline) {
  g_signal_connect_data(pipeline, "deep-element-added", G_CALLBACK(on_element),
                        new Latest(latest_ns_), free_latest_of_closure, GConnectFlags{});
}

std::int64_t stream_end_ns(GstBuffer* buffer, const GstSegment* segment) {
  if (buffer == nullptr || segment == nullptr || segment->format != GST_FORMAT_TIME ||
      !GST_BUFFER_PTS_IS_VALID(buffer)) {
    return 0;
  }
  const GstClockTime at =
      gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (!GST_CLOCK_TIME_IS_VALID(at)) return 0;
  const GstClockTime lasts = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0;
  return static_cast<std::int64_t>(at + lasts);
}

}  // namespace patternd
