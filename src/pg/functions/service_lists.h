// Functions that return what the service lists, row by row.
#pragma once

#include "pg/functions/result_row.h"
#include "pg/service/questions.h"

namespace gpujoin {

/// What the service lists, in the memory context of a function that returns it row by row.
template <class Item>
struct Listing {
  Item* items;
  std::uint64_t count, next;
};

template <class Item, class Question, class Answer>
Listing<Item> ask_for_list() {
  Question question;
  service::start_message(&question);
  Answer answer;
  service::Descriptors descriptors;
  if (!ask_running_service(&question, sizeof question, &answer, sizeof answer, &descriptors))
    return {};
  void* const items = copy_listed(&descriptors, answer.count * sizeof(Item));
  return {static_cast<Item*>(items), answer.count, 0};
}

/// The body of such a function. make_row(item, row) is false for items that are not shown;
/// extend(listing) adds what the backend knows itself.
template <class Question, class Answer, class Item>
Datum list_rows(FunctionCallInfo fcinfo, bool (*make_row)(const Item& item, Row* row),
                void (*extend)(Listing<Item>* listing) = nullptr) {
  if (SRF_IS_FIRSTCALL()) {
    FuncCallContext* const first = start_rows(fcinfo);
    const MemoryContext caller = MemoryContextSwitchTo(first->multi_call_memory_ctx);
    auto* const listing = static_cast<Listing<Item>*>(palloc(sizeof(Listing<Item>)));
    *listing = ask_for_list<Item, Question, Answer>();
    if (extend != nullptr) extend(listing);
    first->user_fctx = listing;
    MemoryContextSwitchTo(caller);
  }
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  auto* const listing = static_cast<Listing<Item>*>(calls->user_fctx);
  while (listing->next < listing->count) {
    Row row = {};
    if (!make_row(listing->items[listing->next++], &row)) continue;
    // The macro leaves the function.
    const Datum tuple = make_tuple(calls->tuple_desc, &row);
    SRF_RETURN_NEXT(calls, tuple);
  }
  SRF_RETURN_DONE(calls);
}

}  // namespace gpujoin
