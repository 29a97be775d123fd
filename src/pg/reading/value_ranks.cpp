#include "pg/reading/value_ranks.h"

extern "C" {
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

namespace gpujoin {

bool find_rank_functions(Oid type, Oid collation, RankFunctions* functions) {
  const TypeCacheEntry* const entry =
      lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
  if (!OidIsValid(entry->eq_opr)) return false;
  *functions = {.type = type,
                .collation = collation,
                .hash = entry->hash_proc,
                .equality = get_opcode(entry->eq_opr),
                .other_hash = InvalidOid,
                .other_equality = InvalidOid};
  return true;
}

ValueRanks::ValueRanks(MemoryContext context, const RankFunctions& functions)
    : context_(context), collation_(functions.collation) {
  const auto prepare = [&](Oid function, FmgrInfo* info) {
    if (OidIsValid(function)) fmgr_info_cxt(function, info, context);
  };
  prepare(functions.hash, &hash_);
  prepare(functions.equality, &equality_);
  prepare(functions.other_hash, &other_hash_);
  prepare(functions.other_equality, &other_equality_);
  get_typlenbyval(functions.type, &length_, &by_value_);
  clear_table();
}

double ValueRanks::rank_of(Datum value) {
  const std::uint32_t hash = hash_of(&hash_, value);
  const std::uint64_t at = find(&equality_, hash, value);
  if (table_[at].rank != kFree) return table_[at].rank;
  const std::uint32_t rank = add(value);
  table_[at] = {hash, rank};
  if (2 * count_ > places_) grow();
  return rank;
}

double ValueRanks::rank_of_null() {
  if (null_rank_ == kFree) {
    reserve_next(context_, &values_, count_, &room_);
    values_[count_] = 0;  // no place of the table leads there
    null_rank_ = static_cast<std::uint32_t>(count_++);
  }
  return null_rank_;
}

double ValueRanks::find_other(Datum value) {
  const std::uint64_t at = find(&other_equality_, hash_of(&other_hash_, value), value);
  return table_[at].rank == kFree ? NAN : table_[at].rank;
}

std::uint64_t ValueRanks::bytes() const {
  if (count_ % kBetweenLooks == 0) bytes_ = MemoryContextMemAllocated(context_, true);
  return bytes_;
}

void ValueRanks::clear_table() {
  resize_array(context_, &table_, places_);
  std::fill_n(table_, places_, Place{0, kFree});
}

/// Copies a value as a whole: what lies out of line does not stay there for long.
std::uint32_t ValueRanks::add(Datum value) {
  reserve_next(context_, &values_, count_, &room_);
  if (length_ == -1) value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
  const MemoryContext caller = MemoryContextSwitchTo(context_);
  values_[count_] = datumCopy(value, by_value_, length_);
  MemoryContextSwitchTo(caller);
  return static_cast<std::uint32_t>(count_++);
}

/// Makes the table twice as large.
void ValueRanks::grow() {
  Place* const before = table_;
  const std::uint64_t count = places_;
  table_ = nullptr;
  places_ *= 2;
  clear_table();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (before[i].rank == kFree) continue;
    std::uint64_t at = first_place(before[i].hash, places_);
    while (table_[at].rank != kFree) at = (at + 1) & (places_ - 1);
    table_[at] = before[i];
  }
  pfree(before);
}

std::uint32_t ValueRanks::hash_of(FmgrInfo* function, Datum value) {
  if (!OidIsValid(function->fn_oid)) return 0;
  return DatumGetUInt32(FunctionCall1Coll(function, collation_, value));
}

/// The place of the numbered value that is equal, or where it would be.
std::uint64_t ValueRanks::find(FmgrInfo* equality, std::uint32_t hash, Datum value) {
  std::uint64_t at = first_place(hash, places_);
  for (; table_[at].rank != kFree; at = (at + 1) & (places_ - 1)) {
    if (table_[at].hash != hash) continue;
    if (DatumGetBool(FunctionCall2Coll(equality, collation_, values_[table_[at].rank], value)))
      break;
    CHECK_FOR_INTERRUPTS();
  }
  return at;
}

ValueRuns::ValueRuns(MemoryContext context, const RankFunctions& functions)
    : kept_(AllocSetContextCreate(context, "gpujoin last value", ALLOCSET_SMALL_SIZES)),
      collation_(functions.collation) {
  fmgr_info_cxt(functions.equality, &equality_, context);
  get_typlenbyval(functions.type, &length_, &by_value_);
}

bool ValueRuns::begins(NullableDatum value) {
  const bool same = some_ && value.isnull == last_.isnull &&
                    (value.isnull || DatumGetBool(FunctionCall2Coll(&equality_, collation_,
                                                                    last_.value, value.value)));
  if (same) return false;
  some_ = true;
  last_ = {0, value.isnull};
  MemoryContextReset(kept_);
  if (value.isnull) return true;
  if (length_ == -1) value.value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value.value));
  const MemoryContext caller = MemoryContextSwitchTo(kept_);
  last_.value = datumCopy(value.value, by_value_, length_);
  MemoryContextSwitchTo(caller);
  return true;
}

}  // namespace gpujoin
