#include "pg/planner/planning.h"

namespace gpujoin {
namespace {

Planning* plannings = nullptr;  // the one that was asked for last comes first
std::uint64_t begun = 0;

/// Takes the planning out of the list. Returns null if the list does not have it.
Planning* take_out(const PlannerInfo* root) {
  for (Planning** place = &plannings; *place != nullptr; place = &(*place)->next) {
    Planning* const found = *place;
    if (found->root != root) continue;
    *place = found->next;
    return found;
  }
  return nullptr;
}

/// MemoryContextCallback::func.
void forget(void* root) { take_out(static_cast<const PlannerInfo*>(root)); }

Planning* begin(PlannerInfo* root) {
  auto* const callback = static_cast<MemoryContextCallback*>(
      MemoryContextAlloc(root->planner_cxt, sizeof(MemoryContextCallback)));
  auto* const planning =
      static_cast<Planning*>(MemoryContextAllocZero(root->planner_cxt, sizeof(Planning)));
  planning->root = root;
  planning->number = begun++;
  *callback = {forget, root, nullptr};
  MemoryContextRegisterResetCallback(root->planner_cxt, callback);
  return planning;
}

}  // namespace

Planning* planning_of(PlannerInfo* root) {
  if (plannings != nullptr && plannings->root == root) return plannings;
  Planning* found = take_out(root);
  if (found == nullptr) found = begin(root);
  found->next = plannings;
  plannings = found;
  return found;
}

std::uint64_t plannings_begun() { return begun; }

const Planning* latest_planning() { return plannings; }

}  // namespace gpujoin
