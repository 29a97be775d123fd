// The plan node GpuSimilarityJoin, in three forms under one name. In FROM it stands for one of the
// set-returning functions and streams what they return: function_path.cpp plans that form,
// function_node.cpp runs it. Over two inputs it joins them by a distance, or finds nearest rows.
// join_path.cpp and nearest_path.cpp add paths of that form, pair_plan.cpp and nearest_plan.cpp
// make the plan, and join_node.cpp runs it. upper_path.cpp plans counts and first rows of either
// form. explain.cpp and join_explain.cpp describe them. Over a window it stands for the clusters of
// PostGIS's window functions: window_path.cpp plans that form, cluster_node.cpp runs it.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace gpujoin {

inline constexpr const char* kCustomScanName = "GpuSimilarityJoin";

/// Each with paths, plans and states of its own; see above.
enum class NodeForm { kFunction, kJoin, kClusters };

/// Makes a path of the node of one that the caller has zeroed. path_data() returns `data`, which is
/// a Node, a List or null.
void init_custom_path(CustomPath* path, NodeForm form, RelOptInfo* parent, void* data);

/// Returns a path of the node that takes the place of another one: with its rows, costs and target.
CustomPath* make_custom_path(const Path& instead_of, NodeForm form, RelOptInfo* parent, void* data);

/// Returns true if it is a path of the node in this form.
bool is_custom_path(const Path* path, NodeForm form);
void* path_data(const CustomPath* path);

/// CustomPathMethods::PlanCustomPath of each form.
Plan* plan_function(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* columns,
                    List* clauses, List* inputs);
Plan* plan_join(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* columns, List* clauses,
                List* inputs);
Plan* plan_clusters(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* columns,
                    List* clauses, List* inputs);

/// Returns a plan of the node. `data`, a Node or a List, is what plan_data() finds.
CustomScan* make_custom_scan(NodeForm form, uint32 flags, List* columns, void* data);
void* plan_data(const CustomScan* plan);

/// Called once, when the module is loaded.
void install_custom_scan();

/// Sets the hook for functions in FROM.
void install_function_path();
/// Sets the hooks for joins.
void install_join_path();
/// Sets the hook for scans of tables, GpuSimilarityScan.
void install_search_path();
/// Sets the hook for what stands above either.
void install_upper_path();
/// Sets the hook for statements whose nodes need subtransactions.
void install_serial_statements();

/// The methods of a node of ours. It has none of the optional ones, such as mark and restore.
constexpr CustomExecMethods make_exec_methods(
    decltype(CustomExecMethods::BeginCustomScan) begin,
    decltype(CustomExecMethods::ExecCustomScan) next,
    decltype(CustomExecMethods::EndCustomScan) end,
    decltype(CustomExecMethods::ReScanCustomScan) rescan,
    decltype(CustomExecMethods::ExplainCustomScan) explain) {
  CustomExecMethods methods = {};
  methods.CustomName = kCustomScanName;
  methods.BeginCustomScan = begin;
  methods.ExecCustomScan = next;
  methods.EndCustomScan = end;
  methods.ReScanCustomScan = rescan;
  methods.ExplainCustomScan = explain;
  return methods;
}

/// Appends a copy of the expression as one more column of a scan tuple.
void append_column(List** columns, const void* expression);

/// Raises an error if the user may not call a function or an aggregate. The node checks what it
/// stands for without calling it.
void check_execute_privilege(Oid function);

/// Checks the aggregates among the columns of a scan tuple, whose results the node returns.
void check_aggregates(const List* columns);

/// CustomScanMethods::CreateCustomScanState of each form.
Node* create_function_node(CustomScan* plan);
Node* create_join_node(CustomScan* plan);
Node* create_cluster_node(CustomScan* plan);

}  // namespace gpujoin
