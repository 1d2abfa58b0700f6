// How far a file's streams have come, those included that nobody decodes: its sound.
#pragma once

#include <atomic>
#include <cstdint>
#include <gst/gst.h>
#include <memory>

namespace patternd {

// Looks at what comes out of each demuxer of a pipeline; the latest end of all that did.
class GstreamerStreamEnd {
 public:
  // Before the pipeline runs. GStreamer's threads count from here on, for as long as the pipeline
  // is there.
  void watch(GstElement* pipeline);
  // Of the stream's time; 0 while nothing has come. From any thread.
  [[nodiscard]] std::int64_t latest_ns() const { return *latest_ns_; }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> latest_ns_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

// Where a buffer ends in its stream's time; 0 where it has no stamp.
[[nodiscard]] std::int64_t stream_end_ns(GstBuffer* buffer, const GstSegment* segment);

}  // namespace patternd
