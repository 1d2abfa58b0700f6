#include "pipeline/sources/gstreamer_memory.h"

#include <algorithm>
#include <gst/video/gstvideometa.h>
#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>
#include <utility>

#include "pipeline/sources/gstreamer_support.h"

namespace patternd {
namespace {

// Frames on their way to us: one written, one in the sink, two that wait.
constexpr std::size_t kOnTheWay = 4;
// What elements keep without saying so: the frames that a decoder goes on to read.
constexpr std::size_t kSpare = 4;
constexpr std::size_t kMostLeases = 64;
constexpr unsigned kRowAlignment = 64 - 1;  // as a mask; as aligned_stride_bytes()

using MemoryReference = std::shared_ptr<GstreamerMemory>;

// GStreamer's face of a GstreamerMemory.
struct Allocator {
  GstAllocator parent;
  MemoryReference* memory;
};

// One of its buffers, or a part of one.
struct Memory {
  GstMemory parent;
  FrameBuffer* buffer;
};

GstreamerMemory& memory_of(GstAllocator* allocator) {
  return **reinterpret_cast<Allocator*>(allocator)->memory;
}

GstMemory* allocate(GstAllocator* self, gsize size, GstAllocationParams* params) {
  // (Any alignment will do: ours is a page's. Zeros around the pixels would have to be written.)
  const bool plain = params->flags == 0 && params->prefix == 0 && params->padding <= size;
  FrameBuffer* const buffer = plain ? memory_of(self).lease(size + params->padding) : nullptr;
  if (buffer == nullptr) return gst_allocator_alloc(nullptr, size, params);
  auto* const made = new Memory{{}, buffer};
  gst_memory_init(&made->parent, GstMemoryFlags{}, self, nullptr, buffer->size_bytes, params->align,
                  0, size);
  return &made->parent;
}

void free_memory(GstAllocator* self, GstMemory* memory) {
  const std::unique_ptr<Memory> ended(reinterpret_cast<Memory*>(memory));
  if (memory->parent == nullptr) memory_of(self).end_lease(ended->buffer);
}

gpointer map_memory(GstMemory* memory, gsize, GstMapFlags) {
  return reinterpret_cast<Memory*>(memory)->buffer->data;
}

void unmap_memory(GstMemory*) {}

// A part, which keeps the whole.
GstMemory* share_memory(GstMemory* memory, gssize offset, gssize size) {
  GstMemory* const whole = memory->parent != nullptr ? memory->parent : memory;
  const auto skipped = static_cast<gsize>(offset);
  const gsize bytes = size == -1 ? memory->size - skipped : static_cast<gsize>(size);
  auto* const made = new Memory{{}, reinterpret_cast<Memory*>(memory)->buffer};
  gst_memory_init(&made->parent, GST_MEMORY_FLAG_READONLY, memory->allocator, whole,
                  memory->maxsize, memory->align, memory->offset + skipped, bytes);
  return &made->parent;
}

void finalize_allocator(GObject* object) {
  delete reinterpret_cast<Allocator*>(object)->memory;
  G_OBJECT_CLASS(g_type_class_peek(GST_TYPE_ALLOCATOR))->finalize(object);
}

void initialise_allocator_class(gpointer type_class, gpointer) {
  GST_ALLOCATOR_CLASS(type_class)->alloc = allocate;
  GST_ALLOCATOR_CLASS(type_class)->free = free_memory;
  G_OBJECT_CLASS(type_class)->finalize = finalize_allocator;
}

// Copies of our memory are GStreamer's default: by our allocator. (A decoder gives a copy of each
// frame that it goes on to read.)
void initialise_allocator(GTypeInstance* instance, gpointer) {
  auto* const allocator = reinterpret_cast<GstAllocator*>(instance);
  allocator->mem_type = "PatterndMemory";
  allocator->mem_map = map_memory;
  allocator->mem_unmap = unmap_memory;
  allocator->mem_share = share_memory;
}

GstObjectPtr<GstAllocator> make_allocator(MemoryReference memory) {
  static const GType type = g_type_register_static_simple(
      GST_TYPE_ALLOCATOR, "PatterndAllocator", sizeof(GstAllocatorClass),
      initialise_allocator_class, sizeof(Allocator), initialise_allocator, GTypeFlags{});
  auto* const made = static_cast<Allocator*>(g_object_new(type, nullptr));
  gst_object_ref_sink(made);
  made->memory = new MemoryReference(std::move(memory));
  return GstObjectPtr<GstAllocator>(&made->parent);
}

constexpr const char* kAllocatorKey = "patternd-allocator";

GstAllocator* allocator_of(GstBufferPool* pool) {
  return static_cast<GstAllocator*>(g_object_get_data(G_OBJECT(pool), kAllocatorKey));
}

GstreamerMemory& memory_of(GstBufferPool* pool) { return memory_of(allocator_of(pool)); }

GstBufferPoolClass* parent_pool_class() {
  return GST_BUFFER_POOL_CLASS(g_type_class_peek(GST_TYPE_VIDEO_BUFFER_POOL));
}

GstVideoAlignment our_alignment() {
  GstVideoAlignment alignment;
  gst_video_alignment_reset(&alignment);
  for (guint& plane : alignment.stride_align) plane = kRowAlignment;
  return alignment;
}

// Whatever the element asks for, the memory is ours; and rows are as far apart as ours for an
// element that heeds strides (it asks for video meta data then).
gboolean configure_pool(GstBufferPool* pool, GstStructure* config) {
  guint least = 0;
  gst_buffer_pool_config_get_params(config, nullptr, nullptr, &least, nullptr);
  memory_of(pool).expect_count(least);
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  gst_buffer_pool_config_get_allocator(config, nullptr, &params);
  gst_buffer_pool_config_set_allocator(config, allocator_of(pool), &params);
  if (gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META)) {
    GstVideoAlignment alignment = our_alignment();
    gst_buffer_pool_config_get_video_alignment(config, &alignment);
    for (guint& plane : alignment.stride_align) plane |= kRowAlignment;
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment(config, &alignment);
  }
  return parent_pool_class()->set_config(pool, config);
}

bool lies_in(const GstreamerMemory& memory, GstBuffer* buffer) {
  GstMapInfo map;
  if (gst_buffer_n_memory(buffer) != 1 || !gst_buffer_map(buffer, &map, GST_MAP_READ)) return false;
  const bool lies = memory.holds(map.data, map.size);
  gst_buffer_unmap(buffer, &map);
  return lies;
}

// Plain memory given for want of ours does not stay in the pool, where its turn to be copied would
// come for ever. (The pool frees what has the flag.)
void take_back(GstBufferPool* pool, GstBuffer* buffer) {
  if (!lies_in(memory_of(pool), buffer)) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_TAG_MEMORY);
  parent_pool_class()->release_buffer(pool, buffer);
}

void initialise_pool_class(gpointer type_class, gpointer) {
  GST_BUFFER_POOL_CLASS(type_class)->set_config = configure_pool;
  GST_BUFFER_POOL_CLASS(type_class)->release_buffer = take_back;
}

GstObjectPtr<GstBufferPool> make_pool(GstAllocator* allocator) {
  static const GType type = g_type_register_static_simple(
      GST_TYPE_VIDEO_BUFFER_POOL, "PatterndBufferPool", sizeof(GstVideoBufferPoolClass),
      initialise_pool_class, sizeof(GstVideoBufferPool), nullptr, GTypeFlags{});
  auto* const pool = static_cast<GstBufferPool*>(g_object_new(type, nullptr));
  gst_object_ref_sink(pool);
  g_object_set_data_full(G_OBJECT(pool), kAllocatorKey, gst_object_ref(allocator),
                         gst_object_unref);
  return GstObjectPtr<GstBufferPool>(pool);
}

// Adds what we offer to the query. False where its caps are not of frames in the host's memory.
bool answer(GstQuery* query, const MemoryReference& memory) {
  GstCaps* caps = nullptr;
  gboolean wants_pool = FALSE;
  gst_query_parse_allocation(query, &caps, &wants_pool);
  GstVideoInfo info;
  const GstCapsFeatures* features = caps != nullptr ? gst_caps_get_features(caps, 0) : nullptr;
  if (features == nullptr ||
      !gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
      !gst_video_info_from_caps(&info, caps) ||
      GST_VIDEO_INFO_FORMAT(&info) <= GST_VIDEO_FORMAT_ENCODED)
    return false;
  GstVideoInfo padded = info;
  GstVideoAlignment alignment = our_alignment();
  if (gst_video_info_align(&padded, &alignment)) memory->expect_size(GST_VIDEO_INFO_SIZE(&padded));
  const auto allocator = make_allocator(memory);
  const auto size = static_cast<guint>(GST_VIDEO_INFO_SIZE(&info));
  const auto least = static_cast<guint>(kOnTheWay);
  if (wants_pool == TRUE) {
    const auto pool = make_pool(allocator.get());
    GstStructure* config = gst_buffer_pool_get_config(pool.get());
    gst_buffer_pool_config_set_params(config, caps, size, least, 0);
    if (gst_buffer_pool_set_config(pool.get(), config))
      gst_query_add_allocation_pool(query, pool.get(), size, least, 0);
  }
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  params.align = kRowAlignment;
  gst_query_add_allocation_param(query, allocator.get(), &params);
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  return true;
}

// A sink answers such queries itself only from GStreamer 1.24 on: hence a probe.
GstPadProbeReturn on_query(GstPad*, GstPadProbeInfo* info, gpointer data) {
  GstQuery* const query = GST_PAD_PROBE_INFO_QUERY(info);
  if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION ||
      (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_PUSH) == 0)
    return GST_PAD_PROBE_OK;
  return answer(query, *static_cast<MemoryReference*>(data)) ? GST_PAD_PROBE_HANDLED
                                                             : GST_PAD_PROBE_OK;
}

}  // namespace

GstreamerMemory::GstreamerMemory(FrameAllocator& frames, std::size_t lent)
    : frames_(frames),
      shared_(frames.weak_from_this().lock()),
      lent_(lent),
      most_leases_(lent + kOnTheWay + kSpare) {}

void GstreamerMemory::offer_at(GstPad& pad) {
  if (shared_ == nullptr) return;
  gst_pad_add_probe(&pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, on_query,
                    new MemoryReference(shared_from_this()),
                    [](gpointer data) { delete static_cast<MemoryReference*>(data); });
}

void GstreamerMemory::set_growing(bool growing) {
  const std::lock_guard<std::mutex> lock(mutex_);
  growing_ = growing;
}

Result<void> GstreamerMemory::make_room(std::size_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ring_.prepare(frames_, size_bytes, lent_);
}

bool GstreamerMemory::holds(const std::uint8_t* first, std::size_t size_bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ring_.holds(first, size_bytes);
}

bool GstreamerMemory::may_lend(GstBuffer& buffer) const {
  // By count: a buffer in a sample that the sink shares with us is never "writable".
  return frames_.shared_with_host() ||
         (GST_MINI_OBJECT_REFCOUNT_VALUE(&buffer) == 1 && gst_buffer_n_memory(&buffer) == 1 &&
          GST_MINI_OBJECT_REFCOUNT_VALUE(gst_buffer_peek_memory(&buffer, 0)) == 1);
}

FrameBuffer* GstreamerMemory::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  FrameBuffer* const buffer = taken_ < lent_ ? ring_.take() : nullptr;
  if (buffer != nullptr) ++taken_;
  return buffer;
}

void GstreamerMemory::give_back(FrameBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_.give_back(buffer);
  --taken_;
}

FrameBuffer* GstreamerMemory::lease(std::size_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Where the allocator has no more, what there is has to do.
  const std::size_t each = std::max(size_bytes, size_bytes_);
  if (growing_ && !ring_.prepare(frames_, each, lent_ + most_leases_)) growing_ = false;
  FrameBuffer* const buffer = leased_ + lent_ < ring_.size() ? ring_.take() : nullptr;
  if (buffer == nullptr) return nullptr;
  if (buffer->size_bytes < size_bytes) {
    ring_.give_back(buffer);
    return nullptr;
  }
  ++leased_;
  return buffer;
}

void GstreamerMemory::end_lease(FrameBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_.give_back(buffer);
  --leased_;
}

void GstreamerMemory::expect_count(std::size_t buffers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  most_leases_ = std::max(most_leases_, std::min(lent_ + buffers + kSpare, kMostLeases));
}

void GstreamerMemory::expect_size(std::size_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_bytes_ = std::max(size_bytes_, size_bytes);
}

}  // namespace patternd
