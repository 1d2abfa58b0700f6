// Our declarations of the driver API against NVIDIA's header, where there is one.
#include <gtest/gtest.h>

#include "cuda/driver_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <type_traits>

namespace patternd::cuda {
namespace {

// Same bytes in the same places.
static_assert(sizeof(Copy2d) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(Copy2d, src_device) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(Copy2d, src_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(Copy2d, dst_type) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(Copy2d, dst_device) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(Copy2d, width_bytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(Copy2d, height) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(sizeof(ResourceDesc) == sizeof(CUDA_RESOURCE_DESC));
static_assert(offsetof(ResourceDesc, resource) == offsetof(CUDA_RESOURCE_DESC, res));
static_assert(offsetof(ResourceDesc, flags) == offsetof(CUDA_RESOURCE_DESC, flags));
static_assert(offsetof(ResourceDesc, resource.pitch2d.format) ==
              offsetof(CUDA_RESOURCE_DESC, res.pitch2D.format));
static_assert(offsetof(ResourceDesc, resource.pitch2d.width) ==
              offsetof(CUDA_RESOURCE_DESC, res.pitch2D.width));
static_assert(offsetof(ResourceDesc, resource.pitch2d.pitch_bytes) ==
              offsetof(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes));
static_assert(offsetof(ResourceDesc, resource.array) == offsetof(CUDA_RESOURCE_DESC, res.array));
static_assert(sizeof(ArrayDesc) == sizeof(CUDA_ARRAY_DESCRIPTOR));
static_assert(offsetof(ArrayDesc, format) == offsetof(CUDA_ARRAY_DESCRIPTOR, Format));
static_assert(offsetof(ArrayDesc, channels) == offsetof(CUDA_ARRAY_DESCRIPTOR, NumChannels));
static_assert(sizeof(TextureDesc) == sizeof(CUDA_TEXTURE_DESC));
static_assert(offsetof(TextureDesc, filter_mode) == offsetof(CUDA_TEXTURE_DESC, filterMode));
static_assert(offsetof(TextureDesc, flags) == offsetof(CUDA_TEXTURE_DESC, flags));
static_assert(offsetof(TextureDesc, border_color) == offsetof(CUDA_TEXTURE_DESC, borderColor));
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(TextureHandle) == sizeof(CUtexObject));
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));

template <class Ours, class Theirs>
bool same(Ours ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

TEST(CudaDriverApi, HasTheNumbersOfTheDriversHeader) {
  EXPECT_TRUE(same(kSuccess, CUDA_SUCCESS));
  EXPECT_TRUE(same(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_TRUE(same(kNoDevice, CUDA_ERROR_NO_DEVICE));
  EXPECT_TRUE(same(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU));
  EXPECT_TRUE(same(kNotReady, CUDA_ERROR_NOT_READY));
  EXPECT_TRUE(same(kContextMapHost, CU_CTX_MAP_HOST));
  EXPECT_TRUE(same(kContextBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC));
  EXPECT_TRUE(same(kContextSpin, CU_CTX_SCHED_SPIN));
  EXPECT_TRUE(same(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE));
  EXPECT_TRUE(same(kHostAllocMapped, CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_TRUE(same(kManagedAttachGlobal, CU_MEM_ATTACH_GLOBAL));
  EXPECT_TRUE(same(kManagedAttachHost, CU_MEM_ATTACH_HOST));
  EXPECT_TRUE(same(kManagedAttachSingle, CU_MEM_ATTACH_SINGLE));
  EXPECT_TRUE(same(kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
  EXPECT_TRUE(same(kEventDefault, CU_EVENT_DEFAULT));
  EXPECT_TRUE(same(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC));
  EXPECT_TRUE(same(kEventDisableTiming, CU_EVENT_DISABLE_TIMING));
  EXPECT_TRUE(same(kEventRecordExternal, CU_EVENT_RECORD_EXTERNAL));
  EXPECT_TRUE(same(kCaptureModeThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_TRUE(same(MemoryType::kHost, CU_MEMORYTYPE_HOST));
  EXPECT_TRUE(same(MemoryType::kDevice, CU_MEMORYTYPE_DEVICE));
  EXPECT_TRUE(same(MemoryType::kArray, CU_MEMORYTYPE_ARRAY));
  EXPECT_TRUE(same(ResourceType::kArray, CU_RESOURCE_TYPE_ARRAY));
  EXPECT_TRUE(same(ResourceType::kPitch2d, CU_RESOURCE_TYPE_PITCH2D));
  EXPECT_TRUE(same(ArrayFormat::kUint8, CU_AD_FORMAT_UNSIGNED_INT8));
  EXPECT_TRUE(same(ArrayFormat::kUint16, CU_AD_FORMAT_UNSIGNED_INT16));
  EXPECT_TRUE(same(ArrayFormat::kFloat, CU_AD_FORMAT_FLOAT));
  EXPECT_TRUE(same(AddressMode::kClamp, CU_TR_ADDRESS_MODE_CLAMP));
  EXPECT_TRUE(same(FilterMode::kPoint, CU_TR_FILTER_MODE_POINT));
  EXPECT_TRUE(same(FilterMode::kLinear, CU_TR_FILTER_MODE_LINEAR));
  EXPECT_TRUE(same(kTextureReadAsInteger, CU_TRSF_READ_AS_INTEGER));
  EXPECT_TRUE(same(LaunchAttributeId::kProgrammaticStreamSerialization,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
}

TEST(CudaDriverApi, AsksForTheAttributesThatItNames) {
  const std::pair<Attribute, CUdevice_attribute> pairs[] = {
      {Attribute::kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {Attribute::kMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
      {Attribute::kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {Attribute::kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
      {Attribute::kTextureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
      {Attribute::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {Attribute::kKernelExecTimeout, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT},
      {Attribute::kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
      {Attribute::kCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
      {Attribute::kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {Attribute::kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {Attribute::kUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
      {Attribute::kTexturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
      {Attribute::kMaxTexture2dLinearWidth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH},
      {Attribute::kMaxTexture2dLinearHeight, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT},
      {Attribute::kMaxTexture2dLinearPitch, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH},
      {Attribute::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {Attribute::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {Attribute::kMaxSharedMemoryPerMultiprocessor,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {Attribute::kManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
      {Attribute::kConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
  };
  for (const auto& [ours, theirs] : pairs) EXPECT_TRUE(same(ours, theirs)) << theirs;
}

}  // namespace
}  // namespace patternd::cuda

#else

TEST(CudaDriverApi, HasTheNumbersOfTheDriversHeader) {
  GTEST_SKIP() << "cuda.h is not on this machine";
}

#endif
