// Numbers for the distinct values of a type: equal values have the same, whatever they are.
#pragma once

#include "pg/store/huge_array.h"

extern "C" {
#include "fmgr.h"
}

namespace gpujoin {

/// The functions of an equality and what belongs to it.
struct RankFunctions {
  Oid type;       ///< of values that are numbered
  Oid collation;  ///< or InvalidOid
  Oid hash;       ///< InvalidOid: each new value is compared with all before it
  Oid equality;
  Oid other_hash;      ///< of values of another type, or InvalidOid
  Oid other_equality;  ///< of a numbered value and such a one
};

/// By the hash and equality of a type, unless it has none: false.
bool find_rank_functions(Oid type, Oid collation, RankFunctions* functions);

/// A hash table of values, copied to a memory context, which frees it. Ranks ascend from 0 in the
/// order in which values are met.
class ValueRanks {
 public:
  ValueRanks(MemoryContext context, const RankFunctions& functions);

  /// The rank of a value, a new one where it is met for the first time. Leaves what functions leave
  /// in the current memory context.
  double rank_of(Datum value);
  /// That of NULL.
  double rank_of_null();
  /// The rank of the value that one of the other type is equal to; NaN: there is none.
  double find_other(Datum value);

  std::uint64_t count() const { return count_; }
  /// Bytes of its context, as of some values ago.
  std::uint64_t bytes() const;

 private:
  static constexpr std::uint64_t kBetweenLooks = 1024;
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  struct Place {
    std::uint32_t hash, rank;
  };

  void clear_table();
  static std::uint64_t first_place(std::uint32_t hash, std::uint64_t places) {
    return hash * std::uint64_t{0x9e3779b97f4a7c15} >> 20 & (places - 1);
  }
  std::uint32_t add(Datum value);
  void grow();
  std::uint32_t hash_of(FmgrInfo* function, Datum value);
  std::uint64_t find(FmgrInfo* equality, std::uint32_t hash, Datum value);

  MemoryContext context_;
  Oid collation_;
  FmgrInfo hash_ = {}, equality_ = {}, other_hash_ = {}, other_equality_ = {};
  std::int16_t length_;
  bool by_value_;
  std::uint64_t places_ = 64;
  Place* table_ = nullptr;
  Datum* values_ = nullptr;
  std::uint64_t count_ = 0, room_ = 0;
  std::uint32_t null_rank_ = kFree;
  mutable std::uint64_t bytes_ = 0;
};

/// Tells where values change that come one beside the other where they are equal.
class ValueRuns {
 public:
  /// `functions` of find_rank_functions(). A value is kept in a child of the context.
  ValueRuns(MemoryContext context, const RankFunctions& functions);

  /// Whether the value is another one than the one before it; NULL is a value. Leaves what
  /// functions leave in the current memory context.
  bool begins(NullableDatum value);

 private:
  MemoryContext kept_;
  Oid collation_;
  FmgrInfo equality_ = {};
  std::int16_t length_;
  bool by_value_;
  bool some_ = false;
  NullableDatum last_ = {};
};

}  // namespace gpujoin
