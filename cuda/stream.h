// Work in order on a GPU: streams, events, kernel launches, and a frame's launches recorded as a
// graph. Everything here only enqueues, except where it says that it waits.
#pragma once

#include <memory>

#include "cuda/device.h"

namespace patternd::cuda {

// A point in a stream, with its time.
class Event {
 public:
  [[nodiscard]] static Result<Event> create(const std::shared_ptr<const Device>& device);
  // One that wait() sleeps for until the device's interrupt, rather than ask it all the time.
  [[nodiscard]] static Result<Event> create_to_sleep_for(
      const std::shared_ptr<const Device>& device);
  [[nodiscard]] EventHandle get() const { return event_.get(); }
  // Waits until the stream has passed it.
  [[nodiscard]] Result<void> wait() const;
  // Nanoseconds from `start` to this one; both must have passed.
  [[nodiscard]] Result<std::int64_t> ns_since(const Event& start) const;

 private:
  [[nodiscard]] static Result<Event> create(const std::shared_ptr<const Device>& device,
                                            unsigned flags);
  std::shared_ptr<const Device> device_;
  Owner<EventHandle> event_;
};

// Blocks and threads of a launch.
struct Shape {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1;
  unsigned shared_bytes = 0;  // beside what the kernel declares itself
};

class Stream {
 public:
  [[nodiscard]] static Result<Stream> create(const std::shared_ptr<const Device>& device);

  [[nodiscard]] StreamHandle get() const { return stream_.get(); }
  [[nodiscard]] const std::shared_ptr<const Device>& device() const { return device_; }

  // Enqueues a kernel with its one parameter struct. With PATTERND_CUDA_SYNC=1 in the environment
  // each launch is waited for, so that an error names its kernel.
  template <class Parameters>
  [[nodiscard]] Result<void> launch(const Kernel& kernel, const Shape& shape,
                                    Parameters parameters) const {
    void* arguments[] = {&parameters};
    return launch_raw(kernel, shape, arguments, false);
  }
  // The same for a kernel that begins with await_launch_before(): where GPU, image and driver can,
  // its blocks take their places while the launch before it ends, which saves the way from the one
  // to the other. Behind anything else than a launch it starts as any.
  template <class Parameters>
  [[nodiscard]] Result<void> launch_early(const Kernel& kernel, const Shape& shape,
                                          Parameters parameters) const {
    void* arguments[] = {&parameters};
    return launch_raw(kernel, shape, arguments, device_->launches_early());
  }
  [[nodiscard]] Result<void> record(const Event& event) const;
  // What is enqueued from now on waits for what another stream had enqueued up to `event`.
  [[nodiscard]] Result<void> wait_for(const Event& event) const;
  [[nodiscard]] Result<void> fill(DevicePointer to, unsigned char value, std::size_t bytes) const;
  // Everything enqueued so far is done, or has failed: wait() would not wait.
  [[nodiscard]] bool is_idle() const;
  // Waits until everything enqueued so far is done.
  [[nodiscard]] Result<void> wait() const;
  // The same, for work that may take long. Asks the device without a pause for `awake_ns`: what is
  // done by then is known a microsecond later, where an interrupt takes tens. Then sleeps, so that
  // a slow GPU does not cost a core. `done` is recorded for it, one made by create_to_sleep_for.
  [[nodiscard]] Result<void> wait(const Event& done, std::int64_t awake_ns) const;

 private:
  friend class Graph;
  [[nodiscard]] Result<void> launch_raw(const Kernel& kernel, const Shape& shape, void** arguments,
                                        bool early) const;
  std::shared_ptr<const Device> device_;
  Owner<StreamHandle> stream_;
  bool capturing_ = false;
  bool synchronous_ = false;
};

// A stream of the machine's first GPU, with the best image for it and current for this thread; the
// stream keeps the GPU open. For programs that do one thing; the service's GPU is in backend.h.
[[nodiscard]] Result<Stream> open_first_gpu();

// Launches recorded once and replayed as one.
//   auto graph = Graph::record(stream, [&] { return enqueue_frame(); });   // runs nothing
//   graph->replay(stream);
class Graph {
 public:
  // Calls `enqueue` with the stream recording. Needs driver.has_graphs().
  template <class Enqueue>
  [[nodiscard]] static Result<Graph> record(Stream& stream, Enqueue&& enqueue) {
    if (auto ok = begin(stream); !ok) return tl::make_unexpected(ok.error());
    Result<void> enqueued = enqueue();
    return end(stream, std::move(enqueued));
  }
  [[nodiscard]] Result<void> replay(const Stream& stream) const;

 private:
  [[nodiscard]] static Result<void> begin(Stream& stream);
  [[nodiscard]] static Result<Graph> end(Stream& stream, Result<void> enqueued);
  Owner<GraphExecHandle> exec_;
};

}  // namespace patternd::cuda
