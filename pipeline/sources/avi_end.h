// Whether an AVI file is all there, by its own sizes.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/result.h"

namespace patternd {

struct AviEnd {
  enum class Kind {
    kNotKnown,   // no AVI file, or one whose parts say nothing certain
    kWhole,      // every list of frames ends within the file
    kCut,        // a list of frames ends behind the file
    kUnfinished  // whoever wrote it got neither to a list's size nor to an index
  };
  Kind kind = Kind::kNotKnown;
  std::uint64_t missing_bytes = 0;  // of frames, where it was cut
};

// Reads the heads of the file's parts: RIFF "AVI " with its list "movi" of frames, and those of
// RIFF "AVIX" where the file is larger than 1 GiB (OpenDML). An index that is missing, or cut, is
// no loss of frames. Counts of frames in the header are not looked at: decoders give fewer where a
// frame repeats the one before. Errors: those of InputFile. Source: AVI RIFF File Reference
// (Microsoft); OpenDML AVI File Format Extensions 1.02.
[[nodiscard]] Result<AviEnd> find_avi_end(const std::string& path);

}  // namespace patternd
