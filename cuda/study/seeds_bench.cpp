#include "cuda/study/seeds_bench.h"

#include "cuda/study/seeds_metrics.h"

namespace patternd::cuda {

Result<SeedBench> SeedBench::open(const SeedOptions& options, const std::string& driver) {
  auto opened = Driver::open(driver);
  if (!opened) return tl::make_unexpected(opened.error());
  auto device = Device::open(*opened, 0, options.image, options.names);
  if (!device) return tl::make_unexpected(device.error());
  if (auto ok = (*device)->make_current(); !ok) return tl::make_unexpected(ok.error());
  auto study = StudyImage::load(*device, options.image, options.names.image);
  if (!study) return tl::make_unexpected(study.error());
  auto stream = Stream::create(*device);
  if (!stream) return tl::make_unexpected(stream.error());
  SeedBench bench;
  bench.options_ = options;
  bench.device_ = *device;
  bench.study_ = std::move(*study);
  bench.stream_ = std::move(*stream);
  return bench;
}

int SeedBench::processors() const {
  const DeviceProperties& gpu = device_->properties();
  return gpu.multiprocessors * cores_per_multiprocessor(gpu.major, gpu.minor);
}

std::string SeedBench::description() const {
  const DeviceProperties& gpu = device_->properties();
  return device_->description() + ", study image " + study_.name() + ", " +
         std::to_string(gpu.multiprocessors) + " multiprocessors of " +
         std::to_string(cores_per_multiprocessor(gpu.major, gpu.minor)) + " units";
}

}  // namespace patternd::cuda
