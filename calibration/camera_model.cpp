#include "calibration/camera_model.h"

namespace patternd {

const char* name_of(LensModel model) {
  switch (model) {
    case LensModel::kNone:
      return "none";
    case LensModel::kBrownConrady:
      return "brown_conrady";
    case LensModel::kFisheye:
      return "fisheye";
    case LensModel::kUnitPolynomial:
      return "unit_polynomial";
  }
  return "unknown";
}

}  // namespace patternd
