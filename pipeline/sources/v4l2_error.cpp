#include "pipeline/sources/v4l2_error.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <grp.h>
#include <sys/stat.h>
#include <system_error>
#include <vector>

namespace patternd {
namespace {

std::string system_text(int error_number) { return std::generic_category().message(error_number); }

const char* advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return ": the USB bus has not the bandwidth for this format beside its other devices; a "
             "compressed format (format: MJPG), a smaller size, a lower fps, or a port of another "
             "USB controller needs less";
    case ENODEV:
      return ": the camera is gone";
    case EIO:
      return ": the camera or its driver reports a fault in the transfer";
    case EBUSY:
      return ": another program uses the camera; `fuser -v` with its path names it";
    case EPIPE:
      return ": the camera's links are not set up; media-ctl shows them";
    case ENOLINK:
      return ": the formats of the camera's sensor and links do not agree; media-ctl shows them";
    case ENOMEM:
      return ": the kernel has no memory for the camera's buffers";
    default:
      return "";
  }
}

// The cameras that there are, as stable paths.
std::string cameras_here(const std::string& links) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(links + "/by-path", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code dangling;  // of a camera that has just gone
    if (std::filesystem::exists(entry->path(), dangling)) paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::string text = paths.empty() ? "; no camera is here" : "; cameras here:";
  for (const std::string& path : paths) text += " " + path;
  return text;
}

// Which group may open the node.
std::string group_advice(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "; its folder is closed to this user";
  const struct group* const owner = ::getgrgid(status.st_gid);
  const std::string name = owner != nullptr ? owner->gr_name : std::to_string(status.st_gid);
  return "; the group " + name + " may open it: add the user to it (usermod -aG " + name +
         " USER), in a unit SupplementaryGroups=" + name;
}

}  // namespace

Error v4l2_error(const std::string& path, const char* what, int error_number) {
  const bool limit = error_number == ENOSPC || error_number == ENOMEM;
  return {limit ? ErrorCode::kExhausted : ErrorCode::kDevice,
          path + ": " + what + ": " + system_text(error_number) + advice(error_number)};
}

Error v4l2_open_error(const std::string& path, int error_number, const std::string& links) {
  const std::string text = path + ": " + system_text(error_number);
  switch (error_number) {
    case ENOENT:
      return {ErrorCode::kNotFound, text + cameras_here(links)};
    case EACCES:
      return {ErrorCode::kDevice, text + group_advice(path)};
    case EPERM:
      return {ErrorCode::kDevice,
              text + "; a unit with restricted devices needs DeviceAllow=char-video4linux"};
    case ENODEV:
    case ENXIO:
      return {ErrorCode::kNotFound, text + cameras_here(links)};
    default:
      return v4l2_error(path, "cannot be opened", error_number);
  }
}

}  // namespace patternd
