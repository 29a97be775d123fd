#include "service/tables/search_table.h"

#include <algorithm>
#include <vector>

#include "core/hamming.h"
#include "core/several_distances.h"
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

/// The raw distances of the request's left row and rows in the slots. Sums end early beyond `most`.
std::vector<double> raws_of(const JoinRequest& request, const std::vector<std::uint64_t>& slots,
                            double most) {
  const Dataset &left = request.left(), &rows = request.right();
  std::vector<double> raws(slots.size());
  const auto add_up = [&]<class T>(const T* value) {
    const auto other = [&](std::size_t i) { return point<T>(rows, slots[i]); };
    raw_distances(request.metric(), value, slots.size(), other, rows.dims, raws.data(), most);
  };
  if (rows.scalar == ScalarType::kFloat32)
    add_up(point<float>(left, 0));
  else if (rows.scalar == ScalarType::kFloat64)
    add_up(point<double>(left, 0));
  else
    for (std::size_t i = 0; i < slots.size(); ++i)
      raws[i] = bits_distance(request.metric(), point<std::uint64_t>(left, 0),
                              point<std::uint64_t>(rows, slots[i]), rows.dims);
  return raws;
}

/// The rows in changed and new slots that lie within eps of the request's left row, in order.
std::vector<FoundRow> find_changed(const JoinRequest& request, double eps,
                                   const TableChanges& changes) {
  const Dataset& rows = request.right();
  const Metric metric = request.metric();
  const std::vector<std::uint64_t> slots = changed_rows(rows, changes);
  const double most = is_of_bits(metric) ? eps : make_threshold(metric, eps).raw;
  const std::vector<double> raws = raws_of(request, slots, most);
  std::vector<FoundRow> found;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (raws[i] <= most && is_finite_row(rows, slots[i]))
      found.push_back({rows.ids[slots[i]], distance_from_raw(metric, raws[i])});
  std::sort(found.begin(), found.end(), comes_before);
  return found;
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
  const std::vector<FoundRow> changed = find_changed(request, eps, changes);
  const auto unchanged = static_cast<std::ptrdiff_t>(found.size());
  found.insert(found.end(), changed.begin(), changed.end());
  std::inplace_merge(found.begin(), found.begin() + unchanged, found.end(), comes_before);
  found.resize(std::min<std::uint64_t>(found.size(), count));
  answer->candidates += changed.size();
  return {};
}

}  // namespace gpujoin::service
