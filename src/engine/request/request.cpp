#include "engine/request/request.h"

#include <cmath>
#include <initializer_list>

#include "core/box.h"
#include "engine/request/memory_budget.h"

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
  const Top& top = request.top();
  if (top.k == 0 || top.k > kMostTopPairs)
    return make_status(StatusCode::kInvalidArgument, "Ask for 1 to 1000000 pairs.",
                       "k must be from 1 to %llu: %llu",
                       static_cast<unsigned long long>(kMostTopPairs),
                       static_cast<unsigned long long>(top.k));
  if (top.scoring.function == ScoreFunction::kDistance) return {};
  for (const double weight : top.scoring.weights)
    if (!std::isfinite(weight))
      return make_status(StatusCode::kInvalidArgument, "Pass finite weights.",
                         "weights must be finite: %g", weight);
  for (const Dataset* data : {&request.left(), &request.right()})
    if (data->rows > 0 && !has_scores(*data))
      return make_status(StatusCode::kInvalidArgument, nullptr, "a side has no scores");
  return {};
}

Status check_neighbors(const JoinRequest& request) {
  const std::uint64_t k = request.neighbors();
  if (k == 0 || k > kMaxRows)
    return make_status(StatusCode::kInvalidArgument, "Ask for 1 neighbor or more.",
                       "k must be from 1 to %llu: %llu", static_cast<unsigned long long>(kMaxRows),
                       static_cast<unsigned long long>(k));
  if (request.pairs() == PairSelection::kUnordered)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "neighbors belong to the left point of a pair");
  return {};
}

Status check_clusters(const JoinRequest& request) {
  if (request.output() == Output::kStableClusters && request.min_cluster_size() < 2)
    return make_status(StatusCode::kInvalidArgument, "Ask for 2 points or more.",
                       "min_cluster_size must be at least 2");
  if (request.min_points() == 0)
    return make_status(StatusCode::kInvalidArgument, "Ask for 1 point or more.",
                       "min_points must be at least 1");
  if (!request.self_join())
    return make_status(StatusCode::kInvalidArgument, nullptr, "clusters are of one dataset");
  const PairKeys& keys = request.keys;
  if (keys.count > 1 || keys.intervals != 0 ||
      (keys.count == 1 && (keys.reach[0] != 0 || !(keys.most[0] >= 0) ||
                           !(keys.most[0] < static_cast<double>(kMaxRows)))))
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "clusters have one key, an equality, or none");
  return {};
}

Status check_duplicates(const JoinRequest& request) {
  if (request.self_join() && request.pairs() != PairSelection::kUnordered) return {};
  return make_status(StatusCode::kInvalidArgument, nullptr, "duplicates are of one dataset");
}

Status check_boxes(const JoinRequest& request) {
  if (request.metric() == Metric::kCosine)
    return make_status(StatusCode::kInvalidArgument, "Use l2, l1 or linf.",
                       "boxes have no cosine distance");
  for (const Dataset* data : {&request.left(), &request.right()}) {
    if (data->rows == 0) continue;
    if (data->dims % 2 != 0 || data->dims > 2 * kMaxBoxDimensions)
      return make_status(StatusCode::kInvalidArgument, "Boxes have 1 to 8 dimensions.",
                         "boxes of %u numbers", data->dims);
  }
  return {};
}

Status check_sides(const Sides& sides) {
  if (Status status = check_dataset(sides.left(), "left"); !status.ok()) return status;
  if (Status status = check_dataset(sides.right(), "right"); !status.ok()) return status;
  if (!sides.has_pairs()) return {};
  if (sides.left().dims != sides.right().dims)
    return make_status(StatusCode::kInvalidArgument,
                       "Both sides need vectors of the same number of dimensions.",
                       "the left side has %u dimensions and the right side %u", sides.left().dims,
                       sides.right().dims);
  if (sides.left().scalar != sides.right().scalar)
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "the two sides have different scalar types");
  return {};
}

/// Bits are compared by which of them differ, points by nothing of the kind.
Status check_bits(const JoinRequest& request) {
  const bool bits = is_of_bits(request.metric());
  const bool hamming = request.metric() == Metric::kHamming;
  for (const Dataset* data : {&request.left(), &request.right()})
    if (data->rows > 0 && (data->scalar == ScalarType::kBits) != bits)
      return make_status(StatusCode::kInvalidArgument,
                         "Join bits by the metric \"hamming\" or \"jaccard\".",
                         hamming ? "points have no Hamming distance"
                         : bits  ? "points have no Jaccard distance"
                                 : "bits have no distances but those of Hamming and Jaccard");
  if (!bits) return {};
  if (request.shape() == Shape::kBoxes)
    return make_status(
        StatusCode::kInvalidArgument, "Use l2, l1 or linf.",
        hamming ? "boxes have no Hamming distance" : "boxes have no Jaccard distance");
  if (is_of_spanning_tree(request.output()))
    return make_status(StatusCode::kInvalidArgument,
                       "gpu_dbscan() and gpu_components() find clusters of bits.",
                       hamming ? "spanning trees are not found by Hamming distance"
                               : "spanning trees are not found by Jaccard distance");
  return {};
}

Status check_keys(const JoinRequest& request) {
  const PairKeys& keys = request.keys;
  const std::uint32_t count = keys.count;
  bool known = count <= kMostKeys && keys.intervals >> count == 0;
  for (std::uint32_t k = 0; known && k < count; ++k) {
    known = std::isfinite(keys.reach[k]) && keys.reach[k] >= 0;
    if (keys.is_interval(k))
      known = known && keys.reach[k] > 0 && k + 1 < count && !keys.is_high_end(k);
  }
  for (const Dataset* data : {&request.left(), &request.right()})
    known = known && (data->rows == 0 ||
                      (data->key_columns == count &&
                       (count == 0 || data->file == nullptr || data->key_places != nullptr)));
  const bool served = request.shape() == Shape::kPoints && request.output() != Output::kTopPairs &&
                      request.output() != Output::kNearest &&
                      !is_of_spanning_tree(request.output());
  if (known && (count == 0 || served)) return {};
  return make_status(StatusCode::kInvalidArgument, nullptr, "no such join has keys");
}

}  // namespace

void require_rows_in_memory(const JoinRequest& request) {
  if (request.sides.in_file())
    throw MemoryLimitExceeded{request.sides.rows() * point_bytes(request.left()),
                              request.resources.memory_limit};
}

Status check_request(const JoinRequest& request) {
  if (!std::isfinite(request.eps()) || request.eps() < 0)
    return make_status(StatusCode::kInvalidArgument, "Pass a finite distance of 0 or more.",
                       "eps must be finite and not negative: %g", request.eps());
  if (Status status = check_sides(request.sides); !status.ok()) return status;
  if (Status status = check_bits(request); !status.ok()) return status;
  if (Status status = check_keys(request); !status.ok()) return status;
  if (request.shape() == Shape::kBoxes) return check_boxes(request);
  if (request.output() == Output::kTopPairs) return check_top(request);
  if (request.output() == Output::kNearest) return check_neighbors(request);
  if (request.output() == Output::kClusters || is_of_spanning_tree(request.output()))
    return check_clusters(request);
  if (request.output() == Output::kDuplicates) return check_duplicates(request);
  if (request.output() == Output::kSums && !is_well_formed(*request.sums()))
    return make_status(StatusCode::kInvalidArgument, nullptr, "malformed sums");
  return {};
}

const char* to_string(IndexMethod method) {
  switch (method) {
    case IndexMethod::kGrid:
      return "grid";
    case IndexMethod::kReferencePoints:
      return "reference_points";
    case IndexMethod::kTiles:
      return "tiles";
    case IndexMethod::kNone:
      return "none";
    case IndexMethod::kKdTree:
      return "kd_tree";
    case IndexMethod::kPigeonhole:
      return "pigeonhole";
    default:
      return "auto";
  }
}

const char* to_string(ReferencePlacement placement) {
  switch (placement) {
    case ReferencePlacement::kOuter:
      return "outer";
    case ReferencePlacement::kInner:
      return "inner";
    default:
      return "auto";
  }
}

const char* to_string(AccessPattern pattern) {
  switch (pattern) {
    case AccessPattern::kFull:
      return "full";
    case AccessPattern::kLinearId:
      return "linear_id";
    case AccessPattern::kUnicomp:
      return "unicomp";
    default:
      return "auto";
  }
}

const char* to_string(CellOrder order) {
  switch (order) {
    case CellOrder::kLinear:
      return "linear";
    case CellOrder::kZOrder:
      return "zorder";
    case CellOrder::kHilbert:
      return "hilbert";
    default:
      return "auto";
  }
}

const char* to_string(Metric metric) {
  switch (metric) {
    case Metric::kL1:
      return "l1";
    case Metric::kLInf:
      return "linf";
    case Metric::kCosine:
      return "cosine";
    case Metric::kHamming:
      return "hamming";
    case Metric::kJaccard:
      return "jaccard";
    default:
      return "l2";
  }
}

const char* to_string(ScoreFunction function) {
  switch (function) {
    case ScoreFunction::kProduct:
      return "product";
    case ScoreFunction::kMin:
      return "min";
    case ScoreFunction::kMax:
      return "max";
    case ScoreFunction::kDistance:
      return "distance";
    default:
      return "sum";
  }
}

const char* to_string(TopkMethod method) {
  switch (method) {
    case TopkMethod::kThreshold:
      return "threshold";
    case TopkMethod::kHeap:
      return "heap";
    case TopkMethod::kSort:
      return "sort";
    default:
      return "auto";
  }
}

}  // namespace gpujoin
