#include "tools/patternctl/launch.h"

#include <filesystem>
#include <unistd.h>

namespace patternd::tools {
namespace {

std::string own_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

}  // namespace

Error launch(const std::string& program, const std::vector<std::string>& arguments,
             const std::string& package) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string folder = own_folder();
  for (const std::filesystem::path& place :
       {std::filesystem::path(folder) / program,
        std::filesystem::path(folder) / ".." / "libexec" / "patternd" / program}) {
    execv(place.c_str(), argv.data());
  }
  execvp(program.c_str(), argv.data());
  return {ErrorCode::kUnsupported,
          program + " is not installed (looked beside patternctl, in libexec and in PATH); " +
              "the package " + package + " brings it"};
}

}  // namespace patternd::tools
