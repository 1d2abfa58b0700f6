#include "tests/support/test_files.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace patternd::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "patternd-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data()) != nullptr ? pattern : std::string();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string opencv_sample(const std::string& name) {
  const std::string path = "/usr/share/doc/opencv-doc/examples/data/" + name;
  return std::filesystem::exists(path) ? path : std::string();
}

}  // namespace patternd::test
