// A node that ran several times reports its last run.
#include "pg/executor/explain.h"

#include "engine/strategy/box_strategy.h"
#include "pg/executor/function_node.h"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// The value of an argument if it is a constant other than NULL.
const Const* constant_argument(const FuncExpr* call, int position) {
  if (position < 0) return nullptr;
  const Node* const argument = static_cast<const Node*>(list_nth(call->args, position));
  if (!IsA(argument, Const)) return nullptr;
  const Const* const constant = reinterpret_cast<const Const*>(argument);
  return constant->constisnull ? nullptr : constant;
}

/// Prints a text argument; where it is a constant NULL, `otherwise`, unless that is null.
void explain_text_argument(const char* label, const FuncExpr* call, int position,
                           const char* otherwise, ExplainState* es) {
  if (position < 0) return;
  const Node* const argument = static_cast<const Node*>(list_nth(call->args, position));
  if (!IsA(argument, Const)) return;
  const Const* const constant = constant_argument(call, position);
  const char* const word = constant ? TextDatumGetCString(constant->constvalue) : otherwise;
  if (word != nullptr) ExplainPropertyText(label, word, es);
}

/// Which function is called, by the query's name for it, as in the title of a function scan.
void explain_function(const CustomScan* plan, const FuncExpr* call, ExplainState* es) {
  const char* const name = get_func_name(call->funcid);
  const char* const schema =
      es->verbose ? get_namespace_name(get_func_namespace(call->funcid)) : nullptr;
  const int number = bms_next_member(plan->custom_relids, -1);  // none where rows are counted
  const char* const alias =
      number > 0 ? static_cast<const char*>(list_nth(es->rtable_names, number - 1)) : nullptr;
  if (es->format == EXPLAIN_FORMAT_TEXT) {
    const bool renamed = alias != nullptr && strcmp(alias, name) != 0;
    ExplainPropertyText("Function",
                        psprintf("%s%s%s", quote_qualified_identifier(schema, name),
                                 renamed ? " " : "", renamed ? quote_identifier(alias) : ""),
                        es);
    return;
  }
  ExplainPropertyText("Function Name", name, es);
  if (schema != nullptr) ExplainPropertyText("Schema", schema, es);
  if (alias != nullptr) ExplainPropertyText("Alias", alias, es);
}

/// The name of a table that a function takes; null where it has none.
const char* relation_name(Oid relation, const ExplainState* es) {
  const char* const name = get_rel_name(relation);
  if (name == nullptr) return nullptr;
  if (es->verbose)
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
  return es->format == EXPLAIN_FORMAT_TEXT ? quote_identifier(name) : name;
}

/// What is asked for, as far as it is known without running.
void explain_call(const FuncExpr* call, const Operation* operation, ExplainState* es) {
  const ArgumentPositions& at = operation->function.at;
  const char* const labels[] = {
      operation->function.takes_one_table() ? "Relation" : "Left Relation", "Right Relation"};
  for (int side = 0; side < 2; ++side) {
    const Const* const relation = constant_argument(call, at.relation[side]);
    const char* const name =
        relation ? relation_name(DatumGetObjectId(relation->constvalue), es) : nullptr;
    if (name != nullptr) ExplainPropertyText(labels[side], name, es);
  }
  explain_text_argument("Metric", call, at.metric, "l2", es);
  explain_text_argument("Pair Selection", call, at.pairs, "all", es);
  const Const* const eps = constant_argument(call, at.eps);
  if (eps != nullptr) explain_number("Epsilon", DatumGetFloat8(eps->constvalue), es);
  const Const* const k = constant_argument(call, at.k);
  if (k != nullptr)
    explain_count("K", static_cast<std::uint64_t>(DatumGetInt64(k->constvalue)), es);
  const Const* const min_points = constant_argument(call, at.min_points);
  if (min_points != nullptr)
    explain_count("Minimum Points",
                  static_cast<std::uint64_t>(DatumGetInt64(min_points->constvalue)), es);
  const Const* const size = constant_argument(call, at.min_cluster_size);
  if (size != nullptr)
    explain_count("Minimum Cluster Size",
                  static_cast<std::uint64_t>(DatumGetInt64(size->constvalue)), es);
  const Const* const partition = constant_argument(call, at.partition_column);
  if (partition != nullptr)
    ExplainPropertyText("Partition Column", NameStr(*DatumGetName(partition->constvalue)), es);
  explain_text_argument("Score Function", call, at.score, "sum", es);
  if (operation->function.output != Output::kDuplicates)
    return explain_text_argument("Best", call, at.best, nullptr, es);
  const Const* const ranks = constant_argument(call, at.score_column[0]);
  if (ranks == nullptr) return;
  ExplainPropertyText("Keep Column", NameStr(*DatumGetName(ranks->constvalue)), es);
  explain_text_argument("Keep", call, at.best, nullptr, es);
}

/// What the columns of an index are.
struct ColumnCounts {
  std::uint32_t dims, keys;
};

/// The name of an index column: counted from 1 as SQL does, a key's, or of a reference point's
/// distances.
char* column_name(std::uint32_t column, const ColumnCounts& counts) {
  if (column < counts.dims) return psprintf("%u", column + 1);
  column -= counts.dims;
  return column < counts.keys ? psprintf("k%u", column + 1)
                              : psprintf("r%u", column - counts.keys + 1);
}

/// What each index method that was considered is expected to cost.
void explain_costs(const Strategy& strategy, ExplainState* es) {
  StringInfoData text;
  initStringInfo(&text);
  for (int method = 0; method < kIndexMethodCount; ++method) {
    const double ms = strategy.estimates[method].ms;
    if (ms > 0)
      appendStringInfo(&text, "%s%s %.3g ms", text.len > 0 ? ", " : "",
                       to_string(static_cast<IndexMethod>(method)), ms);
  }
  if (text.len > 0) ExplainPropertyText("Expected Cost", text.data, es);
}

/// The index of a join of points.
void explain_index(const Strategy& strategy, const ColumnCounts& counts, ExplainState* es) {
  ExplainPropertyText("Index", to_string(strategy.index), es);
  if (!is_detailed(es)) return;
  explain_count("Indexed Dimensions", strategy.grid_dims, es);
  List* columns = NIL;
  for (std::uint32_t d = 0; d < strategy.grid_dims; ++d)
    columns = lappend(columns, column_name(strategy.grid_columns[d], counts));
  if (columns != NIL) ExplainPropertyList("Indexed Columns", columns, es);
  if (strategy.sort_column != kNoColumn) {
    const auto sorted = static_cast<std::uint32_t>(strategy.sort_column);
    if (sorted < counts.dims)
      explain_count("Sort Column", sorted + 1, es);
    else
      ExplainPropertyText("Sort Column", column_name(sorted, counts), es);
  }
  if (strategy.reference_points > 0) {
    explain_count("Reference Points", strategy.reference_points, es);
    ExplainPropertyText("Reference Placement", to_string(strategy.reference_placement), es);
  }
  ExplainPropertyText("Access Pattern", to_string(strategy.access_pattern), es);
  ExplainPropertyText("Cell Order", to_string(strategy.cell_order), es);
  ExplainPropertyBool("Reordered Dimensions", strategy.reorder_dimensions, es);
  ExplainPropertyBool("Short Circuit", strategy.short_circuit, es);
}

/// How pairs were found.
void explain_strategy(const JoinStats& stats, const ColumnCounts& counts, ExplainState* es) {
  const bool ranks = stats.topk_method != TopkMethod::kAuto;
  if (ranks) ExplainPropertyText("Top-k Method", to_string(stats.topk_method), es);
  if (ranks && is_detailed(es)) explain_count("Top-k Rounds", stats.topk_rounds, es);
  if (stats.box_method != BoxMethod::kAuto)
    ExplainPropertyText("Box Method", to_string(stats.box_method), es);
  else if (!ranks || is_detailed(es))
    explain_index(stats.strategy, counts, es);
  if (!is_detailed(es)) return;
  ExplainPropertyText("Strategy Reason", stats.strategy.reason, es);
  if (es->costs) explain_costs(stats.strategy, es);
}

void explain_machine(const JoinStats& stats, ExplainState* es) {
  explain_count("Threads", stats.threads, es);
  ExplainPropertyText("Instruction Set", stats.instruction_set, es);
  if (stats.threads_per_point > 0) explain_count("Threads per Point", stats.threads_per_point, es);
  if (stats.streams > 0) explain_count("Streams", stats.streams, es);
  if (stats.devices > 0) ExplainPropertyText("Devices", shares_of_devices(stats), es);
}

void explain_pairs(const JoinStats& stats, ExplainState* es) {
  explain_count("Candidate Pairs", stats.candidates, es);
  if (is_detailed(es)) explain_count("Rechecked Pairs", stats.rechecked, es);
  explain_count("Pairs", stats.pairs, es);
  if (is_detailed(es)) explain_count("Batches", stats.batches, es);
  if (stats.parts > 0) explain_count("Parts", stats.parts, es);
}

void explain_memory(const JoinReport& report, ExplainState* es) {
  const JoinStats& stats = report.stats;
  ExplainPropertyInteger(
      "Host Memory", "kB",
      static_cast<std::int64_t>((report.dataset_bytes + stats.memory_peak) / 1024), es);
  if (stats.device_memory_peak > 0)
    ExplainPropertyInteger("Device Memory", "kB",
                           static_cast<std::int64_t>(stats.device_memory_peak / 1024), es);
}

void explain_times(const JoinReport& report, ExplainState* es) {
  ExplainPropertyFloat("Read Time", "ms", report.read_ms, 3, es);
  ExplainPropertyFloat("Index Time", "ms", report.stats.index_ms, 3, es);
  ExplainPropertyFloat("Join Time", "ms", report.stats.join_ms, 3, es);
}

}  // namespace

void explain_number(const char* label, double number, ExplainState* es) {
  for (int digits = 0; digits <= 20; ++digits) {
    char* const text = psprintf("%.*f", digits, number);
    if (strtod(text, nullptr) != number) continue;
    ExplainPropertyFloat(label, nullptr, number, digits, es);
    return;
  }
  ExplainPropertyText(label, float8out_internal(number), es);
}

void explain_count(const char* label, std::uint64_t count, ExplainState* es) {
  ExplainPropertyInteger(label, nullptr, static_cast<std::int64_t>(count), es);
}

void explain_removed(const char* label, double rows, const PlanState* state, ExplainState* es) {
  if (state->instrument == nullptr) return;
  if (rows > 0 || es->format != EXPLAIN_FORMAT_TEXT)
    ExplainPropertyFloat(label, nullptr, rows / std::fmax(state->instrument->nloops, 1), 0, es);
}

const char* shares_of_devices(const JoinStats& stats) {
  double all = 0;
  for (std::uint32_t i = 0; i < stats.devices; ++i)
    all += static_cast<double>(stats.shares[i].candidates);
  StringInfoData text;
  initStringInfo(&text);
  for (std::uint32_t i = 0; i < stats.devices; ++i)
    appendStringInfo(&text, "%s%d: %.0f %%", i > 0 ? ", " : "", stats.shares[i].device,
                     all > 0 ? 100 * static_cast<double>(stats.shares[i].candidates) / all : 0.0);
  return text.data;
}

void explain_report(const JoinReport& report, ExplainState* es) {
  if (report.engine != nullptr) ExplainPropertyText("Engine", report.engine, es);
  if (report.fallback[0] != '\0') ExplainPropertyText("Engine Fallback", report.fallback, es);
  if (report.engine == nullptr) return;
  const bool in_session = strcmp(report.place, "session") == 0;
  if (!in_session || is_detailed(es)) ExplainPropertyText("Joined In", report.place, es);
  if (report.place_reason[0] != '\0')
    ExplainPropertyText("Service Fallback", report.place_reason, es);
  if (report.table_blocks > 0) {
    explain_count("Resident Blocks", report.table_blocks - report.blocks_read, es);
    explain_count("Blocks Read", report.blocks_read, es);
  }
  if (report.read_workers > 0) explain_count("Read Workers", report.read_workers, es);
  if (is_detailed(es)) explain_machine(report.stats, es);
  explain_strategy(report.stats, {report.dims, report.keys}, es);
  explain_pairs(report.stats, es);
  if (is_detailed(es)) explain_memory(report, es);
  if (es->timing) explain_times(report, es);
}

void explain_kept_rows(KeptRows kept, ExplainState* es) {
  constexpr const char* kNames[] = {"None", "Memory", "Disk"};
  if (kept == KeptRows::kDisk || is_detailed(es))
    ExplainPropertyText("Kept Rows", kNames[static_cast<int>(kept)], es);
}

void explain_function_node(CustomScanState* state, List*, ExplainState* es) {
  FunctionNode* const node = reinterpret_cast<FunctionNode*>(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  ExplainPropertyText("Join Method", node->operation->method, es);
  explain_function(plan, planned_call(plan), es);
  explain_call(planned_call(plan), node->operation, es);
  if (node->counts) ExplainPropertyText("Counts", "pairs", es);
  // Where an argument is NULL nothing ran.
  if (es->analyze && node->scan != nullptr) explain_report(report_run(&node->scan->run), es);
}

}  // namespace gpujoin
