#include "pg/executor/join_plan.h"

extern "C" {
#include "nodes/pg_list.h"
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

/// Passes the plan's numbers, but for the test and the columns, to either.
template <class Data, class Coder>
void code(Data& data, Coder& coder) {
  coder(data.join_type);
  coder(data.left_value);
  coder(data.right_value);
  coder(data.left_trap);
  coder(data.right_trap);
  coder(data.eps_may_raise);
  coder(data.counts);
  coder(data.names_matches);
  coder(data.grouped);
  coder(data.order.order);
  coder(data.order.type);
  coder(data.order.left_column);
  coder(data.order.right_column);
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
  encoder(test_number(data.test));
  encoder(data.test.strict);
  code(data, encoder);
  for (int i = 0; i < data.column_count; ++i) {
    encoder(data.from_left[i]);
    encoder(data.attributes[i]);
  }
  return encoder.numbers;
}

JoinPlanData decode_join_plan(const List* encoded) {
  Decoder decoder = {encoded, 0};
  JoinPlanData data = {};
  int test;
  bool strict;
  decoder(test);
  decoder(strict);
  data.test = numbered_test(test, strict);
  code(data, decoder);
  data.from_left = static_cast<bool*>(palloc(data.column_count + 1));
  data.attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data.column_count + 1)));
  for (int i = 0; i < data.column_count; ++i) {
    decoder(data.from_left[i]);
    decoder(data.attributes[i]);
  }
  return data;
}

List* encode_join_expressions(const JoinPlanExpressions& parts) {
  List* encoded = NIL;
  for (const void* const part :
       {static_cast<const void*>(parts.order), static_cast<const void*>(parts.early),
        static_cast<const void*>(parts.condition), static_cast<const void*>(parts.late),
        static_cast<const void*>(parts.where), static_cast<const void*>(parts.guard),
        static_cast<const void*>(parts.eps), static_cast<const void*>(parts.left_operand),
        static_cast<const void*>(parts.right_operand), static_cast<const void*>(parts.score)})
    encoded = lappend(encoded, const_cast<void*>(part));
  return encoded;
}

JoinPlanExpressions decode_join_expressions(const List* encoded) {
  int next = 0;
  const auto take = [&] { return list_nth(encoded, next++); };
  JoinPlanExpressions parts;
  parts.order = static_cast<List*>(take());
  parts.early = static_cast<List*>(take());
  parts.condition = static_cast<Expr*>(take());
  parts.late = static_cast<List*>(take());
  parts.where = static_cast<List*>(take());
  parts.guard = static_cast<List*>(take());
  parts.eps = static_cast<Expr*>(take());
  parts.left_operand = static_cast<Expr*>(take());
  parts.right_operand = static_cast<Expr*>(take());
  parts.score = static_cast<Expr*>(take());
  return parts;
}

}  // namespace gpujoin
