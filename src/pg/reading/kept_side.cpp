#include "pg/reading/kept_side.h"

#include <cmath>

#include "pg/reading/block_rows.h"
#include "pg/service/reach_service.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"
#include "pg/types/product_test.h"

extern "C" {
#include "access/table.h"
#include "storage/bufmgr.h"
}

namespace gpujoin {
namespace {

/// What the service keeps of a table for its readers.
union Traits {
  ValueShape shape;
  service::TableTraits bytes;
};
static_assert(sizeof(ValueShape) <= sizeof(service::TableTraits));

/// What the service has of a table, mapped until the memory context ends.
struct FoundSide {
  service::FoundTable table;
  service::SharedRegion proof;
};

FoundSide* make_found() {
  FoundSide* const found = static_cast<FoundSide*>(palloc0(sizeof(FoundSide)));
  found->proof = {};
  call_at_end(
      CurrentMemoryContext,
      [](void* ended) { service::close_region(&static_cast<FoundSide*>(ended)->proof); }, found);
  return found;
}

/// Takes the answer over. False: it is none, and the conversation of no further use.
bool take_answer(const void* buffer, service::Descriptors* descriptors, FoundSide* found) {
  const auto* const table = service::message_as<service::FoundTable>(buffer);
  if (table == nullptr) return false;
  found->table = *table;
  if (table->version == 0) return true;
  const int file = descriptors->take();
  return file >= 0 &&
         service::map_region(file, proof_bytes(table->map_pages, table->blocks), &found->proof)
             .ok();
}

/// Makes the message that asks the service for a table.
service::FindTable question_of(Relation relation, const service::TableKey& key) {
  service::FindTable question;
  service::start_message(&question);
  question.key = key;
  copy_file_path(relation, question.path, sizeof question.path);
  return question;
}

/// Asks the service for the table; null where the conversation has ended.
FoundSide* find_table(Connection* connection, std::uint32_t side, Relation relation,
                      const service::TableKey& key, std::uint64_t bytes) {
  service::FindTable question = question_of(relation, key);
  question.side = side;
  question.expected_bytes = bytes;
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  service::Descriptors descriptors;
  if (ask_service(connection, &question, sizeof question, buffer, &descriptors) !=
      Arrival::kMessage)
    return nullptr;
  FoundSide* const found = make_found();
  const bool taken = take_answer(buffer, &descriptors, found);
  service::close_descriptors(&descriptors);
  if (taken) return found;
  close_connection(connection);
  return nullptr;
}

/// Rows whose values are kept and were not read again.
std::uint64_t proven_rows(const KeptBlocks& kept, std::uint64_t all, const BlocksRead& read) {
  std::uint64_t rows = all + moved_rows(read);
  for (std::uint64_t i = 0; i < read.count; ++i)
    if (read.patches[i].block < kept.count)
      rows -= kept.blocks[read.patches[i].block].rows - read.patches[i].same.count();
  for (std::uint64_t block = read.blocks; block < kept.count; ++block)
    rows -= kept.blocks[block].rows;
  return rows;
}

/// Whether all that is kept is proven, by the map's pages as they were.
bool is_as_found(const BlocksRead& read, const KeptBlocks& kept) {
  return read.count == 0 && read.blocks == kept.count && read.map.pages == kept.map_pages &&
         std::memcmp(read.map.lsns, kept.map_lsns, kept.map_pages * sizeof *kept.map_lsns) == 0;
}

/// Whether rows of both kinds can be in one dataset.
bool fit_together(const ValueShape& a, const ValueShape& b) {
  return a.dims == b.dims && a.srid == b.srid;
}

}  // namespace

bool are_kept(const SideColumns& columns) {
  constexpr long kPlannerMs = 50;
  const Relation relation = table_open(columns.relation, NoLock);  // it is locked
  service::TableKey key;
  service::FindTable question;
  const bool may_be =
      can_read_blocks(relation, columns) && name_table(relation, columns, scalar_of(columns), &key);
  if (may_be) question = question_of(relation, key);
  table_close(relation, NoLock);
  Connection connection;
  if (!may_be || !find_service(&connection)) return false;
  question.asks_only = true;
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  service::Descriptors none;
  if (ask_service(&connection, &question, sizeof question, buffer, &none, kPlannerMs) !=
      Arrival::kMessage)
    return false;
  service::close_descriptors(&none);
  const auto* const found = service::message_as<service::FoundTable>(buffer);
  leave_connection(&connection);
  return found != nullptr && found->version != 0;
}

double expected_rows(const SideColumns& columns) {
  constexpr double kFewRowsOfBlock = 20;  // of a table that was never analyzed
  const Relation relation = table_open(columns.relation, NoLock);  // it is locked
  double rows = INFINITY;
  if (relation->rd_rel->relkind == RELKIND_RELATION) {
    rows = relation->rd_rel->reltuples;
    if (rows < 0) rows = kFewRowsOfBlock * RelationGetNumberOfBlocks(relation);
  }
  table_close(relation, NoLock);
  return rows;
}

const char* why_not_kept() {
  return service_preference() == ServicePreference::kOff ? "gpujoin.service is off"
                                                         : "they are of a kind that cannot stay";
}

bool read_kept_side(Connection* connection, std::uint32_t side, const SideColumns& columns,
                    TableReader reader, PointBuffer* points, ValueShape* shape, KeptSide* kept,
                    bool anew) {
  *kept = {};
  const Relation relation = table_open(columns.relation, NoLock);  // it is locked
  service::TableKey key;
  FoundSide* found = nullptr;
  if (can_read_blocks(relation, columns) && name_table(relation, columns, points->scalar, &key)) {
    const std::uint64_t bytes = table_bytes(relation);
    if (bytes <= points->limit) found = find_table(connection, side, relation, key, bytes);
  }
  if (found == nullptr || !found->table.may_stay) {
    table_close(relation, NoLock);
    return false;
  }
  const service::FoundTable& table = found->table;
  const bool is_used = table.version != 0 && !anew;
  const KeptBlocks blocks =
      is_used ? kept_blocks(found->proof.base, table.map_pages, table.blocks, found->proof.file)
              : KeptBlocks{};
  bool has_odd = false;
  RowCollector rows = start_collecting(&columns, points);
  if (reader == TableReader::kNode) {
    rows.has_odd = &has_odd;
    rows.shape.as_stored = false;
  }
  if (reader == TableReader::kFunction) check_block_columns(columns);
  const BlocksRead read = read_blocks(relation, &rows, blocks);
  table_close(relation, NoLock);
  Traits traits = {};
  if (is_used) traits.bytes = table.traits;
  const std::uint64_t proven = is_used ? proven_rows(blocks, table.rows, read) : 0;
  const bool mixed = proven > 0 && points->rows > 0 && !fit_together(traits.shape, rows.shape);
  kept->is_unfit = mixed || has_odd || is_spilled(*points);
  if (kept->is_unfit) return false;
  // Rows that are kept stay lifted as they are, though this snapshot may see none of them.
  const double lifted_norm = traits.shape.lifted_norm;
  if (proven == 0) traits = {.shape = rows.shape};
  traits.shape.has_large |= rows.shape.has_large;
  traits.shape.has_zero |= rows.shape.has_zero;
  traits.shape.lifted_norm = lifted_norm;
  kept->is_outgrown = columns.form == ValueForm::kProduct && points->rows > 0 &&
                      !lift_rows(finish_points(points), &traits.shape.lifted_norm);
  if (kept->is_outgrown) return false;
  *shape = traits.shape;
  kept->kept = true;
  kept->as_found = is_used && is_as_found(read, blocks);
  kept->rows = proven + points->rows;
  kept->dims = points->rows > 0 ? points->dims : table.dims;
  kept->table = {.rows = finish_points(points),
                 .map_lsns = read.map.lsns,
                 .map_pages = read.map.pages,
                 .patches = read.patches,
                 .count = read.count,
                 .moved = read.moved != nullptr ? read.moved->rows : nullptr,
                 .moved_count = moved_rows(read),
                 .blocks = read.blocks,
                 .traits = traits.bytes};
  service::close_region(&found->proof);
  return true;
}

}  // namespace gpujoin
