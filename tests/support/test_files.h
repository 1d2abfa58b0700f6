// Files for tests: a folder of each test's own, and the pictures of Debian's opencv-doc.
#pragma once

#include <string>

namespace patternd::test {

// A fresh empty folder, removed when the object goes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  // The folder's path with `/name` behind it.
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Path of a picture or video of the package opencv-doc, e.g. "graf1.png", unpacked where the
// package has it compressed; empty where the package is not installed (the test then skips by
// name).
[[nodiscard]] std::string opencv_sample(const std::string& name);

}  // namespace patternd::test
