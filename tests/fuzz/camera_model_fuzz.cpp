// Calibration files.
#include "calibration/camera_model.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  const auto read = load_camera_model(fuzz::as_file(data, size, "camera.yaml"));
  if (!read) fuzz::check_message(read.error().message);
  return 0;
}
