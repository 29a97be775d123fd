// gpu_components() of pairs: the groups that pairs from any query connect.
#include "core/disjoint_sets.h"
#include "pg/executor/engine_run.h"
#include "pg/functions/result_row.h"
#include "pg/store/huge_array.h"
#include "pg/store/rows_by_id.h"

extern "C" {
#include "miscadmin.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(gpujoin_pair_components);
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kBetweenLooks = 4096;

/// Ids in the order in which pairs name them, and the group of each.
struct PairComponents {
  MemoryContext context;
  std::int64_t* ids;       ///< [count]
  std::uint32_t* links;    ///< [count] of DisjointSets
  std::uint32_t* numbers;  ///< [count] of the group, at its root
  std::uint64_t count, next;
};

/// A group in the order of its smallest id.
struct Component {
  std::int64_t least;
  std::uint32_t root;

  bool operator<(const Component& other) const { return least < other.least; }
};

struct Ids {
  const std::int64_t* values;
  std::uint64_t count;
};

Ids read_ids(FunctionCallInfo fcinfo, int argument) {
  ArrayType* const array = PG_GETARG_ARRAYTYPE_P(argument);
  if (array_contains_nulls(array))
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("id%d holds a NULL", argument + 1),
             errhint("Leave pairs without both ids out, for example with WHERE ... IS NOT "
                     "NULL. A row without a partner is a pair with itself.")));
  return {reinterpret_cast<const std::int64_t*>(ARR_DATA_PTR(array)),
          static_cast<std::uint64_t>(ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)))};
}

void check_memory(std::uint64_t pairs) {
  const std::uint64_t ids = 2 * pairs;
  const std::uint64_t bytes =
      ids * (sizeof(std::int64_t) + 2 * sizeof(std::uint32_t)) +
      std::max(rows_by_id_bytes(ids), ids * (sizeof(std::int64_t) + 2 * sizeof(Component)));
  const std::uint64_t limit = available_memory(nullptr);
  if (bytes <= limit) return;
  ereport(
      ERROR,
      (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
       errmsg("groups of %llu pairs take up to %llu MB, and gpujoin.host_memory_limit leaves "
              "%llu MB",
              static_cast<unsigned long long>(pairs),
              static_cast<unsigned long long>((bytes >> 20) + 1),
              static_cast<unsigned long long>(limit >> 20)),
       errhint("Raise gpujoin.host_memory_limit, or pass fewer pairs: each once, for example.")));
}

/// Numbers the ids and unites those of each pair.
void unite_pairs(const Ids& first, const Ids& second, PairComponents* groups) {
  const RowsById table = make_rows_by_id(groups->context, groups->ids, 2 * first.count);
  const DisjointSets sets(groups->links);
  const auto number_of = [&](std::int64_t id) {
    std::uint32_t* const place = place_of_id(table, id);
    if (*place == 0) {
      const auto number = static_cast<std::uint32_t>(groups->count++);
      groups->ids[number] = id;
      groups->links[number] = number;
      *place = number + 1;
    }
    return *place - 1;
  };
  for (std::uint64_t pair = 0; pair < first.count; ++pair) {
    if (pair % kBetweenLooks == 0) CHECK_FOR_INTERRUPTS();
    const std::uint32_t number = number_of(first.values[pair]);
    sets.unite(number, number_of(second.values[pair]));
  }
  pfree(table.rows);
}

/// Sorts in runs, which are merged, so that an interrupt is noticed in time.
void sort(MemoryContext context, Component** components, std::uint64_t count) {
  constexpr std::uint64_t kRun = 1 << 18;
  for (std::uint64_t first = 0; first < count; first += kRun) {
    CHECK_FOR_INTERRUPTS();
    std::sort(*components + first, *components + std::min(count, first + kRun));
  }
  if (count <= kRun) return;
  Component* merged = nullptr;
  resize_array(context, &merged, count);
  for (std::uint64_t width = kRun; width < count; width *= 2) {
    for (std::uint64_t first = 0; first < count; first += 2 * width) {
      CHECK_FOR_INTERRUPTS();
      const Component* const from = *components;
      const std::uint64_t middle = std::min(count, first + width);
      std::merge(from + first, from + middle, from + middle,
                 from + std::min(count, first + 2 * width), merged + first);
    }
    std::swap(*components, merged);
  }
  pfree(merged);
}

/// Numbers the groups from 0, by their smallest ids.
void number_groups(PairComponents* groups) {
  const DisjointSets sets(groups->links);
  std::int64_t* least = nullptr;
  resize_array(groups->context, &least, groups->count);
  std::uint64_t count = 0;
  for (std::uint64_t row = 0; row < groups->count; ++row) {
    if (row % kBetweenLooks == 0) CHECK_FOR_INTERRUPTS();
    const std::uint32_t root = sets.root(static_cast<std::uint32_t>(row));
    const std::int64_t id = groups->ids[row];
    if (root == row) ++count;  // before all others of its group
    if (root == row || id < least[root]) least[root] = id;
  }
  Component* components = nullptr;
  resize_array(groups->context, &components, count);
  count = 0;
  for (std::uint64_t row = 0; row < groups->count; ++row)
    if (groups->links[row] == row)
      components[count++] = {least[row], static_cast<std::uint32_t>(row)};
  pfree(least);
  sort(groups->context, &components, count);
  for (std::uint64_t number = 0; number < count; ++number)
    groups->numbers[components[number].root] = static_cast<std::uint32_t>(number);
  pfree(components);
}

PairComponents* find_groups(MemoryContext context, const Ids& first, const Ids& second) {
  if (first.count != second.count)
    ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                    errmsg("id1 has %llu ids and id2 has %llu",
                           static_cast<unsigned long long>(first.count),
                           static_cast<unsigned long long>(second.count)),
                    errhint("Both are of the same pairs in the same order, for example "
                            "array_agg(id1) and array_agg(id2) of one query.")));
  check_memory(first.count);
  auto* const groups =
      static_cast<PairComponents*>(MemoryContextAllocZero(context, sizeof(PairComponents)));
  groups->context = context;
  resize_array(context, &groups->ids, 2 * first.count);
  resize_array(context, &groups->links, 2 * first.count);
  unite_pairs(first, second, groups);
  resize_array(context, &groups->numbers, groups->count);
  number_groups(groups);
  return groups;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_pair_components(PG_FUNCTION_ARGS) {
  using namespace gpujoin;
  if (SRF_IS_FIRSTCALL()) {
    FuncCallContext* const calls = start_rows(fcinfo);
    const MemoryContext caller = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
    const Ids first = read_ids(fcinfo, 0);
    calls->user_fctx = find_groups(calls->multi_call_memory_ctx, first, read_ids(fcinfo, 1));
    MemoryContextSwitchTo(caller);
  }
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  auto* const groups = static_cast<PairComponents*>(calls->user_fctx);
  if (groups->next == groups->count) SRF_RETURN_DONE(calls);
  const std::uint64_t at = groups->next++;
  const std::uint32_t root = DisjointSets(groups->links).root(static_cast<std::uint32_t>(at));
  Row row = {};
  add(&row, Int64GetDatum(groups->ids[at]));
  add_count(&row, groups->numbers[root]);
  SRF_RETURN_NEXT(calls, make_tuple(calls->tuple_desc, &row));
}
}
