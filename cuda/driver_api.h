// The part of NVIDIA's driver API that patternd calls, in declarations of our own: the numbers and
// layouts are the driver's binary interface, stable since CUDA 4 (2011), so nothing of CUDA's is
// needed to build. tests/cuda_driver_api_test.cpp compares all of it with cuda.h where there is
// one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace patternd::cuda {

// Handles. Device pointers are as wide as the host's (32 bits on armhf).
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecTag;
struct GraphNodeTag;
struct ArrayTag;
using DeviceHandle = int;
using ContextHandle = ContextTag*;
using ModuleHandle = ModuleTag*;
using FunctionHandle = FunctionTag*;
using StreamHandle = StreamTag*;
using EventHandle = EventTag*;
using GraphHandle = GraphTag*;
using GraphExecHandle = GraphExecTag*;
using GraphNodeHandle = GraphNodeTag*;
using ArrayHandle = ArrayTag*;
using DevicePointer = std::uintptr_t;
using TextureHandle = unsigned long long;

// CUresult. Only the codes that the code tells apart are named.
using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kNotReady = 600;

// CUdevice_attribute.
enum class Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kClockRateKhz = 13,
  kTextureAlignment = 14,
  kMultiprocessorCount = 16,
  kKernelExecTimeout = 17,
  kIntegrated = 18,
  kCanMapHostMemory = 19,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kUnifiedAddressing = 41,
  kTexturePitchAlignment = 51,
  kMaxTexture2dLinearWidth = 70,
  kMaxTexture2dLinearHeight = 71,
  kMaxTexture2dLinearPitch = 72,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kManagedMemory = 83,
  kConcurrentManagedAccess = 89,
};

inline constexpr unsigned kContextMapHost = 0x08;
inline constexpr unsigned kContextBlockingSync = 0x04;
inline constexpr unsigned kContextSpin = 0x01;
inline constexpr unsigned kHostAllocPortable = 0x01;
inline constexpr unsigned kHostAllocMapped = 0x02;
inline constexpr unsigned kManagedAttachGlobal = 0x1;
inline constexpr unsigned kManagedAttachHost = 0x2;
inline constexpr unsigned kManagedAttachSingle = 0x4;
inline constexpr unsigned kStreamNonBlocking = 0x1;
inline constexpr unsigned kEventDefault = 0x0;
inline constexpr unsigned kEventBlockingSync = 0x1;
inline constexpr unsigned kEventDisableTiming = 0x2;
inline constexpr unsigned kEventRecordExternal = 0x1;
inline constexpr int kCaptureModeThreadLocal = 1;

enum class MemoryType : int { kHost = 1, kDevice = 2, kArray = 3 };

// CUDA_MEMCPY2D.
struct Copy2d {
  std::size_t src_x_bytes = 0;
  std::size_t src_y = 0;
  MemoryType src_type = MemoryType::kDevice;
  const void* src_host = nullptr;
  DevicePointer src_device = 0;
  ArrayHandle src_array = nullptr;
  std::size_t src_pitch = 0;
  std::size_t dst_x_bytes = 0;
  std::size_t dst_y = 0;
  MemoryType dst_type = MemoryType::kDevice;
  void* dst_host = nullptr;
  DevicePointer dst_device = 0;
  ArrayHandle dst_array = nullptr;
  std::size_t dst_pitch = 0;
  std::size_t width_bytes = 0;
  std::size_t height = 0;
};

enum class ResourceType : int { kArray = 0, kPitch2d = 3 };
enum class ArrayFormat : int { kUint8 = 0x01, kUint16 = 0x02, kFloat = 0x20 };
enum class AddressMode : int { kWrap = 0, kClamp = 1 };
enum class FilterMode : int { kPoint = 0, kLinear = 1 };
inline constexpr unsigned kTextureReadAsInteger = 0x01;

// CUDA_ARRAY_DESCRIPTOR.
struct ArrayDesc {
  std::size_t width = 0;
  std::size_t height = 0;
  ArrayFormat format = ArrayFormat::kUint8;
  unsigned channels = 1;
};

// CUDA_RESOURCE_DESC with the members of its union that are used.
struct ResourceDesc {
  ResourceType type = ResourceType::kPitch2d;
  union {
    int reserved[32];  // first, so that all of it starts as zero
    ArrayHandle array;
    struct {
      DevicePointer pointer;
      ArrayFormat format;
      unsigned channels;
      std::size_t width;
      std::size_t height;
      std::size_t pitch_bytes;
    } pitch2d;
  } resource{};
  unsigned flags = 0;
};

// CUDA_TEXTURE_DESC.
struct TextureDesc {
  AddressMode address_mode[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  FilterMode filter_mode = FilterMode::kPoint;
  unsigned flags = 0;
  unsigned max_anisotropy = 0;
  FilterMode mipmap_filter_mode = FilterMode::kPoint;
  float mipmap_level_bias = 0;
  float min_mipmap_level_clamp = 0;
  float max_mipmap_level_clamp = 0;
  float border_color[4] = {};
  int reserved[12] = {};
};

// CUlaunchAttribute, CUlaunchConfig.
enum class LaunchAttributeId : int { kProgrammaticStreamSerialization = 6 };
struct LaunchAttribute {
  LaunchAttributeId id = LaunchAttributeId::kProgrammaticStreamSerialization;
  char unused[8 - sizeof(int)] = {};
  union {
    char reserved[64];
    int allowed;
  } value{};
};
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// Every function that is called, once: X(member, symbol, (arguments)). The first list is what
// Tegra K1's driver (CUDA 6.5) has, and must be there; each further list is an optional group, used
// only where all of it is there.
#define PATTERND_CUDA_REQUIRED(X)                                                                  \
  X(init, cuInit, (unsigned flags))                                                                \
  X(driver_get_version, cuDriverGetVersion, (int* version))                                        \
  X(get_error_name, cuGetErrorName, (Status status, const char** name))                            \
  X(device_get_count, cuDeviceGetCount, (int* count))                                              \
  X(device_get, cuDeviceGet, (DeviceHandle * device, int ordinal))                                 \
  X(device_get_name, cuDeviceGetName, (char* name, int length, DeviceHandle device))               \
  X(device_get_attribute, cuDeviceGetAttribute,                                                    \
    (int* value, Attribute attribute, DeviceHandle device))                                        \
  X(device_total_mem, cuDeviceTotalMem_v2, (std::size_t * bytes, DeviceHandle device))             \
  X(context_create, cuCtxCreate_v2,                                                                \
    (ContextHandle * context, unsigned flags, DeviceHandle device))                                \
  X(context_destroy, cuCtxDestroy_v2, (ContextHandle context))                                     \
  X(context_set_current, cuCtxSetCurrent, (ContextHandle context))                                 \
  X(module_load_data, cuModuleLoadData, (ModuleHandle * module, const void* image))                \
  X(module_unload, cuModuleUnload, (ModuleHandle module))                                          \
  X(module_get_function, cuModuleGetFunction,                                                      \
    (FunctionHandle * function, ModuleHandle module, const char* name))                            \
  X(mem_alloc, cuMemAlloc_v2, (DevicePointer * pointer, std::size_t bytes))                        \
  X(mem_free, cuMemFree_v2, (DevicePointer pointer))                                               \
  X(mem_alloc_managed, cuMemAllocManaged,                                                          \
    (DevicePointer * pointer, std::size_t bytes, unsigned flags))                                  \
  X(mem_host_alloc, cuMemHostAlloc, (void** pointer, std::size_t bytes, unsigned flags))           \
  X(mem_free_host, cuMemFreeHost, (void* pointer))                                                 \
  X(mem_host_get_device_pointer, cuMemHostGetDevicePointer_v2,                                     \
    (DevicePointer * device, void* host, unsigned flags))                                          \
  X(memcpy_h2d_async, cuMemcpyHtoDAsync_v2,                                                        \
    (DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream))                  \
  X(memcpy_d2h_async, cuMemcpyDtoHAsync_v2,                                                        \
    (void* to, DevicePointer from, std::size_t bytes, StreamHandle stream))                        \
  X(memcpy_2d_async, cuMemcpy2DAsync_v2, (const Copy2d* copy, StreamHandle stream))                \
  X(memset_d8_async, cuMemsetD8Async,                                                              \
    (DevicePointer to, unsigned char value, std::size_t count, StreamHandle stream))               \
  X(stream_create, cuStreamCreate, (StreamHandle * stream, unsigned flags))                        \
  X(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))                                     \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle stream))                                \
  X(stream_query, cuStreamQuery, (StreamHandle stream))                                            \
  X(stream_wait_event, cuStreamWaitEvent,                                                          \
    (StreamHandle stream, EventHandle event, unsigned flags))                                      \
  X(stream_attach_mem_async, cuStreamAttachMemAsync,                                               \
    (StreamHandle stream, DevicePointer pointer, std::size_t length, unsigned flags))              \
  X(event_create, cuEventCreate, (EventHandle * event, unsigned flags))                            \
  X(event_destroy, cuEventDestroy_v2, (EventHandle event))                                         \
  X(event_record, cuEventRecord, (EventHandle event, StreamHandle stream))                         \
  X(event_synchronize, cuEventSynchronize, (EventHandle event))                                    \
  X(event_elapsed_time, cuEventElapsedTime, (float* ms, EventHandle start, EventHandle end))       \
  X(launch_kernel, cuLaunchKernel,                                                                 \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,               \
     void** parameters, void** extra))                                                             \
  X(texture_create, cuTexObjectCreate,                                                             \
    (TextureHandle * texture, const ResourceDesc* resource, const TextureDesc* description,        \
     const void* view))                                                                            \
  X(texture_destroy, cuTexObjectDestroy, (TextureHandle texture))

// CUDA 11.4: a frame's launches recorded once and replayed.
#define PATTERND_CUDA_GRAPHS(X)                                                         \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))     \
  X(stream_end_capture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph)) \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                     \
    (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))              \
  X(graph_destroy, cuGraphDestroy, (GraphHandle graph))                                 \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle exec))                     \
  X(graph_launch, cuGraphLaunch, (GraphExecHandle exec, StreamHandle stream))           \
  X(event_record_with_flags, cuEventRecordWithFlags,                                    \
    (EventHandle event, StreamHandle stream, unsigned flags))

// CUDA 11.8, used from 12.3 on, whose graphs know it: a launch that starts while the one before
// ends.
#define PATTERND_CUDA_EARLY_LAUNCHES(X) \
  X(launch_kernel_ex, cuLaunchKernelEx, \
    (const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra))

// Textures that are filled by a copy: for the study alone.
#define PATTERND_CUDA_ARRAYS(X)                                                          \
  X(array_create, cuArrayCreate_v2, (ArrayHandle * array, const ArrayDesc* description)) \
  X(array_destroy, cuArrayDestroy, (ArrayHandle array))

}  // namespace patternd::cuda
