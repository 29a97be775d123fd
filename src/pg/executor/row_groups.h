// Rows in groups of equal values: a hash table of PostgreSQL's, and a number for each group.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "executor/executor.h"
}

namespace gpujoin {

/// A group that was met, by the bits of its only value, which is passed by value: the same bits are
/// the same group to every operator.
struct KnownGroup {
  Datum value;
  std::uint64_t numbered;  ///< its number and 1; 0: none was met
};

struct RowGroups {
  int columns;
  List* expressions;  ///< of ExprState, [columns]
  Oid *equality, *collations;
  FmgrInfo* hashing;
  TupleTableSlot* slot;  ///< the values of a row
  PlanState* parent;
  TupleHashTable table;
  KnownGroup* known;  ///< [kKnownGroups], by what the value hashes to; null: values are not such
  std::uint64_t count;
};

/// Prepares groups by expressions over the parent's scan tuple, compared by operators that hash
/// tables know, [columns].
RowGroups* begin_groups(PlanState* parent, List* expressions, const Oid* operators,
                        const Oid* collations);

/// Forgets all groups, which lie in `context` from now on.
void start_groups(RowGroups* groups, MemoryContext context);

/// The number, from 0, of the group of the row in the scan tuple; `count` of a new one.
std::uint64_t group_of_row(RowGroups* groups, ExprContext* row);

}  // namespace gpujoin
