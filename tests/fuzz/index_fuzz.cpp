// Recordings' index: refused with a message, or stamps that rise strictly.
#include <cstdlib>

#include "pipeline/sources/recording_index.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace patternd;
  fuzz::as_file(data, size, "index.jsonl");
  const auto read = read_recording_index(fuzz::folder());
  if (!read) {
    fuzz::check_message(read.error().message);
    return 0;
  }
  for (std::size_t i = 1; i < read->stamps.size(); ++i) {
    const FrameStamp& before = read->stamps[i - 1];
    const FrameStamp& stamp = read->stamps[i];
    if (stamp.seq <= before.seq || stamp.captured_mono_ns <= before.captured_mono_ns) std::abort();
  }
  if (read->stamps.empty()) std::abort();
  return 0;
}
