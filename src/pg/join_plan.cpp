#include "pg/join_plan.h"

extern "C" {
#include "nodes/pg_list.h"
#include "nodes/value.h"
}

namespace gpujoin {

List* encode_join_plan(const JoinPlanData& data) {
  List* numbers = list_make5_int(data.join_type, static_cast<int>(data.test.kind),
                                 static_cast<int>(data.test.metric),
                                 static_cast<int>(data.test.form), data.test.strict);
  for (const int number :
       {static_cast<int>(data.left_value), static_cast<int>(data.right_value),
        static_cast<int>(data.counts), static_cast<int>(data.grouped), data.nearest})
    numbers = lappend_int(numbers, number);
  for (int i = 0; i < data.column_count; ++i)
    numbers = lappend_int(lappend_int(numbers, data.from_left[i]), data.attributes[i]);
  return list_make3(numbers, makeString(pstrdup(data.condition)), makeString(pstrdup(data.filter)));
}

JoinPlanData decode_join_plan(const List* encoded) {
  const List* const numbers = static_cast<const List*>(linitial(encoded));
  const auto number = [&](int i) { return list_nth_int(numbers, i); };
  constexpr int kFirstColumn = 10;
  JoinPlanData data = {};
  data.join_type = static_cast<JoinType>(number(0));
  data.test = {static_cast<PointKind>(number(1)), static_cast<Metric>(number(2)),
               static_cast<TestForm>(number(3)), number(4) != 0};
  data.left_value = static_cast<AttrNumber>(number(5));
  data.right_value = static_cast<AttrNumber>(number(6));
  data.counts = number(7) != 0;
  data.grouped = number(8) != 0;
  data.nearest = number(9);
  data.column_count = (list_length(numbers) - kFirstColumn) / 2;
  data.from_left = static_cast<bool*>(palloc(data.column_count + 1));
  data.attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data.column_count + 1)));
  for (int i = 0; i < data.column_count; ++i) {
    data.from_left[i] = number(kFirstColumn + 2 * i) != 0;
    data.attributes[i] = static_cast<AttrNumber>(number(kFirstColumn + 2 * i + 1));
  }
  data.condition = strVal(lsecond(encoded));
  data.filter = strVal(lthird(encoded));
  return data;
}

}  // namespace gpujoin
