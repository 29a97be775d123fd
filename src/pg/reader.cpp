// Runs a query over the relation with a receiver of its own, so that rows go straight from the
// executor into the dataset: no tuplestore, no copy of a tuple.
#include "pg/reader.h"

#include "pg/vector_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/geo_decls.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// The receiver of rows, and the points that it adds.
struct Reader {
  DestReceiver receiver;  // first: the executor knows no more than this
  const SideColumns* columns;
  PointBuffer points;
};

const char* relation_name(const Reader* reader) { return get_rel_name(reader->columns->relation); }

[[noreturn]] void raise_bad_vector(const Reader* reader, std::int64_t id, const VectorView& view) {
  const char* const name = relation_name(reader);
  const long long row = id;
  switch (view.problem) {
    case VectorProblem::kEmpty:
      ereport(ERROR,
              (errcode(ERRCODE_DATA_EXCEPTION),
               errmsg("the vector of row %lld of relation \"%s\" has no dimensions", row, name),
               errhint("Rows without a vector hold NULL, which matches nothing.")));
      break;
    case VectorProblem::kMultidimensional:
      ereport(ERROR,
              (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
               errmsg("the vector of row %lld of relation \"%s\" is an array of %d dimensions", row,
                      name, view.dims),
               errhint("A vector is a one-dimensional array.")));
      break;
    default:
      ereport(ERROR,
              (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
               errmsg("the vector of row %lld of relation \"%s\" holds a NULL", row, name),
               errhint("A vector whose coordinates are not all known can be NULL as a whole, "
                       "which matches nothing.")));
  }
  pg_unreachable();
}

/// Settles the number of dimensions with the first row, and holds the others to it.
void check_dims(Reader* reader, std::int64_t id, int dims) {
  PointBuffer& points = reader->points;
  if (points.dims == static_cast<std::uint32_t>(dims)) return;
  if (static_cast<std::uint32_t>(dims) > kMaxDimensions)
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("the vector of row %lld of relation \"%s\" has %d dimensions",
                           static_cast<long long>(id), relation_name(reader), dims),
                    errhint("A vector has at most %u dimensions.", kMaxDimensions)));
  if (points.dims != 0)
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("vectors of relation \"%s\" have different numbers of dimensions",
                    relation_name(reader)),
             errdetail("Row %lld has %u, row %lld has %d.", static_cast<long long>(points.ids[0]),
                       points.dims, static_cast<long long>(id), dims),
             errhint("Join rows of one number of dimensions, for example through a view.")));
  points.dims = static_cast<std::uint32_t>(dims);
}

/// Returns where the coordinates of the next row go.
char* start_row(Reader* reader, std::int64_t id, int dims) {
  check_dims(reader, id, dims);
  return add_point(&reader->points, id);
}

void add_array(Reader* reader, std::int64_t id, Datum value) {
  struct varlena* const stored = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  struct varlena* const array = pg_detoast_datum_packed(stored);
  const VectorView view = view_vector(array);
  if (view.problem != VectorProblem::kNone) raise_bad_vector(reader, id, view);
  check_dims(reader, id, view.dims);
  add_vector(&reader->points, id, view, reader->columns->kind == VectorKind::kFloat4Array);
  if (array != stored) pfree(array);
}

void add_point_value(Reader* reader, std::int64_t id, Datum value) {
  const Point* const point = DatumGetPointP(value);
  const double coordinates[2] = {point->x, point->y};
  std::memcpy(start_row(reader, id, 2), coordinates, sizeof coordinates);
}

void add_numbers(Reader* reader, std::int64_t id, const Datum* values) {
  const SideColumns& columns = *reader->columns;
  char* const target = start_row(reader, id, columns.count);
  for (int d = 0; d < columns.count; ++d) {
    // A numeric arrives as the float8 that the query casts it to.
    const double number = machine_number(columns.types[d], values[d]);
    if (reader->points.scalar == ScalarType::kFloat32)
      reinterpret_cast<float*>(target)[d] = static_cast<float>(number);
    else
      reinterpret_cast<double*>(target)[d] = number;
  }
}

std::int64_t id_value(const Reader* reader, Datum value) {
  switch (reader->columns->id_type) {
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    default:
      return DatumGetInt64(value);
  }
}

/// DestReceiver::receiveSlot. Column 1 is the id, the vector follows.
bool receive_row(TupleTableSlot* slot, DestReceiver* receiver) {
  Reader* const reader = reinterpret_cast<Reader*>(receiver);
  slot_getallattrs(slot);
  if (slot->tts_isnull[0])
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("a row of relation \"%s\" has a NULL id", relation_name(reader)),
                    errhint("Name an id column without NULLs, or leave such rows out, for example "
                            "through a view.")));
  for (int i = 1; i <= reader->columns->count; ++i)
    if (slot->tts_isnull[i]) return true;
  const std::int64_t id = id_value(reader, slot->tts_values[0]);
  switch (reader->columns->kind) {
    case VectorKind::kPoint:
      add_point_value(reader, id, slot->tts_values[1]);
      break;
    case VectorKind::kNumbers:
      add_numbers(reader, id, slot->tts_values + 1);
      break;
    default:
      add_array(reader, id, slot->tts_values[1]);
  }
  return true;
}

void ignore_startup(DestReceiver*, int, TupleDesc) {}
void ignore_receiver(DestReceiver*) {}

void append_column(StringInfo query, Oid relation, AttrNumber attribute) {
  appendStringInfoString(query, quote_identifier(get_attname(relation, attribute, false)));
}

/// `SELECT id, vector FROM schema.relation`, independent of search_path.
char* make_query(const SideColumns& columns) {
  StringInfoData query;
  initStringInfo(&query);
  appendStringInfoString(&query, "SELECT ");
  append_column(&query, columns.relation, columns.id);
  for (int i = 0; i < columns.count; ++i) {
    appendStringInfoString(&query, ", ");
    append_column(&query, columns.relation, columns.attributes[i]);
    if (columns.types[i] == NUMERICOID) appendStringInfoString(&query, "::pg_catalog.float8");
  }
  const char* const schema = get_namespace_name(get_rel_namespace(columns.relation));
  appendStringInfo(&query, " FROM %s",
                   quote_qualified_identifier(schema, get_rel_name(columns.relation)));
  return query.data;
}

void run_query(const char* query, DestReceiver* receiver) {
  SPIExecuteOptions options = {};
  options.read_only = true;  // under the snapshot of the query that joins
  options.dest = receiver;
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  const int result = SPI_execute_extended(query, &options);
  if (result != SPI_OK_SELECT)
    elog(ERROR, "could not read a relation: %s", SPI_result_code_string(result));
  SPI_finish();
}

}  // namespace

Dataset read_points(const SideColumns& columns, ScalarType scalar, std::uint64_t limit,
                    MemoryContext context) {
  Reader reader = {};
  reader.receiver.receiveSlot = receive_row;
  reader.receiver.rStartup = ignore_startup;
  reader.receiver.rShutdown = ignore_receiver;
  reader.receiver.rDestroy = ignore_receiver;
  reader.receiver.mydest = DestTuplestore;  // to SPI: rows are wanted, but not by it
  reader.columns = &columns;
  reader.points.context = context;
  reader.points.source = psprintf("relation \"%s\"", get_rel_name(columns.relation));
  reader.points.limit = limit;
  reader.points.scalar = scalar;
  char* const query = make_query(columns);
  run_query(query, &reader.receiver);
  pfree(query);
  return finish_points(&reader.points);
}

}  // namespace gpujoin
