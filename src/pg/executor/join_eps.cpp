// The radius of all pairs. PostgreSQL computes the radius for the first pair that fulfils the
// conditions before it, and never if there is no such pair. So an error of the radius counts only
// if there is one. If that error cannot be dropped, a search for such a pair comes first. It finds
// rows with equal values, as a hash join does.
#include "pg/executor/join_eps.h"

#include "pg/executor/join_rows.h"
#include "pg/executor/key_columns.h"
#include "pg/reading/value_ranks.h"
#include "pg/trap.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

// ---- Equalities

/// An equality of a value of one side with a value of the other.
struct Equality {
  Oid function, collation;
  Oid types[2];        ///< of its two values
  Oid hashes[2];       ///< of its two values
  Oid same;            ///< equality of two values of the first type
  bool first_is_left;  ///< which side the first value is of
  ExprState* values[2];
};

/// The side whose columns an expression over the scan tuple uses: 1 the left one, 0 the right one,
/// -1 none or both.
int side_of(const JoinNode* node, Node* expression) {
  Bitmapset* used = nullptr;
  pull_varattnos(expression, INDEX_VAR, &used);
  int side = -1;
  for (int i = 0; i < node->data.columns.count; ++i) {
    if (!bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, used)) continue;
    const int other = node->data.columns.from_left[i] ? 1 : 0;
    if (side >= 0 && side != other) return -1;
    side = other;
  }
  return side;
}

/// Whether the condition is an equality that a hash join could use.
bool match_equality(JoinNode* node, Node* condition, Equality* found) {
  if (!IsA(condition, OpExpr)) return false;
  const OpExpr* const operation = reinterpret_cast<const OpExpr*>(condition);
  if (list_length(operation->args) != 2 || contain_volatile_functions(condition) ||
      contain_subplans(condition))
    return false;
  Node* const values[2] = {static_cast<Node*>(linitial(operation->args)),
                           static_cast<Node*>(lsecond(operation->args))};
  const int sides[2] = {side_of(node, values[0]), side_of(node, values[1])};
  if (sides[0] < 0 || sides[1] < 0 || sides[0] == sides[1]) return false;
  for (int i = 0; i < 2; ++i) found->types[i] = exprType(values[i]);
  Oid same = operation->opno, other;
  if (!op_hashjoinable(operation->opno, found->types[0]) ||
      !get_op_hash_functions(operation->opno, &found->hashes[0], &found->hashes[1]) ||
      (found->types[0] != found->types[1] &&
       !get_compatible_hash_operators(operation->opno, &same, &other)))
    return false;
  found->function = get_opcode(operation->opno);
  found->same = get_opcode(same);
  found->collation = operation->inputcollid;
  found->first_is_left = sides[0] == 1;
  for (int i = 0; i < 2; ++i)
    found->values[i] = ExecInitExpr(reinterpret_cast<Expr*>(values[i]), &node->css.ss.ps);
  return true;
}

/// The equalities among the conditions before the radius, [*count].
Equality* find_equalities(JoinNode* node, int* count) {
  const List* const conditions = node->expressions.early;
  Equality* const found =
      static_cast<Equality*>(palloc(sizeof(Equality) * (list_length(conditions) + 1)));
  *count = 0;
  ListCell* cell;
  foreach (cell, conditions)
    if (match_equality(node, static_cast<Node*>(lfirst(cell)), &found[*count])) ++*count;
  return found;
}

// ---- Rows by the values of equalities

/// The rows of a side: for each the ranks of its values, equal ones have the same.
struct RankedRows {
  std::uint64_t rows;
  double* ranks;         ///< [rows][width]
  std::uint64_t* order;  ///< [count] rows without NULLs, ascending by their ranks
  std::uint64_t count;
};

int compare(const double* a, const double* b, int width) {
  for (int i = 0; i < width; ++i)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

void allocate_ranks(JoinNode* node, MemoryContext context, bool left, int width, RankedRows* side) {
  side->rows = row_count(node, left ? node->left : node->right);
  resize_array(context, &side->ranks, side->rows * static_cast<std::uint64_t>(width));
}

/// Sets rank `number` of each row to rank_of(value), or NaN where the value is NULL.
template <class RankOf>
void rank_side(JoinNode* node, bool left, ExprState* value, int width, int number, RankedRows* side,
               const RankOf& rank_of) {
  const KeyValues values(node, left ? node->left : node->right, -1, value);
  for (std::uint64_t row = 0; row < side->rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node->asked);
    side->ranks[row * width + number] =
        values.key(row, [&](Datum datum, bool is_null) { return is_null ? NAN : rank_of(datum); });
  }
  node->output.left_shown = kNoRow;
}

void sort_rows(MemoryContext context, int width, RankedRows* side) {
  resize_array(context, &side->order, side->rows);
  for (std::uint64_t row = 0; row < side->rows; ++row) {
    const double* const ranks = side->ranks + row * width;
    if (std::none_of(ranks, ranks + width, [](double rank) { return std::isnan(rank); }))
      side->order[side->count++] = row;
  }
  std::sort(side->order, side->order + side->count, [&](std::uint64_t a, std::uint64_t b) {
    return compare(side->ranks + a * width, side->ranks + b * width, width) < 0;
  });
}

/// Returns the end of the rows with the same ranks as the row at `begin`.
std::uint64_t end_of_run(const RankedRows& side, std::uint64_t begin, int width) {
  std::uint64_t end = begin + 1;
  while (end < side.count && compare(side.ranks + side.order[begin] * width,
                                     side.ranks + side.order[end] * width, width) == 0)
    ++end;
  return end;
}

// ---- The search

/// Whether the pair fulfils the conditions before the radius.
bool fulfils_early(JoinNode* node, std::uint64_t left, std::uint64_t right) {
  CHECK_FOR_INTERRUPTS();
  show_pair(node, left, right);
  return holds(node, node->conditions.order) && holds(node, node->conditions.early);
}

/// Looks among the pairs whose values are equal.
bool search_equal(JoinNode* node, MemoryContext context, const Equality* equalities, int width) {
  RankedRows left = {}, right = {};
  allocate_ranks(node, context, true, width, &left);
  allocate_ranks(node, context, false, width, &right);
  for (int k = 0; k < width; ++k) {
    const Equality& equality = equalities[k];
    const bool first_is_left = equality.first_is_left;
    RankFunctions functions = {};
    functions.type = equality.types[0];
    functions.collation = equality.collation;
    functions.hash = equality.hashes[0];
    functions.other_hash = equality.hashes[1];
    functions.equality = equality.same;
    functions.other_equality = equality.function;
    ValueRanks ranks(context, functions);
    rank_side(node, first_is_left, equality.values[0], width, k, first_is_left ? &left : &right,
              [&](Datum value) { return ranks.rank_of(value); });
    rank_side(node, !first_is_left, equality.values[1], width, k, first_is_left ? &right : &left,
              [&](Datum value) { return ranks.find_other(value); });
  }
  sort_rows(context, width, &left);
  sort_rows(context, width, &right);
  for (std::uint64_t l = 0, r = 0; l < left.count && r < right.count;) {
    const int order =
        compare(left.ranks + left.order[l] * width, right.ranks + right.order[r] * width, width);
    const std::uint64_t left_end = end_of_run(left, l, width);
    const std::uint64_t right_end = end_of_run(right, r, width);
    for (std::uint64_t i = l; order == 0 && i < left_end; ++i)
      for (std::uint64_t j = r; j < right_end; ++j)
        if (fulfils_early(node, left.order[i], right.order[j])) return true;
    if (order <= 0) l = left_end;
    if (order >= 0) r = right_end;
  }
  return false;
}

/// Whether some pair of rows fulfils the conditions before the radius. Tries a few pairs, as mostly
/// one of them does, then those whose values are equal; all pairs if there is no equality, as
/// PostgreSQL would.
bool search(JoinNode* node) {
  const std::uint64_t lefts = row_count(node, node->left), rights = row_count(node, node->right);
  const std::uint64_t few = lefts + rights;
  std::uint64_t tried = 0;
  bool has_equality = true;
  for (std::uint64_t left = 0; left < lefts; ++left) {
    for (std::uint64_t right = 0; right < rights; ++right) {
      if (fulfils_early(node, left, right)) return true;
      if (!has_equality || ++tried < few) continue;
      const MemoryContext context =
          AllocSetContextCreate(node->rows, "gpujoin equal rows", ALLOCSET_DEFAULT_SIZES);
      const MemoryContext caller = MemoryContextSwitchTo(context);
      int count;
      const Equality* const equalities = find_equalities(node, &count);
      has_equality = count > 0;
      const bool found = has_equality && search_equal(node, context, equalities, count);
      MemoryContextSwitchTo(caller);
      MemoryContextDelete(context);
      if (has_equality) return found;
    }
  }
  return false;
}

/// The same, remembered as long as the rows and the parameters of these conditions stay.
bool is_needed(JoinNode* node) {
  if (node->conditions.order == nullptr && node->conditions.early == nullptr) return true;
  Node* const conditions = reinterpret_cast<Node*>(node->expressions.early);
  if (node->inputs.eps_need == EpsNeed::kUnknown || contain_volatile_functions(conditions))
    node->inputs.eps_need = search(node) ? EpsNeed::kSome : EpsNeed::kNone;
  return node->inputs.eps_need == EpsNeed::kSome;
}

bool has_values(const Side& side) { return side.points.rows > 0 || side.odd.count > 0; }

}  // namespace

bool compute_eps(JoinNode* node, double* eps, bool* is_null) {
  if (!has_values(node->left) || !has_values(node->right)) return false;
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  const auto compute = [&] {
    ResetExprContext(expressions);
    const Datum value = ExecEvalExprSwitchContext(node->conditions.eps, expressions, is_null);
    *eps = *is_null ? 0 : DatumGetFloat8(value);
    ResetExprContext(expressions);
  };
  if (node->data.eps_may_raise) {
    if (node->data.can_drop_eps_error && try_run(is_about_value, compute)) return true;
    if (!is_needed(node)) return false;
  }
  compute();
  return true;
}

}  // namespace gpujoin
