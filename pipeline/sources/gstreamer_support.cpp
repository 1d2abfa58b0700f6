#include "pipeline/sources/gstreamer_support.h"

#include "pipeline/utf8.h"

namespace patternd {
namespace {

// The last line of an error's details, which says why: ": streaming stopped, reason …"; not where
// it says only where in GStreamer's source the error arose.
std::string last_line(const std::string& details) {
  const std::string line = details.substr(details.rfind('\n') + 1);
  const bool place = line.empty() || line.find("): /Gst") != std::string::npos;
  std::string text = place ? "" : ": " + line;
  if (line.find("not-negotiated") != std::string::npos)
    text +=
        "; what the pipeline gives is not what is asked for: put videoconvert, or videoscale, "
        "at its end";
  return text;
}

}  // namespace

Result<void> initialise_gstreamer() {
  static const std::string fault = [] {
    GError* error = nullptr;
    if (gst_init_check(nullptr, nullptr, &error)) return std::string();
    std::string text = error != nullptr ? printable(error->message) : "unknown reason";
    g_clear_error(&error);
    return text;
  }();
  if (!fault.empty()) return fail(ErrorCode::kDevice, "GStreamer cannot be started: " + fault);
  return {};
}

std::string take_text(gchar* text) {
  std::string copy = text != nullptr ? text : "";
  g_free(text);
  return copy;
}

std::string bus_error_text(GstMessage* message) {
  GError* error = nullptr;
  gchar* details = nullptr;
  gst_message_parse_error(message, &error, &details);
  std::string text = take_text(gst_object_get_name(GST_MESSAGE_SRC(message))) + ": ";
  text += error != nullptr ? error->message : "unknown error";
  text += last_line(take_text(details));
  g_clear_error(&error);
  return text;
}

}  // namespace patternd
