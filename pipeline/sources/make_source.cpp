// The table of sources.
#include <memory>

#include "pipeline/source.h"
#include "pipeline/sources/replay_source.h"
#ifdef PATTERND_HAVE_GSTREAMER
#include "pipeline/sources/gstreamer_source.h"
#endif
#ifdef PATTERND_HAVE_V4L2
#include "pipeline/sources/v4l2_source.h"
#endif

namespace patternd {

const char* name_of(CapturePath path) {
  switch (path) {
    case CapturePath::kUserPointer:
      return "user_pointer";
    case CapturePath::kAllocator:
      return "allocator";
    case CapturePath::kOneCopy:
      return "one_copy";
    case CapturePath::kDecoded:
      return "decoded";
  }
  return "unknown";
}

const char* sentence_of(CapturePath path) {
  switch (path) {
    case CapturePath::kUserPointer:
      return "zero-copy (userptr)";
    case CapturePath::kAllocator:
      return "zero-copy (allocator)";
    case CapturePath::kOneCopy:
      return "one copy";
    case CapturePath::kDecoded:
      return "decoded in place";
  }
  return "unknown";
}

Result<std::unique_ptr<Source>> make_source(const CameraConfig& config) {
  switch (config.kind) {
    case CameraConfig::Kind::kReplay:
      return std::make_unique<ReplaySource>(config);
    case CameraConfig::Kind::kV4l2:
#ifdef PATTERND_HAVE_V4L2
      return std::make_unique<V4l2Source>(config);
#else
      return fail(ErrorCode::kUnsupported,
                  "camera.source: v4l2 is not in this build; it needs libv4l-dev when it is built");
#endif
    case CameraConfig::Kind::kGstreamer:
#ifdef PATTERND_HAVE_GSTREAMER
      return std::make_unique<GstreamerSource>(config);
#else
      return fail(ErrorCode::kUnsupported,
                  "camera.source: gstreamer is not in this build; it needs "
                  "libgstreamer-plugins-base1.0-dev when it is built");
#endif
  }
  return fail(ErrorCode::kInternal, "camera.source: unknown kind");
}

}  // namespace patternd
