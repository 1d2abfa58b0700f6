#include "tests/fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "pipeline/utf8.h"

namespace patternd::fuzz {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzzXXXXXX" : "/tmp/fuzzXXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

Folder& own_folder() {
  static Folder folder;
  return folder;
}

}  // namespace

const std::string& folder() { return own_folder().path; }

std::string as_file(const std::uint8_t* data, std::size_t size, const std::string& name) {
  const std::string path = folder() + "/" + name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return path;
}

void check_message(const std::string& message) {
  if (message.empty() || utf8_first_fault(message) != std::string::npos) {
    std::fprintf(stderr, "a message that is empty or no UTF-8: \"%s\"\n", message.c_str());
    std::abort();
  }
}

}  // namespace patternd::fuzz
