// The frame's path allocates nothing: every operator new of this program is counted, by thread.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <new>
#include <thread>

#include "daemon/service.h"
#include "daemon/service_client.h"
#include "tests/support/fake_camera.h"
#include "tests/support/test_files.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<int> g_allocations{0};
thread_local bool g_is_test_thread = false;

void* counted_allocation(std::size_t size) {
  if (g_counting && !g_is_test_thread) ++g_allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted_allocation(size); }
void* operator new[](std::size_t size) { return counted_allocation(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace patternd {
namespace {

// Three hundred frames through a service whose processor takes `depth` at a time.
void expect_no_allocation(std::size_t depth) {
  SCOPED_TRACE(depth);
  g_is_test_thread = true;
  g_allocations = 0;
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("p.yaml"))
      << "camera: {source: replay, path: x}\npublish: {tcp: {listen: \"127.0.0.1:0\"}}\n"
      << "blobs: {}\n";
  test::FakeCamera camera(true);
  ServiceParts parts;
  parts.make_source = [&camera](const CameraConfig&) { return camera.make_source(); };
  parts.make_processor = [depth](const ComputeConfig&, const ProcessorConfig& config) {
    return Result<std::unique_ptr<FrameProcessor>>(
        test::make_fake_processor(config, std::make_shared<test::FakeDevice>(depth, 100)));
  };
  auto configuration = load_configuration(folder.file("p.yaml"));
  ASSERT_TRUE(configuration) << configuration.error().message;
  auto service = Service::create({folder.file("p.yaml"), {}}, std::move(*configuration), parts);
  ASSERT_TRUE(service) << service.error().message;
  ASSERT_TRUE((*service)->open());
  std::vector<ServiceClient> clients;
  for (int i = 0; i < 3; ++i) {
    auto client = ServiceClient::connect((*service)->bound_addresses().at(0));
    ASSERT_TRUE(client) << client.error().message;
    clients.push_back(std::move(*client));
    ASSERT_TRUE(clients.back().read_line(20'000));  // hello
  }
  (*service)->start();
  // The first frames bring every vector to its size.
  for (int frame = 0; frame < 300; ++frame) {
    if (frame == 50) g_counting = true;
    camera.allow(1);
    for (ServiceClient& client : clients) ASSERT_TRUE(client.read_line(20'000));
  }
  g_counting = false;
  EXPECT_EQ(g_allocations, 0);
  (*service)->stop(1000);
}

TEST(FramePath, AllocatesNothingFromCaptureToTheClientsSockets) {
  expect_no_allocation(1);
  expect_no_allocation(3);
}

}  // namespace
}  // namespace patternd
