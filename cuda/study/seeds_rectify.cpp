// T6, T7, T16, T18: the thesis's ways to rectify, beside the service's.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "cuda/rectify_stage.h"
#include "cuda/study/seeds.h"
#include "cuda/study/seeds_metrics.h"
#include "cuda/study/seeds_rectify_scene.h"
#include "cuda/study/study_array.h"
#include "pipeline/rectify.h"

namespace patternd::cuda {
namespace {

// A frame in one of the kinds of memory, with both sorts of texture over it.
struct SeedFrame {
  SharedBuffer memory;
  DeviceView view;
  Texture linear;  // hardware interpolation
  Texture point;   // for the service's kernel
};

SeedFrame make_frame(const SeedBench& bench, const Image& picture, MemoryMode mode) {
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width()) * sizeof(float);
  const std::size_t stride = aligned_stride(bench.device()->properties(), row_bytes);
  const std::size_t bytes = stride * static_cast<std::size_t>(picture.height());
  SeedFrame frame;
  frame.memory = value_of(SharedBuffer::create(bench.device(), mode, bytes));
  for (int y = 0; y < picture.height(); ++y)
    std::copy_n(picture.view().row_bytes(y), row_bytes,
                frame.memory.host() + static_cast<std::size_t>(y) * stride);
  require(frame.memory.upload(bench.stream(), bytes));
  require(bench.stream().wait());
  frame.view = {frame.memory.device(), picture.width(), picture.height(), static_cast<int>(stride),
                PixelFormat::kGrayF32};
  const auto texture = [&](FilterMode filter) {
    return value_of(Texture::create(bench.device(), frame.view.address, picture.width(),
                                    picture.height(), stride, PixelFormat::kGrayF32, 1, filter));
  };
  frame.linear = texture(FilterMode::kLinear);
  frame.point = texture(FilterMode::kPoint);
  return frame;
}

// One geometry with everything on the device that its variants need.
class RectifyBench {
 public:
  RectifyBench(const SeedBench& bench, bool turned)
      : bench_(bench),
        scene_(make_rectify_scene(bench.options().size, turned)),
        side_(bench.options().size),
        frame_(make_frame(bench, scene_.picture, MemoryMode::kCopy)),
        out_(value_of(DevicePicture::create(bench.device(), side_, side_, PixelFormat::kGrayF32))),
        host_(value_of(Image::create(side_, side_, PixelFormat::kGrayF32))),
        camera_(
            value_of(DeviceBuffer::copy_of(bench.device(), &scene_.camera, sizeof scene_.camera))),
        service_(value_of(RectifyStage::create(bench.device(),
                                               value_of(plan_rectification(scene_.model)),
                                               PixelFormat::kGrayF32, 0, {}))) {}

  [[nodiscard]] const RectifyScene& scene() const { return scene_; }
  [[nodiscard]] const SeedFrame& frame() const { return frame_; }

  // Enqueues one of the study's kernels on blocks of the given shape.
  [[nodiscard]] Result<void> launch(const Kernel& kernel, const SeedFrame& frame, Address texture,
                                    int block_x, int block_y) const {
    StudyParameters p{};
    p.texture = texture;
    p.input = frame.view.address;
    p.output = out_.view().address;
    p.camera_address = camera_.address();
    p.stride_bytes = out_.view().stride_bytes;
    p.input_stride = frame.view.stride_bytes;
    p.width = p.height = side_;
    p.camera = scene_.camera;
    Shape shape;
    shape.block_x = static_cast<unsigned>(block_x);
    shape.block_y = static_cast<unsigned>(block_y);
    shape.grid_x = static_cast<unsigned>((side_ + block_x - 1) / block_x);
    shape.grid_y = static_cast<unsigned>((side_ + block_y - 1) / block_y);
    return bench_.stream().launch(kernel, shape, p);
  }
  [[nodiscard]] Result<void> serve(const SeedFrame& frame) const {
    // Its own frame lies in the device's memory.
    return service_.enqueue(bench_.stream(), frame.point, out_.view(),
                            &frame == &frame_ ? frame.view : DeviceView{});
  }
  // The thesis's copy kernel: one pass over as many bytes.
  [[nodiscard]] double copy_us() const {
    const Kernel kernel = bench_.kernel("patternd_study_copy");
    StudyParameters p{};
    p.input = frame_.view.address;
    p.output = out_.view().address;
    p.count = static_cast<long long>(frame_.view.stride_bytes) * side_ / 16;
    Shape shape;
    shape.block_x = 256;
    shape.grid_x = static_cast<unsigned>((p.count + 255) / 256);
    return bench_.event_us([&] { return bench_.stream().launch(kernel, shape, p); });
  }
  // The error of what `enqueue` leaves; refuses what is not the CPU's. The output starts as ones,
  // so that a kernel that does nothing is seen.
  template <class Enqueue>
  [[nodiscard]] double check(const std::string& what, const Enqueue& enqueue) {
    const std::size_t bytes =
        static_cast<std::size_t>(out_.view().stride_bytes) * static_cast<std::size_t>(side_);
    require(bench_.stream().fill(static_cast<DevicePointer>(out_.view().address), 0xff, bytes));
    require(enqueue());
    require(download(bench_.stream(), out_.view(), host_.view()));
    require(bench_.stream().wait());
    return check_rectified(scene_, host_.view(), what);
  }
  // The service's CPU code on one core.
  [[nodiscard]] double cpu_us() {
    const Rectifier rectifier = value_of(Rectifier::create(scene_.model, PixelFormat::kGrayF32));
    return bench_.host_us([&] { rectifier.process(scene_.picture.view(), host_.view(), nullptr); });
  }

 private:
  const SeedBench& bench_;
  RectifyScene scene_;
  int side_;
  SeedFrame frame_;
  DevicePicture out_;
  Image host_;
  DeviceBuffer camera_;
  RectifyStage service_;
};

struct Variant {
  std::string what;
  std::function<Result<void>()> enqueue;
};

constexpr int kBlockX = 32;
constexpr int kBlockY = 8;

// The variants that read `frame` in place.
void add_in_place(const SeedBench& bench, const RectifyBench& rectify, const SeedFrame& frame,
                  const std::string& memory, std::vector<Variant>& variants) {
  const auto variant = [&](const std::string& what, const char* kernel_name, Address texture) {
    const Kernel kernel = bench.kernel(kernel_name);
    variants.push_back({what + ", " + memory, [&rectify, &frame, kernel, texture] {
                          return rectify.launch(kernel, frame, texture, kBlockX, kBlockY);
                        }});
  };
  variant("naive: parameters from memory", "patternd_study_rectify_naive", 0);
  variant("constant parameters", "patternd_study_rectify_constant", 0);
  variant("texture over the frame", "patternd_study_rectify_texture", frame.linear.get());
  variants.push_back(
      {"the service's kernel, " + memory, [&rectify, &frame] { return rectify.serve(frame); }});
}

void study_geometry(const SeedBench& bench, bool turned, SeedTable& table) {
  RectifyBench rectify(bench, turned);
  const Image& picture = rectify.scene().picture;
  const DeviceProperties& gpu = bench.device()->properties();
  std::vector<Variant> variants;
  add_in_place(bench, rectify, rectify.frame(), "device memory", variants);
  SeedFrame mapped;
  SeedFrame managed;
  if (gpu.can_map_host_memory) {
    mapped = make_frame(bench, picture, MemoryMode::kMapped);
    add_in_place(bench, rectify, mapped, "zero-copy", variants);
  }
  if (gpu.managed_memory) {
    managed = make_frame(bench, picture, MemoryMode::kManaged);
    add_in_place(bench, rectify, managed, "managed", variants);
  }
  const StudyArray array =
      value_of(StudyArray::create(bench.device(), picture.width(), picture.height()));
  const Kernel by_texture = bench.kernel("patternd_study_rectify_texture");
  const auto fill = [&] { return array.fill(bench.stream(), rectify.frame().view); };
  const auto from_array = [&] {
    return rectify.launch(by_texture, rectify.frame(), array.texture(), kBlockX, kBlockY);
  };
  require(fill());
  variants.push_back({"texture filled by a copy: the kernel", from_array});
  variants.push_back({"texture filled by a copy: both", [&]() -> Result<void> {
                        if (auto ok = fill(); !ok) return ok;
                        return from_array();
                      }});

  const double copy = rectify.copy_us();
  const double sequential = rectify.cpu_us();
  const int p = bench.processors();
  const std::string plane = turned ? "turned: " : "upright: ";
  const auto speed = [&](double us) {
    return access_speed_gb_s(picture.width(), picture.height(), sizeof(float), 2, us);
  };
  table.add(plane + "copy kernel",
            {copy, std::nullopt, std::nullopt, std::nullopt, std::nullopt, speed(copy), 1.0});
  table.add(plane + "CPU, one core", {sequential, std::nullopt, 1.0, 1.0, sequential * 1e-3,
                                      speed(sequential), copy / sequential});
  for (const Variant& variant : variants) {
    const double error = rectify.check(plane + variant.what, variant.enqueue);
    const double us = bench.event_us(variant.enqueue);
    table.add(plane + variant.what,
              {us, error * 255, speed_up(sequential, us), efficiency(sequential, us, p),
               cost_ms(us, p), speed(us), copy / us});
  }
}

}  // namespace

SeedTable study_rectification(const SeedBench& bench) {
  const std::string side = std::to_string(bench.options().size);
  SeedTable table("rectification",
                  "Rectification (T6, T7, T18), " + side + "x" + side +
                      " float; error in grey levels of 8 bit; speed-up S = T / T_p over one core, "
                      "efficiency S / p, cost p * T_p; speed of memory access with n = 2",
                  {{"median_us", "us", 1},
                   {"error_grey", "error", 3},
                   {"speed_up", "S", 1},
                   {"efficiency", "S/p", 4},
                   {"cost_ms", "cost ms", 1},
                   {"gb_s", "GB/s", 1},
                   {"of_copy", "of copy", 2}});
  for (const bool turned : {false, true}) study_geometry(bench, turned, table);
  return table;
}

SeedTable study_block_sizes(const SeedBench& bench) {
  SeedTable table(
      "block_sizes",
      "Block sizes (T16), rectification by texture: the share that eq. 3.1 calls wasted",
      {{"threads", "threads", 0},
       {"wasted_share", "wasted", 3},
       {"blocks", "blocks", 0},
       {"median_us", "us", 1},
       {"of_best", "of best", 2}});
  RectifyBench rectify(bench, false);
  const Kernel kernel = bench.kernel("patternd_study_rectify_texture");
  constexpr int kShapes[][2] = {{8, 1},   {16, 1},  {33, 1},  {32, 1},  {7, 7},   {8, 8},
                                {10, 10}, {16, 8},  {32, 4},  {11, 15}, {16, 16}, {32, 8},
                                {23, 23}, {32, 16}, {31, 31}, {32, 32}};
  std::vector<double> times_us;
  for (const auto& [x, y] : kShapes) {
    const auto enqueue = [&, block_x = x, block_y = y] {
      return rectify.launch(kernel, rectify.frame(), rectify.frame().linear.get(), block_x,
                            block_y);
    };
    static_cast<void>(
        rectify.check("blocks of " + std::to_string(x) + "x" + std::to_string(y), enqueue));
    times_us.push_back(bench.event_us(enqueue));
  }
  const double best = *std::min_element(times_us.begin(), times_us.end());
  const int side = bench.options().size;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    const auto [x, y] = kShapes[i];
    const double blocks =
        std::ceil(static_cast<double>(side) / x) * std::ceil(static_cast<double>(side) / y);
    table.add(std::to_string(x) + "x" + std::to_string(y),
              {x * y, wasted_share(x * y, bench.device()->properties().warp_size), blocks,
               times_us[i], times_us[i] / best});
  }
  return table;
}

}  // namespace patternd::cuda
