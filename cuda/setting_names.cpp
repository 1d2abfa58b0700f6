#include "cuda/setting_names.h"

namespace patternd::cuda {

tl::unexpected<Error> not_available(const std::string& wanted, const Error& why,
                                    const std::string& instead) {
  return fail(why.code, wanted + " is not available (" + why.message + "); set " + instead);
}

}  // namespace patternd::cuda
