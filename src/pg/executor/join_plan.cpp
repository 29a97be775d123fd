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
  coder(data.left_filter);
  coder(data.right_filter);
  coder(data.eps_may_raise);
  coder(data.can_drop_eps_error);
  coder(data.left_radius);
  coder(data.right_radius);
  coder(data.rounds_radii);
  coder(data.boxes);
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
  coder(data.nearest.processes);
  coder(data.sum_count);
  coder(data.groups_may_raise);
  coder(data.sums_refusal);
  coder(data.finishes_sums);
  coder(data.group_columns);
  coder(data.key_count);
  coder(data.column_count);
}

/// Likewise those of an aggregate.
template <class Sum, class Coder>
void code_sum(Sum& sum, Coder& coder) {
  coder(sum.state);
  coder(sum.of);
  coder(sum.filter);
  coder(sum.type);
  coder(sum.scale);
  coder(sum.step_count);
  coder(sum.leaf_count);
  for (int i = 0; i < sum.step_count; ++i) {
    coder(sum.steps[i]);
    coder(sum.leaves[i]);
  }
  for (int i = 0; i < sum.leaf_count; ++i) coder(sum.leaf_is_left[i]);
  coder(sum.combination);
  for (int i = 0; i < 2; ++i) {
    coder(sum.leaf_types[i]);
    coder(sum.leaf_scales[i]);
  }
}

/// Likewise those of a key.
template <class Key, class Coder>
void code_key(Key& key, Coder& coder) {
  coder(key.numbers);
  coder(key.is_interval);
  for (int i = 0; i < 2; ++i) {
    coder(key.types[i]);
    coder(key.high_types[i]);
    coder(key.ranges[i].is_made);
    coder(key.ranges[i].has_low);
    coder(key.ranges[i].has_high);
  }
  coder(key.equality);
  coder(key.collation);
  coder(key.bound_count);
  for (int i = 0; i < key.bound_count; ++i) {
    coder(key.bounds[i].form);
    coder(key.bounds[i].strict);
    coder(key.bounds[i].negated);
    coder(key.bounds[i].summed);
    coder(key.bounds[i].type);
  }
}

template <class T>
T* allocate(int count) {
  return static_cast<T*>(palloc0(sizeof(T) * (count + 1)));
}

}  // namespace

namespace {

void encode_test(const SimilarityTest& test, Encoder* encoder) {
  (*encoder)(test.type != nullptr ? test_number(test) : 0);
  for (const bool flag : {test.strict, test.open, test.of_nan, test.of_null}) (*encoder)(flag);
}

SimilarityTest decode_test(Decoder* decoder) {
  int number;
  (*decoder)(number);
  SimilarityTest test = numbered_test(number);
  for (bool* const flag : {&test.strict, &test.open, &test.of_nan, &test.of_null})
    (*decoder)(*flag);
  return test;
}

}  // namespace

List* encode_join_plan(const JoinPlanData& data) {
  Encoder encoder = {NIL};
  encode_test(data.test, &encoder);
  const NearestPlan& nearest = data.nearest;
  encoder(nearest.wanted);
  encoder(nearest.has_radius);
  encode_test(nearest.radius, &encoder);
  code(data, encoder);
  for (int i = 0; i < data.column_count; ++i) {
    encoder(data.from_left[i]);
    encoder(data.attributes[i]);
  }
  for (int i = 0; i < data.sum_count; ++i) code_sum(data.sums[i], encoder);
  for (int i = 0; i < data.group_columns; ++i) {
    encoder(data.group_operators[i]);
    encoder(data.group_collations[i]);
  }
  for (int i = 0; i < data.key_count; ++i) code_key(data.keys[i], encoder);
  return encoder.numbers;
}

JoinPlanData decode_join_plan(const List* encoded) {
  Decoder decoder = {encoded, 0};
  JoinPlanData data = {};
  data.test = decode_test(&decoder);
  decoder(data.nearest.wanted);
  decoder(data.nearest.has_radius);
  data.nearest.radius = decode_test(&decoder);
  code(data, decoder);
  data.from_left = allocate<bool>(data.column_count);
  data.attributes = allocate<AttrNumber>(data.column_count);
  for (int i = 0; i < data.column_count; ++i) {
    decoder(data.from_left[i]);
    decoder(data.attributes[i]);
  }
  data.sums = allocate<SumPlan>(data.sum_count);
  for (int i = 0; i < data.sum_count; ++i) code_sum(data.sums[i], decoder);
  data.group_operators = allocate<Oid>(data.group_columns);
  data.group_collations = allocate<Oid>(data.group_columns);
  for (int i = 0; i < data.group_columns; ++i) {
    decoder(data.group_operators[i]);
    decoder(data.group_collations[i]);
  }
  data.keys = allocate<KeyPlan>(data.key_count);
  for (int i = 0; i < data.key_count; ++i) code_key(data.keys[i], decoder);
  return data;
}

List* encode_join_expressions(const JoinPlanExpressions& parts) {
  List* encoded = NIL;
  for (const void* const part :
       {static_cast<const void*>(parts.order), static_cast<const void*>(parts.early),
        static_cast<const void*>(parts.condition), static_cast<const void*>(parts.late),
        static_cast<const void*>(parts.where), static_cast<const void*>(parts.guard),
        static_cast<const void*>(parts.eps), static_cast<const void*>(parts.left_operand),
        static_cast<const void*>(parts.right_operand), static_cast<const void*>(parts.score),
        static_cast<const void*>(parts.groups), static_cast<const void*>(parts.sums),
        static_cast<const void*>(parts.distance), static_cast<const void*>(parts.limit),
        static_cast<const void*>(parts.outputs), static_cast<const void*>(parts.keys)})
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
  parts.groups = static_cast<List*>(take());
  parts.sums = static_cast<List*>(take());
  parts.distance = static_cast<Expr*>(take());
  parts.limit = static_cast<Expr*>(take());
  parts.outputs = static_cast<List*>(take());
  parts.keys = static_cast<List*>(take());
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
