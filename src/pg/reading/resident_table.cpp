#include "pg/reading/resident_table.h"

#include "pg/reading/heap_blocks.h"
#include "pg/reading/row_values.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/heap.h"
#include "catalog/pg_type.h"
#include "nodes/bitmapset.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
}

namespace gpujoin {
namespace {

/// The version of TableKey::columns, to be changed with what follows from the bytes.
constexpr std::uint32_t kLayout = 3;

/// What TableKey::columns begins with. No padding: keys are compared by their bytes.
struct KeyHead {
  std::uint32_t layout;
  std::int32_t form, scalar;
  std::uint32_t columns;  ///< that follow: id, vector or box, score
  std::uint32_t scored;   ///< 0: there is no score
};

struct KeyColumn {
  std::uint32_t type;
  std::int32_t typmod;
  std::int32_t attribute;
};

static_assert(sizeof(KeyHead) == 20 && sizeof(KeyColumn) == 12);

const FormData_pg_attribute* column_of(Relation relation, AttrNumber attribute) {
  return attribute < 0 ? SystemAttributeDefinition(attribute)
                       : TupleDescAttr(RelationGetDescr(relation), attribute - 1);
}

}  // namespace

bool can_read_blocks(Relation relation, const SideColumns& columns) {
  if (!has_readable_blocks(relation)) return false;
  // A function that was given a table's name reads the rows of those that inherit from it, too.
  if (relation->rd_rel->relhassubclass && columns.id != SelfItemPointerAttributeNumber)
    return false;
  if (check_enable_rls(RelationGetRelid(relation), InvalidOid, true) == RLS_ENABLED) return false;
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
  if (!has_provable_blocks(relation)) return false;
  const StoredFile file = stored_file(relation);
  std::memset(static_cast<void*>(key), 0, sizeof *key);
  key->relation = RelationGetRelid(relation);
  key->tablespace = file.tablespace;
  key->file = file.number;
  KeyHead head = {kLayout, static_cast<std::int32_t>(columns.form),
                  static_cast<std::int32_t>(scalar), 0, columns.score != InvalidAttrNumber};
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

}  // namespace gpujoin
