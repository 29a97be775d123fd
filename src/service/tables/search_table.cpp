#include "service/tables/search_table.h"

#include <algorithm>
#include <vector>

#include "core/threshold.h"

namespace gpujoin::service {
namespace {

/// An engine is asked for some more rows than are wanted, because some of them may have changed;
/// then for more, if too few were left.
constexpr std::uint64_t kFirstSpare = 16, kMoreSpare = 8;

bool comes_before(const FoundRow& a, const FoundRow& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
}

/// The changed and new slots that have a row, whose id is a ctid.
std::vector<std::uint64_t> changed_rows(const Dataset& rows, const TableChanges& changes) {
  std::vector<std::uint64_t> slots;
  slots.reserve(changes.changed.size() + rows.rows - changes.base->ids.size());
  const auto add = [&](std::uint64_t slot) {
    if (rows.ids[slot] != 0) slots.push_back(slot);
  };
  for (const std::uint64_t slot : changes.changed) add(slot);
  for (std::uint64_t slot = changes.base->ids.size(); slot < rows.rows; ++slot) add(slot);
  return slots;
}

/// The rows in changed and new slots that lie within eps of the request's left row, in order.
template <Metric M, class T>
std::vector<FoundRow> find_changed(const JoinRequest& request, double eps,
                                   const TableChanges& changes) {
  const Dataset& rows = request.right();
  constexpr std::size_t kAtOnce = 4;  // sums of several rows do not wait for each other
  const std::vector<std::uint64_t> slots = changed_rows(rows, changes);
  std::vector<FoundRow> found;
  const double most = make_threshold(M, eps).raw;
  const T* const left = point<T>(request.left(), 0);
  for (std::size_t first = 0; first < slots.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, slots.size() - first);
    const T* right[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i)
      right[i] = point<T>(rows, slots[first + std::min(i, count - 1)]);
    RawSum<M> sums[kAtOnce];
    for (std::uint32_t d = 0; d < rows.dims; ++d)
      for (std::size_t i = 0; i < kAtOnce; ++i)
        sums[i].add(static_cast<double>(left[d]), static_cast<double>(right[i][d]));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t slot = slots[first + i];
      if (sums[i].raw() <= most && is_finite_row(rows, slot))
        found.push_back({rows.ids[slot], distance_from_raw(M, sums[i].raw())});
    }
  }
  std::sort(found.begin(), found.end(), comes_before);
  return found;
}

template <class T>
std::vector<FoundRow> find_changed(const JoinRequest& request, double eps,
                                   const TableChanges& changes) {
  switch (request.metric()) {
    case Metric::kL1:
      return find_changed<Metric::kL1, T>(request, eps, changes);
    case Metric::kLInf:
      return find_changed<Metric::kLInf, T>(request, eps, changes);
    case Metric::kCosine:
      return find_changed<Metric::kCosine, T>(request, eps, changes);
    default:
      return find_changed<Metric::kL2, T>(request, eps, changes);
  }
}

}  // namespace

Status search_table(SearchBatches& searches, const JoinRequest& request, const TableHold& table,
                    WantedEngine engine, Interrupt& interrupt, SearchAnswer* answer) {
  const TableChanges& changes = table.changes();
  JoinRequest asked = request;
  asked.sides = request.sides.with_rows(request.left(), table.indexed_rows());
  if (!changes.base) return searches.find(asked, engine, interrupt, answer);
  const std::uint64_t count = request.neighbors(), most_spare = changes.changed.size();
  std::vector<FoundRow>& found = answer->rows;
  for (std::uint64_t spare = kFirstSpare;; spare *= kMoreSpare) {
    const std::uint64_t wanted = count + std::min(spare, most_spare);
    asked = asked.asking(Output::nearest(wanted));
    const Status status = searches.find(asked, engine, interrupt, answer);
    if (!status.ok()) return status;
    const bool are_all = found.size() < wanted;
    std::erase_if(found, [&](const FoundRow& row) { return changes.ids.contains(row.id); });
    if (are_all || found.size() >= count || spare >= most_spare) break;
  }
  const double eps = found.size() < count ? request.eps() : found[count - 1].distance;
  const std::vector<FoundRow> changed = request.right().scalar == ScalarType::kFloat32
                                            ? find_changed<float>(request, eps, changes)
                                            : find_changed<double>(request, eps, changes);
  const auto unchanged = static_cast<std::ptrdiff_t>(found.size());
  found.insert(found.end(), changed.begin(), changed.end());
  std::inplace_merge(found.begin(), found.begin() + unchanged, found.end(), comes_before);
  found.resize(std::min<std::uint64_t>(found.size(), count));
  answer->candidates += changed.size();
  return {};
}

}  // namespace gpujoin::service
