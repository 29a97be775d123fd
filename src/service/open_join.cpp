#include "service/open_join.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

/// Whether an enumerator is one of those up to `last`.
template <class Enum>
bool is_up_to(Enum last, Enum value) {
  return static_cast<int>(value) >= 0 && static_cast<int>(value) <= static_cast<int>(last);
}

bool are_known(const Knobs& knobs) {
  return is_up_to(IndexMethod::kNone, knobs.index) &&
         is_up_to(ReferencePlacement::kInner, knobs.reference_placement) &&
         is_up_to(Switch::kOff, knobs.reorder_dimensions) &&
         is_up_to(Switch::kOff, knobs.sort_unindexed) &&
         is_up_to(Switch::kOff, knobs.short_circuit) &&
         is_up_to(AccessPattern::kUnicomp, knobs.access_pattern) &&
         is_up_to(CellOrder::kHilbert, knobs.cell_order) &&
         is_up_to(WorkOrder::kQueue, knobs.work_order) &&
         is_up_to(TopkMethod::kSort, knobs.topk_method) &&
         is_up_to(BoxMethod::kNone, knobs.box_method);
}

bool is_known(const JoinRequest& request) {
  return is_up_to(Shape::kBoxes, request.shape()) && is_up_to(Metric::kCosine, request.metric()) &&
         is_up_to(Output::kTopPairs, request.output()) &&
         is_up_to(PairSelection::kUnordered, request.sides.pairs()) &&
         is_up_to(ScoreFunction::kDistance, request.top().scoring.function) &&
         are_known(request.knobs);
}

}  // namespace

Dataset ClientRows::view() const {
  return {coordinates.data(), ids.as<std::int64_t>(), rows, dims, scalar, scores.as<double>()};
}

ClientRows take_rows(const SideMessage& side, Descriptors* descriptors) {
  require(is_up_to(ScalarType::kFloat64, side.scalar) && side.dims <= kMaxDimensions &&
              side.rows <= kMaxRows && (side.rows == 0 || (side.has_rows && side.dims > 0)),
          "a side of a join has no such rows");
  ClientRows taken;
  taken.rows = side.rows;
  taken.dims = side.dims;
  taken.scalar = side.scalar;
  const bool stays = side.of_table;  // in the service, which will change it
  if (side.has_rows) {
    taken.coordinates =
        Region(descriptors->take(), side.rows * side.dims * scalar_bytes(side.scalar), stays);
    taken.ids = Region(descriptors->take(), side.rows * sizeof(std::int64_t), stays);
  }
  if (side.has_scores)
    taken.scores = Region(descriptors->take(), side.rows * sizeof(double), false);
  if (side.has_patches) {
    require(side.patches <= kMaxRows && side.map_pages <= kMaxRows, "a table has no such blocks");
    taken.patches =
        Region(descriptors->take(),
               side.map_pages * sizeof(std::uint64_t) + side.patches * sizeof(BlockPatch), false);
  }
  return taken;
}

JoinRequest read_request(const OpenJoin& message, std::uint32_t threads) {
  std::array<unsigned char, sizeof(JoinRequest)> bytes;
  std::memcpy(bytes.data(), message.request, sizeof message.request);
  JoinRequest request = std::bit_cast<JoinRequest>(bytes);
  require(is_known(request), "a join has no such request");
  request.sides = request.sides.with_rows(Dataset{}, Dataset{});
  Resources& resources = request.resources;
  resources.threads = std::clamp(resources.threads, 1u, std::max(threads, 1u));
  resources.interrupt = nullptr;
  resources.scratch = nullptr;
  return request;
}

}  // namespace gpujoin::service
