#include "engine/request.h"

#include <cmath>

namespace gpujoin {
namespace {

Status check_dataset(const Dataset& data, const char* side) {
  if (data.rows == 0) return {};
  if (data.rows > kMaxRows)
    return make_status(StatusCode::kInvalidArgument, "Join parts of the table.",
                       "the %s side has too many rows: %llu", side,
                       static_cast<unsigned long long>(data.rows));
  if (data.dims == 0 || data.dims > kMaxDimensions)
    return make_status(StatusCode::kInvalidArgument, "Vectors have 1 to 16000 dimensions.",
                       "the %s side has %u dimensions", side, data.dims);
  if (data.coordinates == nullptr)
    return make_status(StatusCode::kInvalidArgument, nullptr, "the %s side has no coordinates",
                       side);
  return {};
}

}  // namespace

Status check_request(const JoinRequest& request) {
  if (!std::isfinite(request.eps) || request.eps < 0)
    return make_status(StatusCode::kInvalidArgument, "Pass a finite distance of 0 or more.",
                       "eps must be finite and not negative: %g", request.eps);
  if (Status status = check_dataset(request.left, "left"); !status.ok()) return status;
  if (request.self_join) return {};
  if (Status status = check_dataset(request.right, "right"); !status.ok()) return status;
  if (request.pairs != PairSelection::kAll)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "a join of two datasets knows only all pairs");
  if (request.left.rows == 0 || request.right.rows == 0) return {};
  if (request.left.dims != request.right.dims)
    return make_status(StatusCode::kInvalidArgument,
                       "Both sides need vectors of the same number of dimensions.",
                       "the left side has %u dimensions and the right side %u", request.left.dims,
                       request.right.dims);
  if (request.left.scalar != request.right.scalar)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "the two sides have different scalar types");
  return {};
}

}  // namespace gpujoin
