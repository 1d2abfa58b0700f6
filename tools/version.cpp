#include "tools/version.h"

#include "generated_version.h"

namespace patternd {

std::string version_text(const std::string& program, const std::vector<std::string>& images) {
  std::string text = program + " " PATTERND_VERSION " (commit " PATTERND_COMMIT ")\nbackends: cpu";
  text += images.empty() ? "\ndevice images:" : " cuda\ndevice images:";
  for (const std::string& image : images) text += " " + image;
  return images.empty() ? text + " none" : text;
}

const char* version_number() { return PATTERND_VERSION; }

const char* version_commit() { return PATTERND_COMMIT; }

}  // namespace patternd
