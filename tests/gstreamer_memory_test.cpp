#include "pipeline/sources/gstreamer_memory.h"

#include <chrono>
#include <cstdint>
#include <gmock/gmock.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/sources/gstreamer_source.h"
#include "tests/support/frame_memory.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;
constexpr int kLent = 3;
// Beside those lent: what GStreamerMemory keeps for the pipeline's own use.
constexpr std::size_t kMostBlocks = 2 * kLent + 8;

// A pipeline's source with memory of its own, which tells whether frames lie in it.
struct Rig {
  explicit Rig(const std::string& description,
               std::shared_ptr<test::FrameMemory> frames = std::make_shared<test::FrameMemory>())
      : memory(std::move(frames)), source(config_of(description)) {}

  static CameraConfig config_of(const std::string& description) {
    CameraConfig config;
    config.kind = CameraConfig::Kind::kGstreamer;
    config.pipeline = description;
    return config;
  }
  [[nodiscard]] std::string start() {
    auto started = source.start(*memory, kLent);
    if (!started) return started.error().message;
    format = *started;
    return "";
  }
  FrameBuffer* next(bool newest_only = false) {
    auto frame = source.next(kPatienceMs, newest_only);
    EXPECT_TRUE(frame) << frame.error().message;
    return frame ? *frame : nullptr;
  }
  [[nodiscard]] bool is_ours(const FrameBuffer& frame) const {
    return memory->block_of(frame.image.data) < memory->count();
  }
  [[nodiscard]] std::uint64_t copied() const { return source.counters().copied; }

  std::shared_ptr<test::FrameMemory> memory;
  GstreamerSource source;
  SourceFormat format;
};

// The pixels of a frame without what lies between its rows.
std::vector<std::uint8_t> packed(const RawImageView& image) {
  std::vector<std::uint8_t> pixels;
  const bool pairs = image.format == RawFormat::kYuyv || image.format == RawFormat::kUyvy;
  // (Of an odd width's last pair only the first half is written.)
  const std::size_t row = pairs ? 2 * static_cast<std::size_t>(image.width)
                                : min_stride_bytes(image.format, image.width);
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* from = image.data + static_cast<std::size_t>(y) * image.stride_bytes;
    pixels.insert(pixels.end(), from, from + row);
  }
  return pixels;
}

// The pixels of `count` frames in turn, each given back before the next.
std::vector<std::vector<std::uint8_t>> play(Rig& rig, int count) {
  std::vector<std::vector<std::uint8_t>> frames;
  for (int i = 0; i < count; ++i) {
    FrameBuffer* const frame = rig.next();
    if (frame == nullptr) break;
    frames.push_back(packed(frame->image));
    rig.source.release(frame);
  }
  return frames;
}

// A pipeline whose frames are all the same, `caps` being their format and size.
std::string still(const std::string& caps, const std::string& rest = "") {
  return "videotestsrc pattern=smpte75 ! video/x-raw,framerate=1000/1," + caps + rest;
}

constexpr const char* kRefuses = " ! identity drop-allocation=true";

TEST(GstreamerMemory, IsWrittenIntoByASourceWithoutACopy) {
  Rig rig(still("format=GRAY8,width=320,height=240"));
  ASSERT_EQ(rig.start(), "");
  EXPECT_EQ(rig.source.capture_path(), CapturePath::kAllocator);
  EXPECT_THAT(rig.source.description(), ::testing::Not(HasSubstr("copied")));
  for (int i = 0; i < 40; ++i) {
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    EXPECT_TRUE(rig.is_ours(*frame)) << i;
    rig.source.release(frame);
  }
  EXPECT_EQ(rig.copied(), 0U);
  EXPECT_EQ(rig.source.counters().frames, 40U);
}

TEST(GstreamerMemory, GivesThePixelsThatACopyGives) {
  for (const char* format : {"GRAY8", "GRAY16_LE", "NV12", "I420", "YUY2", "UYVY", "RGB", "BGR"}) {
    for (const char* size : {"width=320,height=240", "width=161,height=33", "width=1,height=1"}) {
      const std::string caps = std::string("format=") + format + "," + size;
      Rig straight(still(caps));
      Rig copying(still(caps, kRefuses));
      ASSERT_EQ(straight.start(), "") << caps;
      ASSERT_EQ(copying.start(), "") << caps;
      EXPECT_TRUE(play(straight, 10) == play(copying, 10)) << caps;
      EXPECT_EQ(straight.copied(), 0U) << caps;
      EXPECT_EQ(copying.copied(), 10U) << caps;
    }
  }
}

TEST(GstreamerMemory, HasRowsAlignedAsOursWhereTheElementHeedsStrides) {
  Rig rig(still("format=GRAY8,width=161,height=33"));
  ASSERT_EQ(rig.start(), "");
  EXPECT_EQ(rig.format.stride_bytes, 192U);
  FrameBuffer* const frame = rig.next();
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->image.stride_bytes, 192U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame->image.data) % 64, 0U);
}

TEST(GstreamerMemory, IsWrittenIntoThroughConvertersQueuesAndWhatPassesFramesOn) {
  const std::string bgr = still("format=BGR,width=320,height=240");
  for (const char* rest : {" ! videoconvert", " ! videoconvert ! identity",
                           " ! videoscale ! video/x-raw,width=160,height=120 ! videoconvert",
                           " ! videoconvert ! queue max-size-buffers=1"}) {
    Rig rig(bgr + rest);
    ASSERT_EQ(rig.start(), "") << rest;
    EXPECT_EQ(rig.format.format, RawFormat::kGrey) << rest;
    EXPECT_EQ(rig.source.capture_path(), CapturePath::kAllocator) << rest;
    EXPECT_EQ(play(rig, 40).size(), 40U) << rest;
    EXPECT_EQ(rig.copied(), 0U) << rest;
  }
}

TEST(GstreamerMemory, TakesTheFramesThatADecoderGoesOnToRead) {
  Rig rig(
      "videotestsrc pattern=smpte75 ! video/x-raw,width=322,height=242,framerate=50/1"
      " ! vp8enc deadline=1 ! avdec_vp8 max-threads=1");
  const std::string failure = rig.start();
  if (failure.find("no element") != std::string::npos)
    GTEST_SKIP() << "gstreamer1.0-libav or vp8enc is not installed";
  ASSERT_EQ(failure, "");
  EXPECT_EQ(rig.source.capture_path(), CapturePath::kAllocator);
  EXPECT_EQ(play(rig, 20).size(), 20U);
  EXPECT_EQ(rig.copied(), 0U);
}

TEST(GstreamerMemory, IsCopiedIntoOnceWhereAnElementRefusesIt) {
  Rig rig(still("format=GRAY8,width=320,height=240", kRefuses));
  ASSERT_EQ(rig.start(), "");
  EXPECT_EQ(rig.source.capture_path(), CapturePath::kOneCopy);
  EXPECT_THAT(rig.source.description(), HasSubstr("copied once"));
  for (int i = 0; i < 5; ++i) {
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    EXPECT_TRUE(rig.is_ours(*frame));
    EXPECT_EQ(rig.copied(), static_cast<std::uint64_t>(i + 1));
    rig.source.release(frame);
  }
  EXPECT_EQ(rig.memory->count(), static_cast<std::size_t>(kLent));  // none for the pipeline
}

TEST(GstreamerMemory, IsCopiedIntoWhereTheAllocatorIsNotShared) {
  test::FrameMemory memory;
  GstreamerSource source(Rig::config_of(still("format=GRAY8,width=32,height=32")));
  ASSERT_TRUE(source.start(memory, kLent));
  EXPECT_EQ(source.capture_path(), CapturePath::kOneCopy);
  EXPECT_TRUE(source.next(kPatienceMs, false));
}

TEST(GstreamerMemory, GivesGoodFramesWhereThePipelineHoldsMoreThanThereAre) {
  // A queue that is full before the sink gets a frame, and stays so.
  const std::string caps = "format=GRAY8,width=64,height=48";
  Rig rig(still(caps, " ! queue max-size-buffers=30 min-threshold-buffers=25"));
  Rig copying(still(caps, kRefuses));
  ASSERT_EQ(rig.start(), "");
  ASSERT_EQ(copying.start(), "");
  const auto right = play(copying, 1);
  for (const auto& pixels : play(rig, 30)) EXPECT_EQ(pixels, right.front());
  EXPECT_GT(rig.copied(), 0U);
  EXPECT_EQ(rig.memory->count(), kMostBlocks);
}

// What an element does that asks a pad for memory.
class Element {
 public:
  explicit Element(GstreamerMemory& memory) {
    gst_object_ref_sink(pad_);
    gst_pad_set_active(pad_, TRUE);
    memory.offer_at(*pad_);
  }
  ~Element() {
    gst_pad_set_active(pad_, FALSE);
    gst_object_unref(pad_);
  }
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  // A pool that is ready for use, or null where none is offered; the caller's to deactivate.
  [[nodiscard]] GstObjectPtr<GstBufferPool> pool(const std::string& caps_text) const {
    GstCaps* caps = gst_caps_from_string(caps_text.c_str());
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    GstBufferPool* offered = nullptr;
    if (gst_pad_query(pad_, query) && gst_query_get_n_allocation_pools(query) == 1) {
      gst_query_parse_nth_allocation_pool(query, 0, &offered, nullptr, nullptr, nullptr);
      gst_buffer_pool_set_active(offered, TRUE);
    }
    gst_query_unref(query);
    gst_caps_unref(caps);
    return GstObjectPtr<GstBufferPool>(offered);
  }

  // The allocator that is offered beside.
  [[nodiscard]] GstObjectPtr<GstAllocator> allocator(const std::string& caps_text) const {
    GstCaps* caps = gst_caps_from_string(caps_text.c_str());
    GstQuery* query = gst_query_new_allocation(caps, FALSE);
    GstAllocator* offered = nullptr;
    if (gst_pad_query(pad_, query) && gst_query_get_n_allocation_params(query) == 1)
      gst_query_parse_nth_allocation_param(query, 0, &offered, nullptr);
    EXPECT_EQ(gst_query_get_n_allocation_pools(query), 0U);
    gst_query_unref(query);
    gst_caps_unref(caps);
    return GstObjectPtr<GstAllocator>(offered);
  }

 private:
  GstPad* pad_ = gst_pad_new("sink", GST_PAD_SINK);
};

constexpr const char* kCaps = "video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1";

std::vector<GstBuffer*> take_buffers(GstBufferPool& pool, std::size_t count) {
  std::vector<GstBuffer*> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    GstBuffer* buffer = nullptr;
    if (gst_buffer_pool_acquire_buffer(&pool, &buffer, nullptr) == GST_FLOW_OK)
      buffers.push_back(buffer);
  }
  return buffers;
}

// How many of them lie in our memory; gives them back.
std::size_t count_ours(const std::vector<GstBuffer*>& buffers, const test::FrameMemory& memory) {
  std::size_t ours = 0;
  for (GstBuffer* buffer : buffers) {
    GstMapInfo map;
    if (gst_buffer_map(buffer, &map, GST_MAP_WRITE)) {
      ours += memory.block_of(map.data) < memory.count() ? 1 : 0;
      gst_buffer_unmap(buffer, &map);
    }
    gst_buffer_unref(buffer);
  }
  return ours;
}

// What an element is offered, without a pipeline around it.
class GstreamerMemoryOffered : public ::testing::Test {
 protected:
  GstreamerMemoryOffered() { memory->set_growing(true); }
  void SetUp() override { ASSERT_TRUE(initialised); }

  const bool initialised = initialise_gstreamer().has_value();  // before there is a pad
  const std::shared_ptr<test::FrameMemory> frames = std::make_shared<test::FrameMemory>();
  const std::shared_ptr<GstreamerMemory> memory = std::make_shared<GstreamerMemory>(*frames, kLent);
  const Element element{*memory};
};

TEST_F(GstreamerMemoryOffered, ComesBackToItsBuffersAfterAWhileWithTooFew) {
  const auto pool = element.pool(kCaps);
  ASSERT_NE(pool, nullptr);
  memory->set_growing(false);
  constexpr std::size_t kOurs = kMostBlocks - kLent;
  const auto many = take_buffers(*pool, 3 * kOurs);
  EXPECT_EQ(many.size(), 3 * kOurs);  // none waited for
  EXPECT_EQ(count_ours(many, *frames), kOurs);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(count_ours(take_buffers(*pool, kOurs), *frames), kOurs);
  // As many copies as frames are lent find room beside.
  std::vector<FrameBuffer*> copies;
  const auto taken = take_buffers(*pool, kOurs);
  for (int i = 0; i < kLent; ++i) {
    copies.push_back(memory->take());
    EXPECT_NE(copies.back(), nullptr);
  }
  EXPECT_EQ(memory->take(), nullptr);
  for (FrameBuffer* copy : copies) memory->give_back(copy);
  EXPECT_EQ(count_ours(taken, *frames), kOurs);
  gst_buffer_pool_set_active(pool.get(), FALSE);
}

TEST_F(GstreamerMemoryOffered, HasGStreamersRowsWhereTheElementKnowsOfNoStrides) {
  const auto pool = element.pool("video/x-raw,format=GRAY8,width=161,height=33,framerate=25/1");
  ASSERT_NE(pool, nullptr);
  const auto buffers = take_buffers(*pool, 1);
  ASSERT_EQ(buffers.size(), 1U);
  EXPECT_EQ(gst_buffer_get_size(buffers.front()), 164U * 33);
  EXPECT_EQ(gst_buffer_get_video_meta(buffers.front()), nullptr);
  EXPECT_EQ(count_ours(buffers, *frames), 1U);
  gst_buffer_pool_set_active(pool.get(), FALSE);
}

TEST_F(GstreamerMemoryOffered, IsGivenToAnElementThatMakesItsOwnPool) {
  const auto allocator = element.allocator(kCaps);
  ASSERT_NE(allocator, nullptr);
  const struct {
    GstAllocationParams params;
    bool ours;
  } kCases[] = {{{GstMemoryFlags{}, 15, 0, 0, {}}, true},
                {{GstMemoryFlags{}, 15, 0, 64, {}}, true},
                {{GstMemoryFlags{}, 15, 64, 0, {}}, false},
                {{GST_MEMORY_FLAG_ZERO_PADDED, 15, 0, 64, {}}, false}};
  for (auto each : kCases) {
    GstMemory* const made = gst_allocator_alloc(allocator.get(), 64 * 48, &each.params);
    ASSERT_NE(made, nullptr);
    gsize room = 0;
    EXPECT_EQ(gst_memory_get_sizes(made, nullptr, &room), 64U * 48);
    EXPECT_GE(room, 64U * 48 + each.params.padding);
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(made, &map, GST_MAP_WRITE));
    EXPECT_EQ(frames->block_of(map.data) < frames->count(), each.ours);
    gst_memory_unmap(made, &map);
    gst_memory_unref(made);
  }
}

TEST_F(GstreamerMemoryOffered, CopiesAndPartsOfItsBuffersAreSoundAndItsOwn) {
  const auto pool = element.pool(kCaps);
  ASSERT_NE(pool, nullptr);
  const auto buffers = take_buffers(*pool, 1);
  ASSERT_EQ(buffers.size(), 1U);
  GstMemory* const whole = gst_buffer_get_all_memory(buffers.front());
  GstMapInfo map;
  ASSERT_TRUE(gst_memory_map(whole, &map, GST_MAP_WRITE));
  for (gsize i = 0; i < map.size; ++i) map.data[i] = static_cast<guint8>(i % 251);
  gst_memory_unmap(whole, &map);
  GstMemory* const part = gst_memory_share(whole, 100, 50);
  GstMemory* const part_of_part = gst_memory_share(part, 10, -1);
  GstMemory* const copy = gst_memory_copy(part_of_part, 5, 20);
  gst_memory_unref(part);
  gst_memory_unref(whole);
  count_ours(buffers, *frames);  // gives the buffer back
  ASSERT_TRUE(gst_memory_map(copy, &map, GST_MAP_READ));
  EXPECT_EQ(map.size, 20U);
  EXPECT_EQ(map.data[0], 115);
  EXPECT_EQ(map.data[19], 134);
  EXPECT_LT(frames->block_of(map.data), frames->count());
  gst_memory_unmap(copy, &map);
  ASSERT_TRUE(gst_memory_map(part_of_part, &map, GST_MAP_READ));
  EXPECT_EQ(map.size, 40U);
  EXPECT_EQ(map.data[0], 110);
  gst_memory_unmap(part_of_part, &map);
  gst_memory_unref(part_of_part);
  gst_memory_unref(copy);
  constexpr std::size_t kOurs = kMostBlocks - kLent;
  EXPECT_EQ(count_ours(take_buffers(*pool, 2 * kOurs), *frames), kOurs);  // all are back
  gst_buffer_pool_set_active(pool.get(), FALSE);
}

TEST_F(GstreamerMemoryOffered, HasAsManyBuffersAsThePoolIsAskedFor) {
  const auto pool = element.pool(kCaps);
  ASSERT_NE(pool, nullptr);
  gst_buffer_pool_set_active(pool.get(), FALSE);
  GstStructure* config = gst_buffer_pool_get_config(pool.get());
  GstCaps* caps = nullptr;
  guint size = 0;
  ASSERT_TRUE(gst_buffer_pool_config_get_params(config, &caps, &size, nullptr, nullptr));
  gst_buffer_pool_config_set_params(config, caps, size, 20, 0);
  ASSERT_TRUE(gst_buffer_pool_set_config(pool.get(), config));
  ASSERT_TRUE(gst_buffer_pool_set_active(pool.get(), TRUE));
  EXPECT_EQ(count_ours(take_buffers(*pool, 20), *frames), 20U);
  gst_buffer_pool_set_active(pool.get(), FALSE);
}

TEST_F(GstreamerMemoryOffered, IsNotOfferedForWhatIsNoPictureInTheHostsMemory) {
  for (const char* caps : {"video/x-raw(memory:NVMM),format=NV12,width=64,height=48,framerate=25/1",
                           "audio/x-raw,format=S16LE,rate=8000,channels=1,layout=interleaved",
                           "image/jpeg", "video/x-raw,format=GRAY8"})
    EXPECT_EQ(element.pool(caps), nullptr) << caps;
  EXPECT_EQ(frames->count(), 0U);
}

TEST(GstreamerMemory, StaysAsItIsWhileFramesAreHeld) {
  Rig rig(
      "videotestsrc is-live=true pattern=ball ! "
      "video/x-raw,format=GRAY8,width=160,height=120,framerate=500/1");
  ASSERT_EQ(rig.start(), "");
  std::vector<FrameBuffer*> held;
  std::vector<std::vector<std::uint8_t>> pixels;
  for (int i = 0; i < kLent; ++i) {
    held.push_back(rig.next());
    ASSERT_NE(held.back(), nullptr);
    pixels.push_back(packed(held.back()->image));
  }
  // All are lent: the pipeline goes on and what it gives is dropped and counted.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto none = rig.source.next(kPatienceMs, true);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kExhausted);
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(packed(held[i]->image), pixels[i]) << i;
    rig.source.release(held[i]);
  }
  FrameBuffer* const after = rig.next(true);
  ASSERT_NE(after, nullptr);
  EXPECT_GT(after->info.dropped, 1U);
  EXPECT_TRUE(rig.is_ours(*after));
}

TEST(GstreamerMemory, StaysWithFramesHeldOverTheEndAndAnotherStart) {
  Rig rig(still("format=GRAY8,width=160,height=120"));
  ASSERT_EQ(rig.start(), "");
  FrameBuffer* const held = rig.next();
  ASSERT_NE(held, nullptr);
  const auto pixels = packed(held->image);
  rig.source.stop();
  EXPECT_EQ(packed(held->image), pixels);
  ASSERT_EQ(rig.start(), "");
  // (The pool that the held frame is of keeps all its buffers until then, so some may be copied.)
  EXPECT_EQ(play(rig, 40).size(), 40U);
  EXPECT_EQ(packed(held->image), pixels);
  rig.source.release(held);
  ASSERT_EQ(rig.start(), "");
  const std::uint64_t copied = rig.copied();
  EXPECT_EQ(play(rig, 40).size(), 40U);
  EXPECT_EQ(rig.copied(), copied);
  EXPECT_LE(rig.memory->count(), kMostBlocks);
}

TEST(GstreamerMemory, IsKeptByAFrameThatOutlivesTheSourcesPipeline) {
  auto memory = std::make_shared<test::FrameMemory>();
  const std::weak_ptr<test::FrameMemory> watched = memory;
  auto source =
      std::make_unique<GstreamerSource>(Rig::config_of(still("format=GRAY8,width=160,height=120")));
  ASSERT_TRUE(source->start(*memory, kLent));
  ASSERT_TRUE(source->next(kPatienceMs, false));  // and never given back
  source->stop();
  memory.reset();
  EXPECT_FALSE(watched.expired());
  source.reset();
  for (int i = 0; i < 200 && !watched.expired(); ++i)  // GStreamer's threads come to it
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(watched.expired());
}

TEST(GstreamerMemory, IsUsedAgainByEachStartWithoutGrowing) {
  Rig rig(
      "videotestsrc is-live=true ! "
      "video/x-raw,format=GRAY8,width=320,height=240,framerate=1000/1");
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(rig.start(), "") << i;
    FrameBuffer* const frame = rig.next(true);
    ASSERT_NE(frame, nullptr) << i;
    rig.source.release(frame);
  }
  EXPECT_EQ(rig.source.capture_path(), CapturePath::kAllocator);
  EXPECT_EQ(rig.copied(), 0U);
  EXPECT_EQ(rig.memory->count(), kMostBlocks);
}

TEST(GstreamerMemory, OfAnotherAllocatorIsTakenByTheNextStart) {
  Rig rig(still("format=GRAY8,width=160,height=120"));
  ASSERT_EQ(rig.start(), "");
  FrameBuffer* const held = rig.next();
  ASSERT_NE(held, nullptr);
  const auto pixels = packed(held->image);
  const auto before = std::exchange(rig.memory, std::make_shared<test::FrameMemory>());
  ASSERT_EQ(rig.start(), "");
  FrameBuffer* const frame = rig.next();
  ASSERT_NE(frame, nullptr);
  EXPECT_TRUE(rig.is_ours(*frame));
  EXPECT_EQ(before->block_of(frame->image.data), before->count());
  EXPECT_EQ(packed(held->image), pixels);
  rig.source.release(held);
  rig.source.release(frame);
}

TEST(GstreamerMemory, OfALargerFrameIsMadeAtTheNextStart) {
  Rig rig(
      "videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=32,height=32,framerate=100/1"
      " ! c. videotestsrc num-buffers=2 ! "
      "video/x-raw,format=GRAY8,width=640,height=32,framerate=100/1 ! c. concat name=c");
  ASSERT_EQ(rig.start(), "");
  EXPECT_EQ(play(rig, 2).size(), 2U);
  EXPECT_EQ(rig.copied(), 0U);
  const std::size_t blocks = rig.memory->count();
  const auto changed = rig.source.next(kPatienceMs, false);
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message, HasSubstr("the stream changed its format"));
  EXPECT_EQ(rig.memory->count(), blocks);  // nothing more after the start
}

TEST(GstreamerMemory, KeepsRoomForCopiesWhereTheAllocatorHasLittle) {
  for (std::size_t most = kLent; most < kMostBlocks; ++most) {
    const auto memory = std::make_shared<test::FrameMemory>();
    memory->set_most(most);
    Rig rig(still("format=GRAY8,width=64,height=48"), memory);
    ASSERT_EQ(rig.start(), "") << most;
    EXPECT_EQ(rig.memory->count(), most);
    std::vector<FrameBuffer*> held;
    for (int i = 0; i < kLent; ++i) held.push_back(rig.next());
    for (FrameBuffer* frame : held) {
      ASSERT_NE(frame, nullptr);
      EXPECT_TRUE(rig.is_ours(*frame));
      rig.source.release(frame);
    }
  }
  const auto memory = std::make_shared<test::FrameMemory>();
  memory->set_most(kLent - 1);
  Rig rig(still("format=GRAY8,width=64,height=48"), memory);
  EXPECT_EQ(rig.start(), "no more memory");
}

TEST(GstreamerMemory, IsCopiedIntoWhileThePipelineLooksAtItWhereTheGpuMustHaveItAlone) {
  class Exclusive : public test::FrameMemory {
   public:
    bool shared_with_host() const override { return false; }
  };
  // imagefreeze gives one buffer again and again, and keeps it.
  Rig frozen(still("format=GRAY8,width=64,height=48", " ! imagefreeze num-buffers=5"),
             std::make_shared<Exclusive>());
  ASSERT_EQ(frozen.start(), "");
  EXPECT_EQ(play(frozen, 5).size(), 5U);
  EXPECT_EQ(frozen.copied(), 5U);
  // Elsewhere at most while the thread that brought a frame is still on its way back from there.
  Rig moves(still("format=GRAY8,width=64,height=48"), std::make_shared<Exclusive>());
  ASSERT_EQ(moves.start(), "");
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    moves.source.release(moves.next());
  }
  EXPECT_LT(moves.copied(), 40U);
}

TEST(GstreamerMemory, OfOneBufferIsLentSeveralTimesWhereThePipelineRepeatsIt) {
  Rig rig(still("format=GRAY8,width=64,height=48", " ! imagefreeze num-buffers=10"));
  ASSERT_EQ(rig.start(), "");
  FrameBuffer* const first = rig.next();
  FrameBuffer* const second = rig.next();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_LT(first->info.seq, second->info.seq);
  const auto pixels = packed(second->image);
  EXPECT_EQ(packed(first->image), pixels);
  rig.source.release(first);
  EXPECT_EQ(packed(second->image), pixels);
  rig.source.release(second);
}

}  // namespace
}  // namespace patternd
