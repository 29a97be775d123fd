#include "pg/planner/distances_above.h"

#include "pg/planner/comparison.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

/// What a compiled function runs; two of one symbol compute the same.
struct Symbol {
  bool compiled, strict;
  const char* name;
  const char* object;
};

const char* text_of(HeapTuple tuple, AttrNumber attribute) {
  bool is_null;
  const Datum value = SysCacheGetAttr(PROCOID, tuple, attribute, &is_null);
  return is_null ? "" : TextDatumGetCString(value);
}

Symbol symbol_of(Oid function) {
  const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return {};
  const auto* const form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  const Symbol symbol = {form->prolang == ClanguageId, form->proisstrict,
                         text_of(tuple, Anum_pg_proc_prosrc), text_of(tuple, Anum_pg_proc_probin)};
  ReleaseSysCache(tuple);
  return symbol;
}

/// Whether the functions give the same, and NULL where a value is.
bool are_same_code(Oid function, Oid other) {
  const Symbol one = symbol_of(function);
  if (!one.strict) return false;
  if (function == other) return true;
  const Symbol two = symbol_of(other);
  return one.compiled && two.compiled && two.strict && strcmp(one.name, two.name) == 0 &&
         strcmp(one.object, two.object) == 0;
}

struct Search {
  const RelOptInfo* inner;
  const NearestClause* clause;
  Oid function;  ///< that computes the distance
  List* arguments;
  List* found;
};

/// The expression over columns of the subquery's table in the place of columns of the subquery.
Node* with_outputs(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  const Search& search = *static_cast<Search*>(context);
  const Var* const column = reinterpret_cast<const Var*>(node);
  if (IsA(node, Var) && column->varno == static_cast<int>(search.inner->relid) &&
      column->varlevelsup == 0 && column->varattno > 0 &&
      column->varattno <= list_length(search.clause->outputs))
    return static_cast<Node*>(list_nth(search.clause->outputs, column->varattno - 1));
  return mutate_expression(node, with_outputs, context);
}

bool is_distance(Node* node, Search* search) {
  Oid function;
  List* arguments;
  return as_call(reinterpret_cast<Expr*>(node), &function, &arguments) &&
         exprType(node) == FLOAT8OID && are_same_code(function, search->function) &&
         equal(with_outputs(reinterpret_cast<Node*>(arguments), search), search->arguments);
}

/// Walker.
bool find_distances(Node* node, void* context) {
  if (node == nullptr) return false;
  Search* const search = static_cast<Search*>(context);
  if (is_distance(node, search)) {
    search->found = list_append_unique(search->found, node);
    return false;
  }
  return walk_expression(node, find_distances, context);
}

}  // namespace

List* distances_above(const PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* inner,
                      const NearestClause& clause) {
  const Query* const query = root->parse;
  Search search = {inner, &clause, InvalidOid, NIL, NIL};
  if (query->hasWindowFuncs || query->hasTargetSRFs ||
      !bms_is_subset(root->all_baserels, join->relids) ||
      !as_call(clause.distance.condition, &search.function, &search.arguments))
    return NIL;
  find_distances(reinterpret_cast<Node*>(root->processed_tlist), &search);
  find_distances(query->havingQual, &search);
  return search.found;
}

}  // namespace gpujoin
