#include "pg/join_plan.h"

extern "C" {
#include "nodes/pg_list.h"
#include "nodes/value.h"
}

namespace gpujoin {
namespace {

/// Appends numbers to a list.
struct Encoder {
  List* numbers;

  template <class T>
  void operator()(const T& number) {
    numbers = lappend_int(numbers, static_cast<int>(number));
  }
};

/// Takes them off again, in the same order.
struct Decoder {
  const List* numbers;
  int next;

  template <class T>
  void operator()(T& number) {
    number = static_cast<T>(list_nth_int(numbers, next++));
  }
};

/// Passes the plan's numbers, but for the columns, to either.
template <class Data, class Coder>
void code(Data& data, Coder& coder) {
  coder(data.join_type);
  coder(data.test.kind);
  coder(data.test.metric);
  coder(data.test.form);
  coder(data.test.strict);
  coder(data.left_value);
  coder(data.right_value);
  coder(data.counts);
  coder(data.grouped);
  auto& top = data.top;
  coder(top.k);
  coder(top.function);
  coder(top.lowest_first);
  coder(top.ties);
  coder(top.signs[0]);
  coder(top.signs[1]);
  coder(top.type);
  coder(top.left_type);
  coder(top.right_type);
  coder(top.left_score);
  coder(top.right_score);
  coder(data.column_count);
}

}  // namespace

List* encode_join_plan(const JoinPlanData& data) {
  Encoder encoder = {NIL};
  code(data, encoder);
  for (int i = 0; i < data.column_count; ++i) {
    encoder(data.from_left[i]);
    encoder(data.attributes[i]);
  }
  return list_make4(encoder.numbers, makeString(pstrdup(data.condition)),
                    makeString(pstrdup(data.filter)), makeString(pstrdup(data.order)));
}

JoinPlanData decode_join_plan(const List* encoded) {
  Decoder decoder = {static_cast<const List*>(linitial(encoded)), 0};
  JoinPlanData data = {};
  code(data, decoder);
  data.from_left = static_cast<bool*>(palloc(data.column_count + 1));
  data.attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data.column_count + 1)));
  for (int i = 0; i < data.column_count; ++i) {
    decoder(data.from_left[i]);
    decoder(data.attributes[i]);
  }
  data.condition = strVal(lsecond(encoded));
  data.filter = strVal(lthird(encoded));
  data.order = strVal(lfourth(encoded));
  return data;
}

}  // namespace gpujoin
