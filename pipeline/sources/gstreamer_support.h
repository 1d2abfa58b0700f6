// What everything that runs GStreamer pipelines needs.
#pragma once

#include <gst/gst.h>
#include <memory>
#include <string>

#include "pipeline/result.h"

namespace patternd {

struct GstUnref {
  template <typename Object>
  void operator()(Object* object) const {
    gst_object_unref(object);
  }
  void operator()(GstSample* sample) const { gst_sample_unref(sample); }
};
template <typename Object>
using GstObjectPtr = std::unique_ptr<Object, GstUnref>;
using GstElementPtr = GstObjectPtr<GstElement>;
using GstSamplePtr = std::unique_ptr<GstSample, GstUnref>;

// Makes GStreamer ready, once in the life of the process.
[[nodiscard]] Result<void> initialise_gstreamer();
// A string of GLib's, which is freed.
[[nodiscard]] std::string take_text(gchar* text);
// What an error message of the bus says: the element, the error, and the reason where it has one.
[[nodiscard]] std::string bus_error_text(GstMessage* message);

}  // namespace patternd
