// The one door to PostgreSQL's headers, and the one place that knows how releases 14 to 18 differ.
// Every file of src/pg reaches postgres.h through here; further headers of PostgreSQL are included
// by who needs them.
#pragma once

// The standard library comes first: postgres.h defines printf, Min, Max and the like as macros.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

// clang-format off
extern "C" {
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/lsyscache.h"
#include "utils/wait_event.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#if PG_VERSION_NUM < 170000
#include "parser/parsetree.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "rewrite/rewriteManip.h"
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}
// clang-format on

#if PG_VERSION_NUM < 140000
#error "gpujoin needs PostgreSQL 14 or later"
#endif

// What is compiled with hidden visibility exports what is marked; before PostgreSQL 16 the mark is
// empty.
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

static_assert(SIZEOF_DATUM == 8,
              "gpujoin needs a 64-bit PostgreSQL: ids and distances are passed by value");

#if PG_VERSION_NUM < 150000
/// The detail of an error about a relation of another kind, which later releases name.
inline int errdetail_relkind_not_supported(char) {
  return errdetail("This operation is not supported for relations of its kind.");
}
#endif

// PostgreSQL 14 takes it for granted that custom scans can project.
#ifndef CUSTOMPATH_SUPPORT_PROJECTION
#define CUSTOMPATH_SUPPORT_PROJECTION 0
#endif

namespace gpujoin {

/// Makes SET of an unknown setting below `prefix` an error (before PostgreSQL 15: a warning).
inline void reserve_settings_prefix(const char* prefix) {
#if PG_VERSION_NUM >= 150000
  MarkGUCPrefixReserved(prefix);
#else
  EmitWarningsOnPlaceholders(prefix);
#endif
}

/// The group of max_parallel_workers and its like in pg_settings.
#if PG_VERSION_NUM >= 180000
inline constexpr config_group kWorkersGroup = RESOURCES_WORKER_PROCESSES;
#else
inline constexpr config_group kWorkersGroup = RESOURCES_ASYNCHRONOUS;
#endif

/// PostgreSQL's record of a setting, null where there is none of that name.
inline config_generic* find_setting(const char* name) {
#if PG_VERSION_NUM >= 160000
  return find_option(name, false, true, DEBUG5);
#else
  config_generic** const all = get_guc_variables();
  config_generic** const end = all + GetNumConfigOptions();
  config_generic** const found = std::find_if(
      all, end, [&](const config_generic* setting) { return strcmp(setting->name, name) == 0; });
  return found != end ? *found : nullptr;
#endif
}

/// expression_tree_mutator(), whose callback has no prototype before PostgreSQL 16.
inline Node* mutate_expression(Node* node, Node* (*mutator)(Node*, void*), void* context) {
#if PG_VERSION_NUM >= 160000
  return expression_tree_mutator(node, mutator, context);
#else
  auto* const plain = reinterpret_cast<void (*)()>(mutator);  // by way of it, casts are no mistake
  return expression_tree_mutator(node, reinterpret_cast<Node* (*)()>(plain), context);
#endif
}

/// What the backend with a number from 1 on is at; null: there is no such number.
inline const LocalPgBackendStatus* status_of_backend(int number) {
#if PG_VERSION_NUM >= 160000
  return pgstat_get_local_beentry_by_index(number);
#else
  return pgstat_fetch_stat_local_beentry(number);
#endif
}

/// expression_tree_walker(), likewise.
inline bool walk_expression(Node* node, bool (*walker)(Node*, void*), void* context) {
#if PG_VERSION_NUM >= 160000
  return expression_tree_walker(node, walker, context);
#else
  auto* const plain = reinterpret_cast<void (*)()>(walker);
  return expression_tree_walker(node, reinterpret_cast<bool (*)()>(plain), context);
#endif
}

/// Whether an operator compares in the order of an index, as `<` and `=` do.
inline bool compares_in_order(Oid operation) {
#if PG_VERSION_NUM >= 180000
  return get_op_index_interpretation(operation) != NIL;
#else
  return get_op_btree_interpretation(operation) != NIL;
#endif
}

/// How an operator orders two values: its strategy number of B-trees if that is not equality, or 0.
/// The numbers of PostgreSQL 18's comparisons are the same from less to greater.
inline int order_strategy(Oid operation) {
  ListCell* cell;
#if PG_VERSION_NUM >= 180000
  foreach (cell, get_op_index_interpretation(operation)) {
    const int strategy = static_cast<OpIndexInterpretation*>(lfirst(cell))->cmptype;
#else
  foreach (cell, get_op_btree_interpretation(operation)) {
    const int strategy = static_cast<OpBtreeInterpretation*>(lfirst(cell))->strategy;
#endif
    if (strategy != BTEqualStrategyNumber && strategy <= BTMaxStrategyNumber) return strategy;
  }
  return 0;
}

inline bool is_ascending(const PathKey* key) {
#if PG_VERSION_NUM >= 180000
  return key->pk_cmptype == COMPARE_LT;
#else
  return key->pk_strategy == BTLessStrategyNumber;
#endif
}

/// Returns the equivalence members among which a relation's are. PostgreSQL 18 lists those of each
/// partition apart.
inline const List* members_of([[maybe_unused]] const RelOptInfo* relation,
                              const EquivalenceClass* values) {
#if PG_VERSION_NUM >= 180000
  const auto number = static_cast<int>(relation->relid);
  if (IS_OTHER_REL(relation))
    return number < values->ec_childmembers_size ? values->ec_childmembers[number] : NIL;
#endif
  return values->ec_members;
}

/// Whether a setting speaks against the path; until PostgreSQL 18 its cost does.
inline bool is_disabled([[maybe_unused]] const Path* path) {
#if PG_VERSION_NUM >= 180000
  return path->disabled_nodes > 0;
#else
  return false;
#endif
}

/// Sets the path's number of disabled nodes to the sum of its inputs', by which add_path() of
/// PostgreSQL 18 judges before it compares costs; earlier releases have it in the costs.
inline void add_disabled_nodes([[maybe_unused]] Path* path,
                               [[maybe_unused]] std::initializer_list<const Path*> inputs) {
#if PG_VERSION_NUM >= 180000
  path->disabled_nodes = 0;
  for (const Path* const input : inputs) path->disabled_nodes += input->disabled_nodes;
#endif
}

/// Whether all rows of a base relation have a value in the column. From PostgreSQL 18 on its
/// attnotnull may stand for a constraint that old rows were not held to.
inline bool is_never_null([[maybe_unused]] PlannerInfo* root, const RelOptInfo* relation,
                          AttrNumber column) {
#if PG_VERSION_NUM >= 170000
  return column > 0 && bms_is_member(column, relation->notnullattnums);
#else
  const Oid table = planner_rt_fetch(relation->relid, root)->relid;
  const HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(column));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool not_null = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple))->attnotnull;
  ReleaseSysCache(tuple);
  return not_null;
#endif
}

/// heap_form_minimal_tuple(), which can leave room before the tuple from PostgreSQL 18 on.
inline MinimalTuple form_minimal_tuple(TupleDesc columns, const Datum* values, const bool* nulls) {
#if PG_VERSION_NUM >= 180000
  return heap_form_minimal_tuple(columns, values, nulls, 0);
#else
  return heap_form_minimal_tuple(columns, const_cast<Datum*>(values), const_cast<bool*>(nulls));
#endif
}

/// A hash table of rows in slots like this one, which lies in `context`.
inline TupleHashTable build_group_table(PlanState* parent, const TupleTableSlot* slot, int columns,
                                        AttrNumber* numbers, const Oid* equality, FmgrInfo* hashing,
                                        Oid* collations, long buckets, MemoryContext context,
                                        MemoryContext scratch) {
  constexpr Size kRoom = sizeof(std::uint64_t);
#if PG_VERSION_NUM >= 180000
  return BuildTupleHashTable(parent, slot->tts_tupleDescriptor, slot->tts_ops, columns, numbers,
                             equality, hashing, collations, buckets, kRoom, context, context,
                             scratch, false);
#else
  return BuildTupleHashTableExt(parent, slot->tts_tupleDescriptor, columns, numbers, equality,
                                hashing, collations, buckets, kRoom, context, context, scratch,
                                false);
#endif
}

/// The number that an entry of such a table has room for, until another entry is made.
inline std::uint64_t* number_of_entry([[maybe_unused]] TupleHashTable table, TupleHashEntry entry) {
#if PG_VERSION_NUM >= 180000
  return static_cast<std::uint64_t*>(TupleHashEntryGetAdditional(table, entry));
#else
  return reinterpret_cast<std::uint64_t*>(&entry->additional);
#endif
}

/// An expression as it is below outer joins, which may set its columns to NULL.
inline Node* below_outer_joins([[maybe_unused]] const PlannerInfo* root, Node* expression) {
#if PG_VERSION_NUM >= 160000
  return remove_nulling_relids(expression, root->outer_join_rels, nullptr);
#else
  return expression;
#endif
}

/// The clauses that groups are made by; PostgreSQL 16 leaves out those that split no group.
inline List* group_clauses(const PlannerInfo* root) {
#if PG_VERSION_NUM >= 160000
  return root->processed_groupClause;
#else
  return root->parse->groupClause;
#endif
}

inline bool is_owner_of_table(Oid table, Oid role) {
#if PG_VERSION_NUM >= 160000
  return object_ownercheck(RelationRelationId, table, role);
#else
  return pg_class_ownercheck(table, role);
#endif
}

/// Starts a sort by the first column that uses work_mem. With a `bound`, it returns only the first
/// `bound` rows.
inline Tuplesortstate* begin_sort(TupleDesc columns, Oid order, bool nulls_first,
                                  std::uint64_t bound) {
  AttrNumber column = 1;
  Oid collation = InvalidOid;
#if PG_VERSION_NUM >= 150000
  const int options = bound > 0 ? TUPLESORT_ALLOWBOUNDED : TUPLESORT_NONE;
#else
  const bool options = false;  // no random access
#endif
  Tuplesortstate* const sort = tuplesort_begin_heap(columns, 1, &column, &order, &collation,
                                                    &nulls_first, work_mem, nullptr, options);
  if (bound > 0) tuplesort_set_bound(sort, static_cast<int64>(bound));
  return sort;
}

/// What a process waits for, as pg_stat_activity shows it; until PostgreSQL 17 extensions have no
/// names of their own. To be asked for once a process and name.
inline std::uint32_t new_wait_event([[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 170000
  return WaitEventExtensionNew(name);
#else
  return PG_WAIT_EXTENSION;
#endif
}

/// Whether a backend's progress has a command number, 7, that PostgreSQL does not use. Release 18
/// numbers its commands up to 6; later releases have to be read before they are listed here.
inline constexpr bool kHasFreeProgressCommand = PG_VERSION_NUM < 190000;

/// Whether subtransactions can be started in parallel mode.
inline constexpr bool kSubtransactionsInParallelMode = PG_VERSION_NUM >= 170000;

inline AclResult function_aclcheck(Oid function, Oid role) {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE);
#else
  return pg_proc_aclcheck(function, role, ACL_EXECUTE);
#endif
}

/// Where a relation's rows are stored: of one database no two relations have the same.
struct StoredFile {
  Oid tablespace;
  Oid number;
};

inline StoredFile stored_file(Relation relation) {
#if PG_VERSION_NUM >= 160000
  return {relation->rd_locator.spcOid, relation->rd_locator.relNumber};
#else
  return {relation->rd_node.spcNode, relation->rd_node.relNode};
#endif
}

/// Copies the path of the first file of a relation's rows, below the data directory.
inline void copy_file_path(Relation relation, char* path, std::size_t size) {
#if PG_VERSION_NUM >= 180000
  strlcpy(path, relpathperm(relation->rd_locator, MAIN_FORKNUM).str, size);
#else
#if PG_VERSION_NUM >= 160000
  char* const made = relpathperm(relation->rd_locator, MAIN_FORKNUM);
#else
  char* const made = relpathperm(relation->rd_node, MAIN_FORKNUM);
#endif
  strlcpy(path, made, size);
  pfree(made);
#endif
}

/// Whether the current transaction has made the relation or its file.
inline bool has_new_file(Relation relation) {
#if PG_VERSION_NUM >= 160000
  const SubTransactionId first = relation->rd_firstRelfilelocatorSubid,
                         latest = relation->rd_newRelfilelocatorSubid;
#else
  const SubTransactionId first = relation->rd_firstRelfilenodeSubid,
                         latest = relation->rd_newRelfilenodeSubid;
#endif
  return relation->rd_createSubid != InvalidSubTransactionId || first != InvalidSubTransactionId ||
         latest != InvalidSubTransactionId;
}

/// Whether rows may be removed that a snapshot in use would see (old_snapshot_threshold, until
/// PostgreSQL 16).
inline bool snapshots_expire() {
#if PG_VERSION_NUM >= 170000
  return false;
#else
  return OldSnapshotThresholdActive();
#endif
}

/// Whether the column's values are computed when they are read.
inline bool is_virtual([[maybe_unused]] const FormData_pg_attribute* column) {
#if PG_VERSION_NUM >= 180000
  return column->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL;
#else
  return false;
#endif
}

/// Whether no row has a NULL in the column. Since PostgreSQL 18 a constraint may not have been
/// checked for the rows that there were.
inline bool is_never_null(Relation relation, AttrNumber column) {
#if PG_VERSION_NUM >= 180000
  return TupleDescCompactAttr(RelationGetDescr(relation), column - 1)->attnullability ==
         ATTNULLABLE_VALID;
#else
  return TupleDescAttr(RelationGetDescr(relation), column - 1)->attnotnull;
#endif
}

/// Checks the current user's privilege to select columns as the executor does for a query, with the
/// hooks of who audits or restricts that. `columns`: offset as in RangeTblEntry.
inline void check_select(Oid table, Bitmapset* columns) {
  RangeTblEntry* const entry = makeNode(RangeTblEntry);
  entry->rtekind = RTE_RELATION;
  entry->relid = table;
  entry->relkind = RELKIND_RELATION;
  entry->rellockmode = AccessShareLock;
  entry->inh = true;
#if PG_VERSION_NUM >= 160000
  RTEPermissionInfo* const permission = makeNode(RTEPermissionInfo);
  permission->relid = table;
  permission->inh = true;
  permission->requiredPerms = ACL_SELECT;
  permission->selectedCols = columns;
  entry->perminfoindex = 1;
  ExecCheckPermissions(list_make1(entry), list_make1(permission), true);
#else
  entry->requiredPerms = ACL_SELECT;
  entry->selectedCols = columns;
  ExecCheckRTPerms(list_make1(entry), true);
#endif
}

/// A condition that a query above a window has on one of its functions, and that the window stops
/// by: `window function operation value`, or the other way round.
struct RunCondition {
  Oid operation;
  bool window_first;
  const Expr* value;
};

/// Such conditions on the window function, of PostgreSQL's own form; PostgreSQL 14 passes none on.
inline const List* run_conditions(const WindowClause* window, const WindowFunc* function) {
#if PG_VERSION_NUM >= 170000
  static_cast<void>(window);
  return function->runCondition;
#elif PG_VERSION_NUM >= 150000
  static_cast<void>(function);
  return window->runCondition;
#else
  static_cast<void>(window);
  static_cast<void>(function);
  return NIL;
#endif
}

/// Sets *condition to one of them; false where it is about another window function.
inline bool read_run_condition(const Node* node, const WindowFunc* function,
                               RunCondition* condition) {
#if PG_VERSION_NUM >= 170000
  static_cast<void>(function);
  if (!IsA(node, WindowFuncRunCondition)) return false;
  const auto* const found = reinterpret_cast<const WindowFuncRunCondition*>(node);
  *condition = {found->opno, found->wfunc_left, found->arg};
  return true;
#else
  if (!IsA(node, OpExpr)) return false;
  const auto* const found = reinterpret_cast<const OpExpr*>(node);
  const Expr* const one = static_cast<const Expr*>(linitial(found->args));
  const Expr* const other = static_cast<const Expr*>(lsecond(found->args));
  *condition = {found->opno, IsA(one, WindowFunc), IsA(one, WindowFunc) ? other : one};
  return equal(IsA(one, WindowFunc) ? one : other, function);
#endif
}

/// The queries that a statement becomes. The types of its parameters follow from where they stand.
inline List* analyze_and_rewrite(RawStmt* statement, const char* text) {
  Oid* types = nullptr;
  int count = 0;
#if PG_VERSION_NUM >= 150000
  return pg_analyze_and_rewrite_varparams(statement, text, &types, &count, nullptr);
#else
  return pg_rewrite_query(parse_analyze_varparams(statement, text, &types, &count));
#endif
}

/// Memory for what a check hook passes on to its assign hook; null: there is none.
inline void* setting_memory(std::size_t bytes) {
#if PG_VERSION_NUM >= 160000
  return guc_malloc(LOG, bytes);
#else
  return malloc(bytes);
#endif
}

}  // namespace gpujoin
