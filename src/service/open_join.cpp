#include "service/open_join.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

constexpr std::uint32_t kMostThreadsPerPoint = 32;

/// Whether an enumerator is one of those up to `last`.
template <class Enum>
bool is_up_to(Enum last, Enum value) {
  return static_cast<int>(value) >= 0 && static_cast<int>(value) <= static_cast<int>(last);
}

bool are_known(const Knobs& knobs) {
  return is_up_to(IndexMethod::kPigeonhole, knobs.index) &&
         is_up_to(ReferencePlacement::kInner, knobs.reference_placement) &&
         is_up_to(Switch::kOff, knobs.reorder_dimensions) &&
         is_up_to(Switch::kOff, knobs.sort_unindexed) &&
         is_up_to(Switch::kOff, knobs.short_circuit) &&
         is_up_to(Switch::kOff, knobs.share_devices) &&
         is_up_to(AccessPattern::kUnicomp, knobs.access_pattern) &&
         is_up_to(CellOrder::kHilbert, knobs.cell_order) &&
         is_up_to(WorkOrder::kQueue, knobs.work_order) &&
         is_up_to(TopkMethod::kSort, knobs.topk_method) &&
         is_up_to(BoxMethod::kNone, knobs.box_method) &&
         knobs.indexed_dimensions <= kMaxGridDimensions &&
         knobs.reference_points <= kMaxReferencePoints &&
         knobs.threads_per_point <= kMostThreadsPerPoint &&
         (knobs.threads_per_point == 0 || std::has_single_bit(knobs.threads_per_point));
}

/// Whether each device is named once. Which of them there are, the engine knows.
bool are_known(const DeviceNumbers& devices) {
  if (devices.count > kMostDevices) return false;
  const auto* const end = devices.number + devices.count;
  for (const auto* at = devices.number; at != end; ++at)
    if (*at < 0 || std::find(devices.number, at, *at) != at) return false;
  return true;
}

/// Whether the request's constructors could have made what it asks for.
bool is_one_question(const JoinRequest& request) {
  const Output::Kind output = request.output();
  return (request.self_join() || request.sides.pairs() == PairSelection::kAll) &&
         (request.shape() == Shape::kPoints || output == Output::kPairs ||
          output == Output::kTotal);
}

bool is_known(const JoinRequest& request) {
  return is_up_to(Shape::kBoxes, request.shape()) && is_up_to(Metric::kJaccard, request.metric()) &&
         is_up_to(Output::kStableClusters, request.output()) &&
         is_up_to(PairSelection::kUnordered, request.sides.pairs()) &&
         is_up_to(ScoreFunction::kDistance, request.top().scoring.function) &&
         is_bool(request.top().scoring.lowest_first) && is_bool(request.top().parts_of_one) &&
         is_up_to(BorderRule::kFirst, request.borders()) &&
         is_bool(request.resources.soft_limits) && are_known(request.resources.devices) &&
         are_known(request.knobs) && is_one_question(request);
}

bool are_known(const PairSums& sums) {
  if (sums.programs > kMostPrograms || sums.measures > kMostMeasures) return false;
  for (std::uint32_t i = 0; i < sums.measures; ++i)
    if (!is_up_to(Fold::kCountOf, sums.measure[i].fold)) return false;
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    for (const ValueStep step : sums.program[p].steps)
      if (!is_up_to(ValueStep::kExponential, step)) return false;
  return true;
}

/// Where so many columns of a side lie; moves on to what comes after them.
template <class T>
std::vector<const T*> place_columns(const unsigned char** at, std::uint32_t columns,
                                    std::uint64_t rows) {
  std::vector<const T*> placed(columns);
  for (const T*& column : placed) {
    column = reinterpret_cast<const T*>(*at);
    *at += rows * sizeof(T);
  }
  return placed;
}

}  // namespace

bool is_bool(const bool& value) {
  unsigned char byte;
  std::memcpy(&byte, &value, 1);
  return byte <= 1;
}

void take_sums(const OpenJoin& message, std::uint64_t left_rows, std::uint64_t right_rows,
               Descriptors* descriptors, ClientSums* taken) {
  constexpr std::uint32_t kMostColumns = kMostValueSteps * kMostPrograms + 4 * kMostMeasures;
  require(message.sums_bytes >= sizeof(PairSums), "a join has no such sums");
  taken->columns = Region(descriptors->take(), message.sums_bytes);
  PairSums& sums = taken->sums;
  std::memcpy(static_cast<void*>(&sums), taken->columns.data(), sizeof sums);
  require(are_known(sums) && sums.left_columns <= kMostColumns &&
              sums.right_columns <= kMostColumns && sums.integer_columns <= kMostColumns,
          "a join has no such sums");
  static_assert(sizeof(double) == sizeof(std::int64_t));
  const std::uint64_t numbers =
      sums.left_columns * left_rows +
      (std::uint64_t{sums.right_columns} + sums.integer_columns) * right_rows;
  require(message.sums_bytes == sizeof(PairSums) + numbers * sizeof(double),
          "the columns of sums have another size");
  const unsigned char* at = taken->columns.data() + sizeof(PairSums);
  taken->left = place_columns<double>(&at, sums.left_columns, left_rows);
  taken->right = place_columns<double>(&at, sums.right_columns, right_rows);
  taken->integers = place_columns<std::int64_t>(&at, sums.integer_columns, right_rows);
  sums.left = taken->left.data();
  sums.right = taken->right.data();
  sums.integers = taken->integers.data();
}

void take_groups(const OpenJoin& message, const JoinRequest& request, Descriptors* descriptors,
                 ClientGroups* taken) {
  taken->count = message.groups;
  if (message.groups == 0) return;
  const bool are_known =
      request.output() == Output::kSums || request.output() == Output::kCountPerRow;
  require(are_known && message.groups <= kMostSumGroups && !message.sides[0].of_table &&
              !message.sides[0].has_ids,
          "a join has no such groups");
  if (message.groups > 1)
    taken->of_row = Region(descriptors->take(), request.left().rows * sizeof(std::uint32_t));
}

Dataset ClientRows::view() const {
  Dataset data{coordinates.data(), ids.as<std::int64_t>(), rows, dims, scalar, scores.as<double>()};
  data.keys = keys.as<double>();
  data.key_columns = key_columns;
  return data;
}

ClientRows take_rows(const SideMessage& side, Descriptors* descriptors) {
  require(is_bool(side.of_table) && is_bool(side.has_rows) && is_bool(side.has_scores) &&
              is_bool(side.has_patches),
          "a side of a join is neither of a table nor of its own");
  require(is_bool(side.has_ids) && (side.has_ids || !side.of_table || !side.has_rows),
          "the rows of a table have no ids");
  require(is_up_to(ScalarType::kBits, side.scalar) && side.dims <= kMaxDimensions &&
              side.rows <= kMaxRows && (side.rows == 0 || (side.has_rows && side.dims > 0)),
          "a side of a join has no such rows");
  require(
      side.key_columns == 0 || (side.key_columns <= kMostKeys && side.has_rows && !side.of_table),
      "a side of a join has no such keys");
  ClientRows taken;
  taken.rows = side.rows;
  taken.dims = side.dims;
  taken.scalar = side.scalar;
  taken.key_columns = side.key_columns;
  if (side.has_rows) {
    taken.coordinates =
        Region(descriptors->take(), side.rows * side.dims * scalar_bytes(side.scalar));
    if (side.has_ids) taken.ids = Region(descriptors->take(), side.rows * sizeof(std::int64_t));
  }
  if (side.has_scores) taken.scores = Region(descriptors->take(), side.rows * sizeof(double));
  if (side.key_columns > 0)
    taken.keys = Region(descriptors->take(), side.rows * side.key_columns * sizeof(double));
  if (side.has_patches) {
    require(side.patches <= kMaxRows && side.map_pages <= kMaxRows && side.moved <= kMaxRows,
            "a table has no such blocks");
    taken.patches = Region(descriptors->take(), side.map_pages * sizeof(std::uint64_t) +
                                                    side.patches * sizeof(BlockPatch) +
                                                    side.moved * sizeof(MovedRow));
  }
  return taken;
}

bool are_known_keys(const JoinRequest& request) {
  const auto are_known = [&](const Dataset& data, std::uint32_t k) {
    const double most = request.keys.most[k];
    for (std::uint64_t row = 0; row < data.rows; ++row) {
      const double key = key_of(data, row, k);
      if (!std::isnan(key) && !(key >= 0 && key <= most && key == std::floor(key))) return false;
    }
    return true;
  };
  for (std::uint32_t k = 0; k < request.keys.count; ++k)
    if (request.keys.reach[k] == 0 &&
        !(are_known(request.left(), k) && (request.self_join() || are_known(request.right(), k))))
      return false;
  return true;
}

JoinRequest read_request(const unsigned char* message, WantedEngine engine, std::uint32_t threads) {
  require(is_up_to(WantedEngine::kCpu, engine), "there is no such engine");
  std::array<unsigned char, sizeof(JoinRequest)> bytes;
  std::memcpy(bytes.data(), message, sizeof bytes);
  JoinRequest request = std::bit_cast<JoinRequest>(bytes);
  require(is_known(request), "a join has no such request");
  request.sides = request.sides.with_rows(Dataset{}, Dataset{});
  Resources& resources = request.resources;
  resources.threads = std::clamp(resources.threads, 1u, std::max(threads, 1u));
  resources.interrupt = nullptr;
  resources.let_signals_in = nullptr;
  resources.scratch = nullptr;
  return request;
}

Dataset row_of(const Search& message) {
  const Dataset row = {message.point, nullptr, 1, message.dims, message.scalar};
  require(is_up_to(ScalarType::kBits, row.scalar) && row.dims > 0 && row.dims <= kMaxDimensions &&
              message.point_bytes == point_bytes(row),
          "a search is for no row");
  return row;
}

}  // namespace gpujoin::service
