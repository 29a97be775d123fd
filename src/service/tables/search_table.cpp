#include "service/tables/search_table.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/threshold.h"

namespace gpujoin::service {
namespace {

/// Rows that are asked for besides, for those that have changed; and how many times more where
/// these were too few.
constexpr std::uint64_t kFirstSpare = 16, kMoreSpare = 8;

bool comes_before(const FoundRow& a, const FoundRow& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
}

/// Rows within eps that have changed since engines indexed a table.
struct ChangedRows {
  std::vector<FoundRow> now;   ///< in order
  std::vector<double> before;  ///< ascending distances of rows that were in changed slots
};

/// Calls take(row, distance) for the rows, by position, that lie within the request's eps of its
/// left one. Sums of several rows do not wait for each other.
template <Metric M, class T, class Take>
void find_within(const JoinRequest& request, const Dataset& rows,
                 const std::vector<std::uint64_t>& positions, const Take& take) {
  constexpr std::size_t kAtOnce = 4;
  const double most = make_threshold(M, request.eps()).raw;
  const T* const left = point<T>(request.left(), 0);
  for (std::size_t first = 0; first < positions.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, positions.size() - first);
    const T* right[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i)
      right[i] = point<T>(rows, positions[first + std::min(i, count - 1)]);
    RawSum<M> sums[kAtOnce];
    for (std::uint32_t d = 0; d < rows.dims; ++d)
      for (std::size_t i = 0; i < kAtOnce; ++i)
        sums[i].add(static_cast<double>(left[d]), static_cast<double>(right[i][d]));
    for (std::size_t i = 0; i < count; ++i)
      if (sums[i].raw() <= most && is_finite_row(rows, positions[first + i]))
        take(positions[first + i], distance_from_raw(M, sums[i].raw()));
  }
}

template <Metric M, class T>
ChangedRows find_changed(const JoinRequest& request, const Dataset& rows,
                         const TableChanges& changes) {
  ChangedRows found;
  std::vector<std::uint64_t> positions(changes.changed.begin(), changes.changed.end());
  for (std::uint64_t slot = changes.slots; slot < rows.rows; ++slot) positions.push_back(slot);
  find_within<M, T>(request, rows, positions, [&](std::uint64_t slot, double distance) {
    found.now.push_back({rows.ids[slot], distance});
  });
  const std::uint64_t before_rows = changes.before.size() / point_bytes(rows);
  const Dataset before = {changes.before.data(), nullptr, before_rows, rows.dims, rows.scalar};
  positions.resize(before_rows);
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  find_within<M, T>(request, before, positions,
                    [&](std::uint64_t, double distance) { found.before.push_back(distance); });
  std::sort(found.now.begin(), found.now.end(), comes_before);
  std::sort(found.before.begin(), found.before.end());
  return found;
}

template <class T>
ChangedRows find_changed(const JoinRequest& request, const Dataset& rows,
                         const TableChanges& changes) {
  switch (request.metric()) {
    case Metric::kL1:
      return find_changed<Metric::kL1, T>(request, rows, changes);
    case Metric::kLInf:
      return find_changed<Metric::kLInf, T>(request, rows, changes);
    case Metric::kCosine:
      return find_changed<Metric::kCosine, T>(request, rows, changes);
    default:
      return find_changed<Metric::kL2, T>(request, rows, changes);
  }
}

/// How often an engine may have taken a changed slot for a row within a distance: for the one in
/// its index, or for the one there now.
std::uint64_t changed_within(const ChangedRows& changed, double distance) {
  const auto before = std::upper_bound(changed.before.begin(), changed.before.end(), distance);
  const auto now =
      std::partition_point(changed.now.begin(), changed.now.end(),
                           [distance](const FoundRow& row) { return row.distance <= distance; });
  return static_cast<std::uint64_t>((before - changed.before.begin()) +
                                    (now - changed.now.begin()));
}

}  // namespace

/// A row that has not changed is missing in the engine's list where as many as were asked for came
/// before it, changed slots among them. If no more than the spare ones can be changed slots, the
/// others are as many rows as are wanted. If the engine keeps no index of the earlier version, it
/// indexes the current rows.
Status search_table(SearchBatches& searches, const JoinRequest& request, const TableHold& table,
                    WantedEngine engine, Interrupt& interrupt, SearchAnswer* answer) {
  const TableChanges& changes = table.changes();
  const Dataset rows = table.all_rows();
  JoinRequest asked = request;
  asked.sides = request.sides.with_rows(request.left(), table.indexed_rows());
  if (changes.version == 0 || (changes.changed.empty() && changes.slots == rows.rows))
    return searches.find(asked, engine, interrupt, answer);
  const ChangedRows changed = rows.scalar == ScalarType::kFloat32
                                  ? find_changed<float>(request, rows, changes)
                                  : find_changed<double>(request, rows, changes);
  const std::uint64_t count = request.neighbors();
  const std::uint64_t most_spare = changed.before.size() + changed.now.size();
  std::vector<FoundRow>& found = answer->rows;
  for (std::uint64_t spare = kFirstSpare;; spare *= kMoreSpare) {
    const std::uint64_t wanted = count + std::min(spare, most_spare);
    asked = asked.asking(Output::nearest(wanted));
    const Status status = searches.find(asked, engine, interrupt, answer);
    if (status.code == StatusCode::kNotKept) {
      table.note_lost_index();
      return searches.find(request, engine, interrupt, answer);
    }
    if (!status.ok()) return status;
    const bool are_all = found.size() < wanted;
    std::erase_if(found, [&](const FoundRow& row) { return changes.may_be_changed(row.id); });
    if (are_all || spare >= most_spare) break;
    if (found.size() >= count &&
        count + changed_within(changed, found[count - 1].distance) <= wanted)
      break;
  }
  const auto unchanged = static_cast<std::ptrdiff_t>(found.size());
  found.insert(found.end(), changed.now.begin(), changed.now.end());
  std::inplace_merge(found.begin(), found.begin() + unchanged, found.end(), comes_before);
  found.resize(std::min<std::uint64_t>(found.size(), count));
  answer->candidates += changed.now.size();
  return {};
}

}  // namespace gpujoin::service
