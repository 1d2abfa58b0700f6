// Errors are values: every function that can fail returns Result<T>, and the caller decides what to
// do.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace patternd {

enum class ErrorCode {
  kInvalidArgument,  // the caller's value is wrong: configuration, command line, picture of the
                     // wrong size
  kNotFound,         // a file, device or name does not exist
  kIo,               // reading or writing failed
  kParse,            // the content of a file or message is malformed
  kUnsupported,      // well-formed, but not something this build or device does
  kExhausted,        // a limit (memory, queue, cap) would be passed
  kTimeout,          // a deadline passed
  kDevice,           // a camera or GPU reported a fault
  kEndOfStream,      // a recording or stream came to its end
  kInternal,         // a fault of ours
};

// What went wrong. `message` is one line without a full stop: where, what, and what would be right,
// e.g. "bolt.yaml: image_size is 0x480; both must be 1 to 32767".
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

// A value or an Error. Outputs of a function that returns an Error are as they were before the
// call.
template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}

}  // namespace patternd
