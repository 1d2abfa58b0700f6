#include "cuda/stream.h"

#include <cstdlib>
#include <cstring>
#include <thread>

#include "pipeline/stage.h"

namespace patternd::cuda {

Result<Event> Event::create(const std::shared_ptr<const Device>& device) {
  return create(device, kEventDefault);
}

Result<Event> Event::create_to_sleep_for(const std::shared_ptr<const Device>& device) {
  return create(device, kEventBlockingSync | kEventDisableTiming);
}

Result<Event> Event::create(const std::shared_ptr<const Device>& device, unsigned flags) {
  EventHandle handle = nullptr;
  const Driver& api = device->driver();
  if (auto ok = api.check(api.event_create(&handle, flags), "cuEventCreate"); !ok)
    return tl::make_unexpected(ok.error());
  Event event;
  event.device_ = device;
  event.event_ = Owner<EventHandle>(device, handle, &Driver::event_destroy);
  return event;
}

Result<void> Event::wait() const {
  const Driver& api = device_->driver();
  return api.check(api.event_synchronize(event_.get()), "cuEventSynchronize");
}

Result<std::int64_t> Event::ns_since(const Event& start) const {
  float ms = 0;
  const Driver& api = device_->driver();
  if (auto ok = api.check(api.event_elapsed_time(&ms, start.event_.get(), event_.get()),
                          "cuEventElapsedTime");
      !ok)
    return tl::make_unexpected(ok.error());
  return static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
}

Result<Stream> Stream::create(const std::shared_ptr<const Device>& device) {
  StreamHandle handle = nullptr;
  const Driver& api = device->driver();
  if (auto ok = api.check(api.stream_create(&handle, kStreamNonBlocking), "cuStreamCreate"); !ok)
    return tl::make_unexpected(ok.error());
  Stream stream;
  stream.device_ = device;
  stream.stream_ = Owner<StreamHandle>(device, handle, &Driver::stream_destroy);
  const char* synchronous = std::getenv("PATTERND_CUDA_SYNC");
  stream.synchronous_ = synchronous != nullptr && std::strcmp(synchronous, "1") == 0;
  return stream;
}

namespace {

Status launch_one(const Driver& api, StreamHandle stream, const Kernel& kernel, const Shape& shape,
                  void** arguments) {
  return api.launch_kernel(kernel.function, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
                           shape.block_y, 1, shape.shared_bytes, stream, arguments, nullptr);
}

Status launch_one_early(const Driver& api, StreamHandle stream, const Kernel& kernel,
                        const Shape& shape, void** arguments) {
  LaunchAttribute early;
  early.value.allowed = 1;
  const LaunchConfig config = {shape.grid_x,
                               shape.grid_y,
                               shape.grid_z,
                               shape.block_x,
                               shape.block_y,
                               1,
                               shape.shared_bytes,
                               stream,
                               &early,
                               1};
  return api.launch_kernel_ex(&config, kernel.function, arguments, nullptr);
}

}  // namespace

Result<void> Stream::launch_raw(const Kernel& kernel, const Shape& shape, void** arguments,
                                bool early) const {
  const Driver& api = device_->driver();
  const auto launch = early ? launch_one_early : launch_one;
  if (auto ok = api.check(launch(api, stream_.get(), kernel, shape, arguments), kernel.name); !ok)
    return ok;
  if (!synchronous_ || capturing_) return {};
  return api.check(api.stream_synchronize(stream_.get()), kernel.name);
}

Result<void> Stream::record(const Event& event) const {
  const Driver& api = device_->driver();
  // In a recording, a plain record would only mark a dependency.
  if (capturing_) {
    return api.check(api.event_record_with_flags(event.get(), stream_.get(), kEventRecordExternal),
                     "cuEventRecordWithFlags");
  }
  return api.check(api.event_record(event.get(), stream_.get()), "cuEventRecord");
}

Result<void> Stream::wait_for(const Event& event) const {
  const Driver& api = device_->driver();
  return api.check(api.stream_wait_event(stream_.get(), event.get(), 0), "cuStreamWaitEvent");
}

Result<void> Stream::fill(DevicePointer to, unsigned char value, std::size_t bytes) const {
  const Driver& api = device_->driver();
  return api.check(api.memset_d8_async(to, value, bytes, stream_.get()), "cuMemsetD8Async");
}

bool Stream::is_idle() const { return device_->driver().stream_query(stream_.get()) != kNotReady; }

Result<void> Stream::wait() const {
  const Driver& api = device_->driver();
  return api.check(api.stream_synchronize(stream_.get()), "cuStreamSynchronize");
}

Result<void> Stream::wait(const Event& done, std::int64_t awake_ns) const {
  const Driver& api = device_->driver();
  const std::int64_t start_ns = monotonic_ns();
  for (;;) {
    const Status status = api.stream_query(stream_.get());
    if (status != kNotReady) return api.check(status, "cuStreamQuery");
    if (monotonic_ns() - start_ns < awake_ns) {
      std::this_thread::yield();
      continue;
    }
    if (auto ok = record(done); !ok) return ok;
    if (auto ok = done.wait(); !ok) return ok;
  }
}

Result<Stream> open_first_gpu() {
  auto driver = Driver::open();
  if (!driver) return tl::make_unexpected(driver.error());
  auto device = Device::open(*driver, 0, "auto");
  if (!device) return tl::make_unexpected(device.error());
  if (auto ok = (*device)->make_current(); !ok) return tl::make_unexpected(ok.error());
  return Stream::create(*device);
}

Result<void> Graph::begin(Stream& stream) {
  const Driver& api = stream.device_->driver();
  if (!api.has_graphs()) return fail(ErrorCode::kUnsupported, api.missing_graphs());
  if (auto ok = api.check(api.stream_begin_capture(stream.get(), kCaptureModeThreadLocal),
                          "cuStreamBeginCapture");
      !ok)
    return ok;
  stream.capturing_ = true;
  return {};
}

Result<Graph> Graph::end(Stream& stream, Result<void> enqueued) {
  const Driver& api = stream.device_->driver();
  stream.capturing_ = false;
  GraphHandle graph = nullptr;
  const auto ended = api.check(api.stream_end_capture(stream.get(), &graph), "cuStreamEndCapture");
  if (!enqueued) return tl::make_unexpected(enqueued.error());
  if (!ended) return tl::make_unexpected(ended.error());
  const Owner<GraphHandle> recorded(stream.device_, graph, &Driver::graph_destroy);
  GraphExecHandle exec = nullptr;
  if (auto ok = api.check(api.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate"); !ok)
    return tl::make_unexpected(ok.error());
  Graph result;
  result.exec_ = Owner<GraphExecHandle>(stream.device_, exec, &Driver::graph_exec_destroy);
  return result;
}

Result<void> Graph::replay(const Stream& stream) const {
  const Driver& api = stream.device()->driver();
  return api.check(api.graph_launch(exec_.get(), stream.get()), "cuGraphLaunch");
}

}  // namespace patternd::cuda
