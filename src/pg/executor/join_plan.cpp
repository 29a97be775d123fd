#include "pg/executor/join_plan.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
}

namespace gpujoin {
namespace {

/// Appends values as they lie in memory.
template <class T>
void put(StringInfo bytes, const T* values, int count) {
  if (count == 0) return;
  appendBinaryStringInfo(bytes, reinterpret_cast<const char*>(values),
                         static_cast<int>(sizeof(T)) * count);
}

/// Takes so many of them off again.
template <class T>
T* take(const char** bytes, int count) {
  const Size size = sizeof(T) * static_cast<Size>(count);
  T* const values = static_cast<T*>(palloc(std::max<Size>(1, size)));
  std::memcpy(static_cast<void*>(values), *bytes, size);
  *bytes += size;
  return values;
}

/// Tests are numbers in their tables, which lie elsewhere in another process.
void put_test(StringInfo bytes, const SimilarityTest& test) {
  const int number = test.type != nullptr ? test_number(test) : 0;
  put(bytes, &number, 1);
}

void take_test(const char** bytes, SimilarityTest* test) {
  const SimilarityTest found = numbered_test(*take<int>(bytes, 1));
  test->type = found.type;
  test->by = found.by;
}

constexpr int kExpressions = sizeof(JoinPlanExpressions) / sizeof(void*);

}  // namespace

Const* encode_join_plan(const JoinPlanData& data) {
  StringInfoData bytes;
  initStringInfo(&bytes);
  appendStringInfoSpaces(&bytes, VARHDRSZ);
  put(&bytes, &data, 1);
  put_test(&bytes, data.test);
  put_test(&bytes, data.nearest.radius);
  put(&bytes, data.columns.from_left, data.columns.count);
  put(&bytes, data.columns.attributes, data.columns.count);
  put(&bytes, data.groups.sums, data.groups.sum_count);
  put(&bytes, data.groups.operators, data.groups.columns);
  put(&bytes, data.groups.collations, data.groups.columns);
  put(&bytes, data.keys, data.key_count);
  SET_VARSIZE(bytes.data, bytes.len);
  return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes.data), false, false);
}

JoinPlanData decode_join_plan(const Const* encoded) {
  const char* bytes = VARDATA(DatumGetPointer(encoded->constvalue));
  JoinPlanData data = *take<JoinPlanData>(&bytes, 1);
  take_test(&bytes, &data.test);
  take_test(&bytes, &data.nearest.radius);
  data.columns.from_left = take<bool>(&bytes, data.columns.count);
  data.columns.attributes = take<AttrNumber>(&bytes, data.columns.count);
  data.groups.sums = take<SumPlan>(&bytes, data.groups.sum_count);
  data.groups.operators = take<Oid>(&bytes, data.groups.columns);
  data.groups.collations = take<Oid>(&bytes, data.groups.columns);
  data.keys = take<KeyPlan>(&bytes, data.key_count);
  return data;
}

List* encode_join_expressions(const JoinPlanExpressions& parts) {
  void* pointers[kExpressions];
  std::memcpy(pointers, &parts, sizeof parts);
  List* encoded = NIL;
  for (void* const pointer : pointers) encoded = lappend(encoded, pointer);
  return encoded;
}

JoinPlanExpressions decode_join_expressions(const List* encoded) {
  void* pointers[kExpressions];
  for (int i = 0; i < kExpressions; ++i) pointers[i] = list_nth(encoded, i);
  JoinPlanExpressions parts;
  std::memcpy(&parts, pointers, sizeof parts);
  return parts;
}

List* encode_key(const KeyExpressions& key) {
  return lappend(
      list_make5(key.values[0], key.values[1], key.high_values[0], key.high_values[1], key.offsets),
      key.conditions);
}

KeyExpressions decode_key(const List* encoded) {
  return {{static_cast<Expr*>(linitial(encoded)), static_cast<Expr*>(lsecond(encoded))},
          {static_cast<Expr*>(lthird(encoded)), static_cast<Expr*>(lfourth(encoded))},
          static_cast<List*>(list_nth(encoded, 4)),
          static_cast<List*>(list_nth(encoded, 5))};
}

List* encode_sum(const SumExpressions& sum) {
  return list_concat(list_make2(sum.argument, sum.filter), sum.leaves);
}

SumExpressions decode_sum(const List* encoded) {
  return {static_cast<Expr*>(linitial(encoded)), static_cast<Expr*>(lsecond(encoded)),
          list_copy_tail(encoded, 2)};
}

}  // namespace gpujoin
