#include "tools/calibrate/calibration_run.h"

#include <utility>

#include "tools/calibrate/lens_run.h"
#include "tools/calibrate/plane_run.h"

namespace patternd::calibrate {

Result<Outcome> calibrate(const Request& request) {
  Outcome outcome;
  if (auto done = find_lens(request, outcome); !done) return tl::make_unexpected(done.error());
  if (auto done = find_plane(request, outcome); !done) return tl::make_unexpected(done.error());
  return outcome;
}

}  // namespace patternd::calibrate
