#include "engine/request.h"

#include <cmath>
#include <initializer_list>

#include "core/box.h"

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
  if (data.first_chunk == nullptr && data.file == nullptr)
    return make_status(StatusCode::kInvalidArgument, nullptr, "the %s side has no coordinates",
                       side);
  return {};
}

Status check_top(const JoinRequest& request) {
  const Top& top = request.top;
  if (top.k == 0 || top.k > kMostTopPairs)
    return make_status(StatusCode::kInvalidArgument, "Ask for 1 to 1000000 pairs.",
                       "k must be from 1 to %llu: %llu",
                       static_cast<unsigned long long>(kMostTopPairs),
                       static_cast<unsigned long long>(top.k));
  if (request.self_join && request.pairs != PairSelection::kUnordered)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "the best pairs of a self-join are unordered ones");
  if (top.scoring.function == ScoreFunction::kDistance) return {};
  for (const double weight : top.scoring.weights)
    if (!std::isfinite(weight))
      return make_status(StatusCode::kInvalidArgument, "Pass finite weights.",
                         "weights must be finite: %g", weight);
  const bool right_missing =
      !request.self_join && request.right.rows > 0 && request.right.scores == nullptr;
  if ((request.left.rows > 0 && request.left.scores == nullptr) || right_missing)
    return make_status(StatusCode::kInvalidArgument, nullptr, "a side has no scores");
  return {};
}

Status check_boxes(const JoinRequest& request) {
  if (request.output != Output::kPairs && request.output != Output::kTotal)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "a join of boxes knows pairs and their number only");
  if (request.metric == Metric::kCosine)
    return make_status(StatusCode::kInvalidArgument, "Use l2, l1 or linf.",
                       "boxes have no cosine distance");
  for (const Dataset* data : {&request.left, &request.right}) {
    if (data->rows == 0 || (data == &request.right && request.self_join)) continue;
    if (data->dims % 2 != 0 || data->dims > 2 * kMaxBoxDimensions)
      return make_status(StatusCode::kInvalidArgument, "Boxes have 1 to 8 dimensions.",
                         "boxes of %u numbers", data->dims);
  }
  return {};
}

}  // namespace

Status check_request(const JoinRequest& request) {
  if (!std::isfinite(request.eps) || request.eps < 0)
    return make_status(StatusCode::kInvalidArgument, "Pass a finite distance of 0 or more.",
                       "eps must be finite and not negative: %g", request.eps);
  if (Status status = check_dataset(request.left, "left"); !status.ok()) return status;
  if (request.shape == Shape::kBoxes)
    if (Status status = check_boxes(request); !status.ok()) return status;
  if (request.output == Output::kTopPairs)
    if (Status status = check_top(request); !status.ok()) return status;
  if (request.self_join) return {};
  if (Status status = check_dataset(request.right, "right"); !status.ok()) return status;
  const bool parts_of_one =
      request.output == Output::kTopPairs && request.pairs == PairSelection::kUnordered;
  if (request.pairs != PairSelection::kAll && !parts_of_one)
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
