#include "pg/reading/resident_table.h"

#include "pg/types/vector_datum.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "nodes/bitmapset.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
}

namespace gpujoin {
namespace {

/// Of TableKey::columns, to be changed with what follows from the bytes.
constexpr std::uint32_t kLayout = 1;

/// What TableKey::columns begins with. No padding: keys are compared by their bytes.
struct KeyHead {
  std::uint32_t layout;
  std::int32_t shape, scalar;
  std::uint32_t columns;  ///< that follow: id, vector or box, score if there is one
};

struct KeyColumn {
  std::uint32_t type;
  std::int32_t typmod;
  std::int32_t attribute;
};

static_assert(sizeof(KeyHead) == 16 && sizeof(KeyColumn) == 12);

/// call(attribute, type read from it) for the id, the vector's columns and the score.
template <class Call>
void for_each_column(const SideColumns& columns, const Call& call) {
  call(columns.id, columns.id_type);
  for (int i = 0; i < columns.count; ++i) call(columns.attributes[i], columns.types[i]);
  if (columns.score != InvalidAttrNumber) call(columns.score, columns.score_type);
}

const FormData_pg_attribute* column_of(Relation relation, AttrNumber attribute) {
  return TupleDescAttr(RelationGetDescr(relation), attribute - 1);
}

/// Values as add_row() takes them. A numeric becomes the float8 of its cast.
struct BlockColumns {
  RowCollector* rows;
  int count;
  AttrNumber* attributes;  ///< [count]
  Oid* types;              ///< likewise
  Datum* values;           ///< likewise, of the row at hand
  bool* nulls;
};

BlockColumns make_columns(RowCollector* rows) {
  const SideColumns& side = *rows->columns;
  const int most = side.count + 2;
  BlockColumns columns = {rows,
                          0,
                          static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * most)),
                          static_cast<Oid*>(palloc(sizeof(Oid) * most)),
                          static_cast<Datum*>(palloc(sizeof(Datum) * most)),
                          static_cast<bool*>(palloc(sizeof(bool) * most))};
  for_each_column(side, [&](AttrNumber attribute, Oid type) {
    columns.attributes[columns.count] = attribute;
    columns.types[columns.count++] = type;
  });
  return columns;
}

void collect_slot(const BlockColumns& columns, const TupleTableSlot* slot) {
  for (int i = 0; i < columns.count; ++i) {
    const int at = columns.attributes[i] - 1;
    columns.nulls[i] = slot->tts_isnull[at];
    columns.values[i] = slot->tts_values[at];
    if (columns.types[i] == NUMERICOID && !columns.nulls[i])
      columns.values[i] = DirectFunctionCall1(numeric_float8, columns.values[i]);
  }
  collect_row(columns.rows, columns.values, columns.nulls);
}

}  // namespace

bool can_read_blocks(Relation relation, const SideColumns& columns) {
  const Oid table = RelationGetRelid(relation);
  if (!has_provable_blocks(relation)) return false;
  if (relation->rd_rel->relhassubclass && has_subclass(table)) return false;
  if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED) return false;
  bool can = true;
  for_each_column(columns, [&](AttrNumber attribute, Oid type) {
    const bool plain =
        type == NUMERICOID || attribute == columns.id || asked_type(columns, type) == type;
    can = can && plain && !is_virtual(column_of(relation, attribute));
  });
  return can;
}

void check_block_columns(const SideColumns& columns) {
  Bitmapset* selected = nullptr;
  for_each_column(columns, [&](AttrNumber attribute, Oid) {
    selected = bms_add_member(selected, attribute - FirstLowInvalidHeapAttributeNumber);
  });
  check_select(columns.relation, selected);
}

bool name_table(Relation relation, const SideColumns& columns, ScalarType scalar,
                service::TableKey* key) {
  const StoredFile file = stored_file(relation);
  std::memset(static_cast<void*>(key), 0, sizeof *key);
  key->relation = RelationGetRelid(relation);
  key->tablespace = file.tablespace;
  key->file = file.number;
  KeyHead head = {kLayout, static_cast<std::int32_t>(columns.shape),
                  static_cast<std::int32_t>(scalar), 0};
  key->columns_bytes = sizeof head;
  bool fits = true;
  for_each_column(columns, [&](AttrNumber attribute, Oid) {
    const FormData_pg_attribute* const form = column_of(relation, attribute);
    const KeyColumn column = {form->atttypid, form->atttypmod, attribute};
    // The catalog has the value of rows older than the column: a column that was rolled back and
    // made again has another one.
    fits =
        fits && !form->atthasmissing && key->columns_bytes + sizeof column <= sizeof key->columns;
    if (!fits) return;
    std::memcpy(key->columns + key->columns_bytes, &column, sizeof column);
    key->columns_bytes += sizeof column;
    ++head.columns;
  });
  std::memcpy(key->columns, &head, sizeof head);
  return fits;
}

Datum named_columns(const service::TableKey& key) {
  KeyHead head;
  std::memcpy(&head, key.columns, sizeof head);
  const std::uint32_t room = (sizeof key.columns - sizeof head) / sizeof(KeyColumn);
  const std::uint32_t count = head.layout == kLayout ? std::min(head.columns, room) : 0;
  ArrayBuildState* names = initArrayResult(NAMEOID, CurrentMemoryContext, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    KeyColumn column;
    std::memcpy(&column, key.columns + sizeof head + i * sizeof column, sizeof column);
    char* const name = get_attname(key.relation, static_cast<AttrNumber>(column.attribute), true);
    if (name == nullptr) continue;
    const Datum value = DirectFunctionCall1(namein, CStringGetDatum(name));
    names = accumArrayResult(names, value, false, NAMEOID, CurrentMemoryContext);
  }
  return makeArrayResult(names, CurrentMemoryContext);
}

BlocksRead read_blocks(Relation relation, RowCollector* rows, const KeptBlocks& kept) {
  const BlockColumns columns = make_columns(rows);
  AttrNumber last = 0;
  for (int i = 0; i < columns.count; ++i) last = std::max(last, columns.attributes[i]);
  return read_unproven_blocks(
      relation, last, kept, *rows->points,
      [&columns](const TupleTableSlot* slot) { collect_slot(columns, slot); });
}

}  // namespace gpujoin
