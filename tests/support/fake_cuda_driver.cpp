// A libcuda.so.1 for tests: device memory is the host's, kernels do nothing or are emulated on the
// CPU, every call is counted, and the nth call of any function can be made to fail. Steered through
// functions of its own.
#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda/driver_api.h"
#include "tests/support/fake_cuda_kernels.h"

using namespace patternd::cuda;
using namespace patternd::cuda::fake;

namespace {

int calls = 0;
int failing_call = 0;  // counting from 1; 0: none
Status failure = 999;
int multiprocessors = 2;
bool on_all_later = false;
int queries_until_idle = 0;  // of a stream
int waits_asleep = 0;        // for events that are made to sleep for

Status count() {
  ++calls;
  if (failing_call == 0) return kSuccess;
  return calls == failing_call || (on_all_later && calls > failing_call) ? failure : kSuccess;
}

template <class Handle>
Handle some_handle(std::uintptr_t number = 0) {
  return reinterpret_cast<Handle>(64 + number);
}

EventHandle event_to_sleep_for() { return some_handle<EventHandle>(64); }

// By their numbers, from 1.
std::uintptr_t contexts_made = 0;
std::uintptr_t contexts_lost = 0;  // up to this one
constexpr Status kIllegalAddress = 700;
ContextHandle current_context = nullptr;

// What has been allocated and not freed: a context takes its own along when it ends.
struct Allocation {
  std::size_t bytes;
  ContextHandle context;
};
constexpr std::size_t kMemoryBytes = std::size_t{1} << 30;
std::map<void*, Allocation> allocations;
std::size_t bytes_sent = 0;  // from the host to the device

std::size_t bytes_held() {
  std::size_t bytes = 0;
  for (const auto& [memory, allocation] : allocations) bytes += allocation.bytes;
  return bytes;
}

void release(void* memory) {
  allocations.erase(memory);
  std::free(memory);
}

template <class Pointer>
Status allocate(Pointer* pointer, std::size_t bytes) {
  if (const Status status = count(); status != kSuccess) return status;
  if (bytes > kMemoryBytes - bytes_held()) return kOutOfMemory;
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == nullptr) return kOutOfMemory;
  allocations[memory] = {bytes, current_context};
  // Never read before written: a fixed pattern.
  std::memset(memory, 0, bytes);
  *pointer = reinterpret_cast<Pointer>(memory);
  return kSuccess;
}

int attribute_value(Attribute attribute) {
  switch (attribute) {
    case Attribute::kComputeCapabilityMajor:
      return 9;
    case Attribute::kWarpSize:
      return 32;
    case Attribute::kMultiprocessorCount:
      return multiprocessors;
    case Attribute::kTextureAlignment:
      return 512;
    case Attribute::kTexturePitchAlignment:
      return 32;
    case Attribute::kMaxTexture2dLinearWidth:
    case Attribute::kMaxTexture2dLinearHeight:
      return 65000;
    case Attribute::kMaxTexture2dLinearPitch:
      return 1048544;
    case Attribute::kCanMapHostMemory:
    case Attribute::kManagedMemory:
      return 1;
    case Attribute::kMaxThreadsPerBlock:
      return 1024;
    case Attribute::kMaxSharedMemoryPerBlock:
      return 49152;
    default:
      return 0;
  }
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_reset(int fail_at, Status status, bool all_later) {
  calls = 0;
  failing_call = fail_at;
  failure = status;
  on_all_later = all_later;
}
FAKE int fake_calls() { return calls; }
FAKE std::size_t fake_bytes_held() { return bytes_held(); }
FAKE std::size_t fake_bytes_sent() { return bytes_sent; }
// Streams are at work for so many queries, or until somebody waits for an event.
FAKE void fake_keep_busy(int queries) { queries_until_idle = queries; }
FAKE int fake_waits_asleep() { return waits_asleep; }
FAKE void fake_set_multiprocessors(int count) { multiprocessors = count; }
// All contexts that there are cannot be used any more; what asks for them is told so.
FAKE void fake_lose_contexts() { contexts_lost = contexts_made; }
FAKE int fake_contexts() { return static_cast<int>(contexts_made); }

FAKE Status cuInit(unsigned) { return count(); }
FAKE Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return count();
}
FAKE Status cuGetErrorName(Status, const char** name) {
  *name = "CUDA_ERROR_MADE_BY_THE_TEST";
  return kSuccess;
}
FAKE Status cuDeviceGetCount(int* number) {
  *number = 1;
  return count();
}
FAKE Status cuDeviceGet(DeviceHandle* device, int ordinal) {
  *device = ordinal;
  return count();
}
FAKE Status cuDeviceGetName(char* name, int length, DeviceHandle) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return count();
}
FAKE Status cuDeviceGetAttribute(int* value, Attribute attribute, DeviceHandle) {
  *value = attribute_value(attribute);
  return count();
}
FAKE Status cuDeviceTotalMem_v2(std::size_t* bytes, DeviceHandle) {
  *bytes = kMemoryBytes;
  return count();
}
FAKE Status cuCtxCreate_v2(ContextHandle* context, unsigned, DeviceHandle) {
  const Status status = count();
  if (status == kSuccess) *context = current_context = some_handle<ContextHandle>(++contexts_made);
  return status;
}
FAKE Status cuCtxDestroy_v2(ContextHandle context) {
  for (auto it = allocations.begin(); it != allocations.end();) {
    const auto [memory, allocation] = *it++;
    if (allocation.context == context) release(memory);
  }
  return count();
}
FAKE Status cuCtxSetCurrent(ContextHandle context) {
  if (const Status status = count(); status != kSuccess) return status;
  if (context <= some_handle<ContextHandle>(contexts_lost)) return kIllegalAddress;
  current_context = context;
  return kSuccess;
}
FAKE Status cuModuleLoadData(ModuleHandle* module, const void*) {
  const Status status = count();
  if (status == kSuccess) *module = some_handle<ModuleHandle>();
  return status;
}
FAKE Status cuModuleUnload(ModuleHandle) { return count(); }
FAKE Status cuModuleGetFunction(FunctionHandle* function, ModuleHandle, const char* name) {
  *function = function_of(name);
  return count();
}
FAKE Status cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  return allocate(pointer, bytes);
}
FAKE Status cuMemFree_v2(DevicePointer pointer) {
  release(reinterpret_cast<void*>(pointer));
  return count();
}
FAKE Status cuMemAllocManaged(DevicePointer* pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes);
}
FAKE Status cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes);
}
FAKE Status cuMemFreeHost(void* pointer) {
  release(pointer);
  return count();
}
FAKE Status cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host, unsigned) {
  *device = reinterpret_cast<DevicePointer>(host);
  return count();
}
FAKE Status cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes,
                                 StreamHandle) {
  const Status status = count();
  if (status != kSuccess) return status;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  bytes_sent += bytes;
  return status;
}
FAKE Status cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, StreamHandle) {
  const Status status = count();
  if (status == kSuccess) std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return status;
}
FAKE Status cuMemcpy2DAsync_v2(const Copy2d* copy, StreamHandle) {
  const Status status = count();
  // An array is a handle only.
  if (status != kSuccess || copy->dst_type == MemoryType::kArray) return status;
  const auto* from = copy->src_type == MemoryType::kHost
                         ? static_cast<const char*>(copy->src_host)
                         : reinterpret_cast<const char*>(copy->src_device);
  auto* to = copy->dst_type == MemoryType::kHost ? static_cast<char*>(copy->dst_host)
                                                 : reinterpret_cast<char*>(copy->dst_device);
  for (std::size_t y = 0; y < copy->height; ++y)
    std::memcpy(to + y * copy->dst_pitch, from + y * copy->src_pitch, copy->width_bytes);
  if (copy->src_type == MemoryType::kHost) bytes_sent += copy->width_bytes * copy->height;
  return kSuccess;
}
FAKE Status cuMemsetD8Async(DevicePointer to, unsigned char value, std::size_t bytes,
                            StreamHandle) {
  const Status status = count();
  if (status == kSuccess) std::memset(reinterpret_cast<void*>(to), value, bytes);
  return status;
}
FAKE Status cuStreamCreate(StreamHandle* stream, unsigned) {
  const Status status = count();
  if (status == kSuccess) *stream = some_handle<StreamHandle>();
  return status;
}
FAKE Status cuStreamDestroy_v2(StreamHandle) { return count(); }
FAKE Status cuStreamSynchronize(StreamHandle) { return count(); }
FAKE Status cuStreamQuery(StreamHandle) {
  if (queries_until_idle == 0) return count();
  --queries_until_idle;
  return kNotReady;
}
FAKE Status cuStreamWaitEvent(StreamHandle, EventHandle, unsigned) { return count(); }
FAKE Status cuStreamAttachMemAsync(StreamHandle, DevicePointer, std::size_t, unsigned) {
  return count();
}
FAKE Status cuEventCreate(EventHandle* event, unsigned flags) {
  const Status status = count();
  if (status == kSuccess)
    *event = (flags & kEventBlockingSync) != 0 ? event_to_sleep_for() : some_handle<EventHandle>();
  return status;
}
FAKE Status cuEventDestroy_v2(EventHandle) { return count(); }
FAKE Status cuEventRecord(EventHandle, StreamHandle) { return count(); }
FAKE Status cuEventSynchronize(EventHandle event) {
  if (event == event_to_sleep_for()) ++waits_asleep;
  queries_until_idle = 0;
  return count();
}
FAKE Status cuEventElapsedTime(float* ms, EventHandle, EventHandle) {
  *ms = 0.001F;
  return count();
}
FAKE Status cuLaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned,
                           unsigned block_x, unsigned block_y, unsigned, unsigned shared_bytes,
                           StreamHandle, void** parameters, void**) {
  const Status status = count();
  constexpr unsigned kMostDown = 65535;                            // as every GPU
  if (grid_x == 0 || grid_y == 0 || grid_y > kMostDown) return 1;  // CUDA_ERROR_INVALID_VALUE
  if (status == kSuccess)
    run(function, {grid_x, grid_y, block_x, block_y, shared_bytes}, parameters[0]);
  return status;
}
FAKE Status cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle function, void** parameters,
                             void** extra) {
  return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                        config->block_y, config->block_z, config->shared_bytes, config->stream,
                        parameters, extra);
}
FAKE Status cuTexObjectCreate(TextureHandle* texture, const ResourceDesc* resource,
                              const TextureDesc*, const void*) {
  *texture = texture_of(resource->resource.pitch2d);
  return count();
}
FAKE Status cuArrayCreate_v2(ArrayHandle* array, const ArrayDesc*) {
  const Status status = count();
  if (status == kSuccess) *array = some_handle<ArrayHandle>();
  return status;
}
FAKE Status cuArrayDestroy(ArrayHandle) { return count(); }
#ifndef PATTERND_FAKE_LACKS_A_FUNCTION
FAKE Status cuTexObjectDestroy(TextureHandle texture) {
  end_texture(texture);
  return count();
}
#endif
