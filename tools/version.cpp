#include "tools/version.h"

#include "generated_version.h"

namespace patternd {

std::string version_text(const std::string& program) {
  return program + " " PATTERND_VERSION " (commit " PATTERND_COMMIT
                   ")\nbackends: cpu\ndevice images: none";
}

const char* version_number() { return PATTERND_VERSION; }

const char* version_commit() { return PATTERND_COMMIT; }

}  // namespace patternd
