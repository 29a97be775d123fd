// Conditions by gpujoin's own distances, which arrays and points have.
#pragma once

#include "pg/types/sphere.h"

namespace gpujoin {

constexpr TestFunction own_test(const char* name, TestForm form, Metric metric,
                                const char* metric_argument = nullptr) {
  return {"gpujoin", name, InvalidOid, form, ValueForm::kPoint, metric, nullptr, metric_argument};
}

/// The metric "haversine", of places.
constexpr TestFunction haversine_test(const char* name, TestForm form) {
  return {"gpujoin",         name,        InvalidOid,      form,
          ValueForm::kPlace, Metric::kL2, widen_haversine, "haversine"};
}

}  // namespace gpujoin
