// The files that patternd reads — pictures, YAML, indexes, tokens, certificates — opened in one
// way: a pipe or a device in a file's place is refused, never waited for.
//
//   auto bytes = read_file("bolt.png", std::size_t{1} << 30);
//   if (!bytes) …   // "bolt.png: is a pipe; must be a regular file"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "pipeline/file_descriptor.h"
#include "pipeline/result.h"

namespace patternd {

// A regular file, open for reading. Errors name the file.
class InputFile {
 public:
  // kNotFound: there is none. kInvalidArgument: a folder, pipe, socket or device. kIo: the system
  // refuses, with its reason.
  [[nodiscard]] static Result<InputFile> open(const std::string& path);
  // The permission bits.
  [[nodiscard]] mode_t permissions() const { return permissions_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  // The bytes from `offset` on, no more than `size` and fewer at the file's end. kIo: reading
  // fails.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, void* bytes,
                                            std::size_t size) const;
  // All of it. kInvalidArgument: it has more than `limit_bytes`. kIo: reading fails.
  [[nodiscard]] Result<std::vector<std::uint8_t>> read(std::size_t limit_bytes) const;

 private:
  InputFile(std::string path, FileDescriptor file, mode_t permissions, std::uint64_t size_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        permissions_(permissions),
        size_bytes_(size_bytes) {}

  std::string path_;
  FileDescriptor file_;
  mode_t permissions_;
  std::uint64_t size_bytes_;  // when it was opened
};

// A whole file in memory: open() and read().
[[nodiscard]] Result<std::vector<std::uint8_t>> read_file(const std::string& path,
                                                          std::size_t limit_bytes);
// kInvalidArgument where `output` is one of `inputs`, however the two are spelled or linked: a
// command must not write over what it reads. Empty names are none.
[[nodiscard]] Result<void> keep_inputs(const std::string& output,
                                       const std::vector<std::string>& inputs);
// The error of a file that has more than `limit_bytes`.
[[nodiscard]] tl::unexpected<Error> too_large(const std::string& name, std::size_t limit_bytes);

}  // namespace patternd
