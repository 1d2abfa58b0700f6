// What messages call the settings that choose a GPU.
#pragma once

#include <string>

#include "pipeline/result.h"

namespace patternd::cuda {

// The configuration's keys, unless whoever asks knows better what the user wrote: a key with its
// place ("patternd.yaml:10:19: compute.device"), or a command's option ("--image").
struct SettingNames {
  std::string backend = "compute.backend";
  std::string device = "compute.device";
  std::string memory = "compute.memory";
  std::string image = "compute.image";
};

// The GPU that `wanted` asks for is not to be had: "--backend: cuda is not available (why); set
// auto or cpu", of the code of `why`.
[[nodiscard]] tl::unexpected<Error> not_available(const std::string& wanted, const Error& why,
                                                  const std::string& instead);

}  // namespace patternd::cuda
