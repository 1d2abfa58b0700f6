// T8, T9: how a frame reaches the GPU and its result the host, and several frames at once.
#include <algorithm>
#include <cstring>

#include "cuda/rectify_stage.h"
#include "cuda/study/seeds.h"
#include "cuda/study/seeds_metrics.h"
#include "cuda/study/seeds_rectify_scene.h"
#include "cuda/study/study_parameters.h"

namespace patternd::cuda {
namespace {

class TransferBench {
 public:
  explicit TransferBench(const SeedBench& bench)
      : bench_(bench),
        bytes_(static_cast<std::size_t>(bench.options().size) *
               static_cast<std::size_t>(bench.options().size) * sizeof(float)),
        pageable_(bytes_),
        device_(value_of(DeviceBuffer::create(bench.device(), bytes_))),
        copy_(bench.kernel("patternd_study_copy")) {
    for (std::size_t i = 0; i < bytes_; ++i)
      pageable_[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
    wanted_ = pageable_;
  }

  void to_device(SeedTable& table) {
    row(
        table, "to the device, pageable", [] {}, [&] { up(pageable_.data()); },
        [&] { return back(); });
    shared(table, MemoryMode::kCopy, "page-locked");
    const DeviceProperties& gpu = bench_.device()->properties();
    if (gpu.can_map_host_memory) shared(table, MemoryMode::kMapped, "mapped, by a kernel");
    if (gpu.managed_memory) shared(table, MemoryMode::kManaged, "managed, by a kernel");
  }

  void to_host(SeedTable& table) {
    up(wanted_.data());
    row(
        table, "to the host, pageable", [&] { clear(pageable_); }, [&] { down(pageable_.data()); },
        [&] { return pageable_; });
    shared_back(table, MemoryMode::kCopy, "page-locked");
    const DeviceProperties& gpu = bench_.device()->properties();
    if (gpu.can_map_host_memory) shared_back(table, MemoryMode::kMapped, "mapped, by a kernel");
    if (gpu.managed_memory) shared_back(table, MemoryMode::kManaged, "managed, by a kernel");
  }

 private:
  using Bytes = std::vector<std::uint8_t>;
  static void clear(Bytes& bytes) { std::memset(bytes.data(), 0, bytes.size()); }

  void up(const void* from) const {
    const Driver& api = bench_.device()->driver();
    require(api.check(api.memcpy_h2d_async(device_.pointer(), from, bytes_, bench_.stream().get()),
                      "cuMemcpyHtoDAsync"));
    require(bench_.stream().wait());
  }
  void down(void* to) const {
    const Driver& api = bench_.device()->driver();
    require(api.check(api.memcpy_d2h_async(to, device_.pointer(), bytes_, bench_.stream().get()),
                      "cuMemcpyDtoHAsync"));
    require(bench_.stream().wait());
  }
  [[nodiscard]] Bytes back() const {
    Bytes bytes(bytes_);
    down(bytes.data());
    return bytes;
  }
  void copy_by_kernel(Address from, Address to) const {
    StudyParameters p{};
    p.input = from;
    p.output = to;
    p.count = static_cast<long long>(bytes_ / 16);
    Shape shape;
    shape.block_x = 256;
    shape.grid_x = static_cast<unsigned>((p.count + 255) / 256);
    require(bench_.stream().launch(copy_, shape, p));
  }

  // Host memory of a kind to the device: copied, or read in place by a kernel. The host writes all
  // of it before, untimed, so that managed memory has to move each time.
  void shared(SeedTable& table, MemoryMode mode, const std::string& what) {
    const SharedBuffer memory = value_of(SharedBuffer::create(bench_.device(), mode, bytes_));
    row(
        table, "to the device, " + what,
        [&] { std::memcpy(memory.host(), wanted_.data(), bytes_); },
        [&] {
          if (mode == MemoryMode::kCopy) return up(memory.host());
          require(memory.upload(bench_.stream(), bytes_));
          copy_by_kernel(memory.device(), device_.address());
          require(memory.download(bench_.stream(), bytes_));
          require(bench_.stream().wait());
        },
        [&] { return back(); });
  }
  // The device's memory to host memory of a kind, read by the host in the end: reading is part of
  // the way for managed memory.
  void shared_back(SeedTable& table, MemoryMode mode, const std::string& what) {
    const SharedBuffer memory = value_of(SharedBuffer::create(bench_.device(), mode, bytes_));
    Bytes read(bytes_);
    row(
        table, "to the host, " + what + ", and read",
        [&] {
          std::memset(memory.host(), 0, bytes_);
          clear(read);
        },
        [&] {
          if (mode == MemoryMode::kCopy) {
            down(memory.host());
          } else {
            require(memory.upload(bench_.stream(), bytes_));
            copy_by_kernel(device_.address(), memory.device());
            require(memory.download(bench_.stream(), bytes_));
            require(bench_.stream().wait());
          }
          std::memcpy(read.data(), memory.host(), bytes_);
        },
        [&] { return read; });
  }

  template <class Prepare, class Run, class Arrived>
  void row(SeedTable& table, const std::string& what, const Prepare& prepare, const Run& run,
           const Arrived& arrived) {
    prepare();
    if (what.rfind("to the device", 0) == 0)
      require(bench_.stream().fill(device_.pointer(), 0, bytes_));
    run();
    if (arrived() != wanted_) refuse(what + ": other bytes arrive than were sent");
    const double us = bench_.host_us(prepare, run);
    table.add(what, {us, static_cast<double>(bytes_) / us * 1e-3});
  }

  const SeedBench& bench_;
  std::size_t bytes_;
  Bytes pageable_;
  Bytes wanted_;
  DeviceBuffer device_;
  Kernel copy_;
};

// A frame's way with a stream and memory of its own.
struct Lane {
  Stream stream;
  SharedBuffer in;
  SharedBuffer out;
  Texture texture;
  DeviceView output;
};

Lane make_lane(const SeedBench& bench, const Image& picture) {
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width()) * sizeof(float);
  const std::size_t stride = aligned_stride(bench.device()->properties(), row_bytes);
  const std::size_t bytes = stride * static_cast<std::size_t>(picture.height());
  Lane lane;
  lane.stream = value_of(Stream::create(bench.device()));
  lane.in = value_of(SharedBuffer::create(bench.device(), MemoryMode::kCopy, bytes));
  lane.out = value_of(SharedBuffer::create(bench.device(), MemoryMode::kCopy, bytes));
  for (int y = 0; y < picture.height(); ++y)
    std::copy_n(picture.view().row_bytes(y), row_bytes,
                lane.in.host() + static_cast<std::size_t>(y) * stride);
  std::memset(lane.out.host(), 0xff, bytes);
  lane.texture =
      value_of(Texture::create(bench.device(), lane.in.device(), picture.width(), picture.height(),
                               stride, PixelFormat::kGrayF32, 1, FilterMode::kPoint));
  lane.output = {lane.out.device(), picture.width(), picture.height(), static_cast<int>(stride),
                 PixelFormat::kGrayF32};
  return lane;
}

}  // namespace

SeedTable study_transfers(const SeedBench& bench) {
  const std::string side = std::to_string(bench.options().size);
  SeedTable table("transfers",
                  "Transfers (T8), " + side + "x" + side +
                      " float, by the host's clock until the data can be used",
                  {{"median_us", "us", 1}, {"gb_s", "GB/s", 1}});
  TransferBench transfers(bench);
  transfers.to_device(table);
  transfers.to_host(table);
  return table;
}

SeedTable study_streams(const SeedBench& bench) {
  constexpr int kFrames = 32;
  SeedTable table("streams",
                  "Streams (T9): frames copied in, rectified by the service's kernel, copied out; "
                  "by the host's clock",
                  {{"frame_us", "us a frame", 1}, {"of_one", "of one stream", 2}});
  const RectifyScene scene = make_rectify_scene(bench.options().size, false);
  const RectifyStage stage = value_of(RectifyStage::create(
      bench.device(), value_of(plan_rectification(scene.model)), PixelFormat::kGrayF32, 0, {}));
  double one = 0;
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    std::vector<Lane> lanes;
    for (std::size_t i = 0; i < count; ++i) lanes.push_back(make_lane(bench, scene.picture));
    const auto run = [&] {
      for (std::size_t i = 0; i < kFrames; ++i) {
        const Lane& lane = lanes[i % count];
        require(lane.stream.wait());  // its memory is free again
        require(lane.in.upload(lane.stream, lane.in.size_bytes()));
        require(stage.enqueue(lane.stream, lane.texture, lane.output));
        require(lane.out.download(lane.stream, lane.out.size_bytes()));
      }
      for (const Lane& lane : lanes) require(lane.stream.wait());
    };
    run();
    const std::string what = std::to_string(count) + (count == 1 ? " stream" : " streams");
    for (const Lane& lane : lanes) {
      const ImageView view{lane.out.host(), lane.output.width, lane.output.height,
                           static_cast<std::size_t>(lane.output.stride_bytes),
                           PixelFormat::kGrayF32};
      static_cast<void>(check_rectified(scene, view, what));
    }
    const double us = bench.host_us(run) / kFrames;
    if (count == 1) one = us;
    table.add(what, {us, us / one});
  }
  return table;
}

}  // namespace patternd::cuda
