// Tables that stay: patches against plain blocks of rows, holds that nobody changes, who goes first
// when memory is short, and who finds what.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/threshold.h"
#include "points.h"
#include "service/failure.h"
#include "service/tables/search_table.h"
#include "service/tables/table_store.h"
#include "service_client.h"

namespace gpujoin::test {
namespace {

using namespace service;
using namespace std::chrono_literals;

struct Row {
  std::int64_t id;
  double x, y;
  auto operator<=>(const Row&) const = default;
};
using Block = std::vector<Row>;
using Blocks = std::vector<Block>;

Row random_row(Random& random) {
  return {static_cast<std::int64_t>(random.bits()), random.unit(), random.unit()};
}

Blocks random_blocks(Random& random, std::uint64_t count, std::uint64_t most_rows = 6) {
  Blocks blocks(count);
  for (Block& block : blocks)
    for (std::uint64_t rows = random.index(most_rows + 1); rows > 0; --rows)
      block.push_back(random_row(random));
  return blocks;
}

std::vector<Row> rows_of(const Blocks& blocks) {
  std::vector<Row> rows;
  for (const Block& block : blocks) rows.insert(rows.end(), block.begin(), block.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Rows that lie in the block that their id names, as a ctid does.
Block rows_at_ctids(const Blocks& blocks) {
  Block rows;
  for (std::size_t number = 0; number < blocks.size(); ++number)
    for (const Row& row : blocks[number])
      if (static_cast<std::uint64_t>(row.id) >> 16 == number) rows.push_back(row);
  return rows;
}

/// The score of the row with this id, where rows have one.
double score_of(std::int64_t id) { return static_cast<double>(id % 1000) / 8; }

std::vector<Row> rows_of(const Dataset& data) {
  std::vector<Row> rows;
  for (std::uint64_t row = 0; row < data.rows; ++row) {
    const bool is_row = is_finite_row(data, row);
    if (is_row) rows.push_back({data.ids[row], coordinate(data, row, 0), coordinate(data, row, 1)});
    if (is_row && data.scores != nullptr) {
      EXPECT_EQ(data.scores[row], score_of(data.ids[row]));
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A block that was read again.
struct Read {
  std::uint32_t number;
  Block rows;
  bool lasts = true;
  BlockState state = BlockState::kAllVisible;
  Block same = {};   ///< rows that stay and are not sent
  Block moved = {};  ///< rows that have the values of others, which are
  std::vector<std::int64_t> moved_from = {};
};

/// A block whose rows are known by their ctids. Some stay as they are, others have the values of
/// some rows of `all`.
Read read_of_ctids(Random& random, std::uint32_t number, const Block& before, const Block& all) {
  Read read = {number, {}};
  for (std::int64_t line = 1; line <= 9; ++line) {
    const std::int64_t ctid = std::int64_t{number} << 16 | (line * line * 3);
    const auto old =
        std::find_if(before.begin(), before.end(), [&](const Row& row) { return row.id == ctid; });
    const std::uint64_t choice = random.index(6);
    if (old != before.end() && choice < 3)
      read.same.push_back(*old);
    else if (old != before.end() && choice == 3)
      read.rows.push_back(*old);
    else if (choice == 4 && !all.empty()) {
      const Row& from = all[random.index(all.size())];
      read.moved.push_back({ctid, from.x, from.y});
      read.moved_from.push_back(from.id);
    } else if (choice < 5)
      read.rows.push_back({ctid, random.unit(), random.unit()});
  }
  if (random.index(3) == 0) std::reverse(read.rows.begin(), read.rows.end());
  return read;
}

int shared_copy(const void* bytes, std::uint64_t count) {
  return dup(TestRegion(bytes, count).region.file);
}

using ScoreOf = double (*)(std::int64_t id);  ///< null: rows have no score

/// What a backend sends of these blocks. Coordinates of `dims` numbers begin with x and y.
TablePatch patch_of(const std::vector<Read>& reads, std::uint64_t table_blocks,
                    std::uint32_t dims = 2, ScoreOf score = score_of) {
  std::vector<double> coordinates, scores;
  std::vector<std::int64_t> ids;
  std::vector<BlockPatch> patches;
  std::vector<MovedRow> moved;
  for (const Read& read : reads) {
    const auto rows =
        static_cast<std::uint32_t>(read.rows.size() + read.same.size() + read.moved.size());
    for (std::size_t i = 0; i < read.moved.size(); ++i)
      moved.push_back({read.moved[i].id, read.moved_from[i]});
    patches.push_back({read.number, read.lasts, {read.number + 1, 0, rows, read.state}});
    for (const Row& row : read.same)
      patches.back().same.add(static_cast<std::uint32_t>(row.id & 0xffff));
    for (const Row& row : read.rows) {
      ids.push_back(row.id);
      if (score != nullptr) scores.push_back(score(row.id));
      for (std::uint32_t d = 0; d < dims; ++d) coordinates.push_back(d == 0 ? row.x : row.y);
    }
  }
  SideMessage side = {};
  side.rows = ids.size();
  side.has_ids = true;
  side.dims = dims;
  side.scalar = ScalarType::kFloat64;
  side.of_table = true;
  side.blocks = table_blocks;
  Descriptors files;
  if (side.rows > 0) {
    side.has_rows = true;
    files.files[files.count++] = shared_copy(coordinates.data(), coordinates.size() * 8);
    files.files[files.count++] = shared_copy(ids.data(), ids.size() * 8);
    side.has_scores = score != nullptr;
    if (side.has_scores) files.files[files.count++] = shared_copy(scores.data(), scores.size() * 8);
  }
  if (!patches.empty()) {
    side.has_patches = true;
    side.patches = patches.size();
    side.map_pages = 1;
    side.moved = moved.size();
    const std::size_t patch_bytes = patches.size() * sizeof(BlockPatch);
    std::vector<unsigned char> bytes(8 + patch_bytes + moved.size() * sizeof(MovedRow));
    bytes[0] = 77;
    std::memcpy(bytes.data() + 8, patches.data(), patch_bytes);
    if (!moved.empty())
      std::memcpy(bytes.data() + 8 + patch_bytes, moved.data(), moved.size() * sizeof(MovedRow));
    files.files[files.count++] = shared_copy(bytes.data(), bytes.size());
  }
  return read_patch(side, take_rows(side, &files));
}

std::vector<Read> all_of(const Blocks& blocks) {
  std::vector<Read> reads;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    reads.push_back({static_cast<std::uint32_t>(i), blocks[i]});
  return reads;
}

TableKey key_of(std::uint32_t relation, std::uint32_t file = 1) {
  TableKey key = {};
  key.relation = relation;
  key.file = file;
  key.columns_bytes = 3;
  key.columns[0] = 'x';
  return key;
}

constexpr const char* kFile = "/proc/self/exe";  ///< of tables: it has bytes, and stays

class ServiceTables : public testing::Test {
 protected:
  ServiceTables()
      : engines([](const EngineTable**) { return Status{StatusCode::kUnavailable}; }),
        tables(engines) {
    cpu_engine()->keep(0, 0);  // other tests have left rows of the same identities
    tables.configure(1 << 30);
  }

  TableHold find(std::uint32_t relation = 1, std::uint32_t database = 1, const char* path = kFile) {
    return tables.find(database, key_of(relation), path);
  }
  void patch(TableHold& hold, const std::vector<Read>& reads, std::uint64_t blocks,
             bool packed = false) {
    TablePatch patch = patch_of(reads, blocks, dims, score);
    tables.patch(hold, patch, packed);
  }
  /// Reads all of a table that nobody has read.
  TableHold load(const Blocks& blocks, std::uint32_t relation = 1, std::uint32_t database = 1) {
    TableHold hold = find(relation, database);
    patch(hold, all_of(blocks), blocks.size());
    return hold;
  }

  Engines engines;
  TableStore tables;
  ScoreOf score = score_of;
  std::uint32_t dims = 2;
};

TEST_F(ServiceTables, first_rows_keep_their_memory_and_are_found_by_others) {
  Random random(1);
  const Blocks blocks = random_blocks(random, 20);
  EXPECT_EQ(find().version(), nullptr);
  const TableHold loaded = load(blocks);
  EXPECT_EQ(rows_of(loaded.rows()), rows_of(blocks));
  EXPECT_NE(loaded.rows().key.identity, 0u);
  const TableHold found = find();
  ASSERT_NE(found.version(), nullptr);
  EXPECT_EQ(found.version(), loaded.version());
  EXPECT_EQ(found.rows().first_chunk, loaded.rows().first_chunk);
  EXPECT_TRUE(found.version()->all_visible());
  EXPECT_EQ(find(1, 2).version(), nullptr) << "another database";
  EXPECT_EQ(find(2).version(), nullptr) << "another relation";
}

TEST_F(ServiceTables, proof_is_what_was_patched_and_is_for_reading_only) {
  Random random(2);
  const Blocks blocks = random_blocks(random, 5);
  TableHold hold = load(blocks);
  patch(hold, {{3, {}, true, BlockState::kUnproven}}, 5);
  EXPECT_FALSE(hold.version()->all_visible());
  EXPECT_EQ(hold.version()->map_pages(), 1u);
  const int file = hold.version()->open_proof();
  SharedRegion region;
  EXPECT_EQ(mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  ASSERT_TRUE(map_region(file, 8 + 5 * sizeof(BlockProof), &region).ok());
  EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(region.base), 77u);
  const auto* const proofs = reinterpret_cast<const BlockProof*>(region.base + 8);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(proofs[i].lsn, i + 1);
    EXPECT_EQ(proofs[i].rows, i == 3 ? 0 : blocks[i].size());
  }
  close_region(&region);
}

TEST_F(ServiceTables, the_same_rows_stay_the_same_version_of_them) {
  Random random(3);
  const Blocks blocks = random_blocks(random, 8);
  TableHold hold = load(blocks);
  const DatasetKey key = hold.rows().key;
  const std::uint64_t number = hold.version()->number();
  patch(hold, {{2, blocks[2], true, BlockState::kCommitted}}, 8);
  EXPECT_NE(hold.version()->number(), number);
  EXPECT_EQ(hold.rows().key, key);
  patch(hold, {{2, {random_row(random)}}}, 8);
  EXPECT_EQ(hold.rows().key.identity, key.identity);
  EXPECT_NE(hold.rows().key.version, key.version);
}

TEST_F(ServiceTables, what_does_not_last_is_seen_by_nobody_else) {
  Random random(4);
  const Blocks blocks = random_blocks(random, 8);
  load(blocks);
  TableHold old = find();
  Blocks seen = blocks;
  seen[1] = {random_row(random)};
  seen[4] = {};
  patch(old, {{1, seen[1], false}, {4, seen[4], false}}, 8);
  EXPECT_EQ(rows_of(old.rows()), rows_of(seen));
  EXPECT_EQ(old.rows().key, DatasetKey{});
  EXPECT_EQ(rows_of(find().rows()), rows_of(blocks));
  EXPECT_TRUE(find().version()->all_visible());
}

TEST_F(ServiceTables, of_two_patches_of_a_version_the_later_one_is_its_own) {
  Random random(5);
  const Blocks blocks = random_blocks(random, 8);
  load(blocks);
  TableHold first = find(), second = find();
  Blocks one = blocks, other = blocks;
  one[1] = {random_row(random)};
  other[2] = {random_row(random)};
  patch(first, {{1, one[1]}}, 8);
  patch(second, {{2, other[2]}}, 8);
  EXPECT_EQ(rows_of(first.rows()), rows_of(one));
  EXPECT_EQ(rows_of(second.rows()), rows_of(other));
  EXPECT_EQ(rows_of(find().rows()), rows_of(one));
  EXPECT_EQ(second.rows().key, DatasetKey{});
}

TEST_F(ServiceTables, who_finds_the_same_rows_later_has_those_that_engines_know) {
  Random random(5);
  const Blocks blocks = random_blocks(random, 8);
  const DatasetKey key = load(blocks).rows().key;
  TableHold first = find(), second = find(), third = find();
  patch(first, {{2, blocks[2]}}, 8);
  patch(second, {{2, blocks[2]}, {3, blocks[3]}}, 8);
  EXPECT_EQ(second.rows().key, key);
  EXPECT_EQ(rows_of(second.rows()), rows_of(blocks));
  Blocks changed = blocks;
  changed[2] = {random_row(random)};
  TableHold fourth = find();
  patch(fourth, {{2, changed[2]}}, 8);
  patch(third, {{3, blocks[3]}}, 8);
  EXPECT_EQ(third.rows().key, DatasetKey{}) << "engines know the new rows";
  EXPECT_EQ(rows_of(third.rows()), rows_of(blocks));
  EXPECT_EQ(third.indexed_rows().key, key) << "searches use the index that both versions have";
  EXPECT_EQ(fourth.indexed_rows().key, key);
  EXPECT_EQ(rows_of(third.indexed_rows()), rows_of(blocks));
}

TEST_F(ServiceTables, two_who_read_a_table_first_both_have_their_rows) {
  Random random(6);
  const Blocks one = random_blocks(random, 8), other = random_blocks(random, 9);
  TableHold first = find(), second = find();
  patch(first, all_of(one), 8);
  patch(second, all_of(other), 9);
  EXPECT_EQ(rows_of(first.rows()), rows_of(one));
  EXPECT_EQ(rows_of(second.rows()), rows_of(other));
  EXPECT_EQ(second.indexed_rows().key, DatasetKey{});
  EXPECT_EQ(rows_of(find().rows()), rows_of(one));
}

TEST_F(ServiceTables, a_table_of_no_rows_takes_rows_of_any_dimensions) {
  Random random(7);
  load({{}, {}});
  EXPECT_EQ(find().rows().rows, 0u);
  load({}, 2);
  ASSERT_NE(find(2).version(), nullptr);
  for (const std::uint32_t dims : {3u, 5u}) {
    TableHold hold = find();
    TablePatch patch = patch_of({{1, {random_row(random), random_row(random)}}}, 2, dims);
    tables.patch(hold, patch, false);
    EXPECT_EQ(hold.rows().dims, dims);
    EXPECT_EQ(hold.live_rows(), 2u);
  }
  // Some blocks last, and some do not.
  TableHold hold = find();
  TablePatch patch = patch_of({{0, {random_row(random)}, false}, {1, {random_row(random)}}}, 2, 4);
  EXPECT_NO_THROW(tables.patch(hold, patch, false));
  EXPECT_EQ(hold.live_rows(), 2u);
  EXPECT_EQ(find().live_rows(), 1u);
}

TEST_F(ServiceTables, rows_of_other_dimensions_beside_those_there_are_refused) {
  Random random(8);
  load({{random_row(random)}, {random_row(random)}});
  TableHold hold = find();
  TablePatch patch = patch_of({{1, {random_row(random)}}}, 2, 3);
  EXPECT_THROW(tables.patch(hold, patch, false), Failure);
  EXPECT_EQ(find().version(), nullptr) << "nobody knows what a patch that failed has left";
}

TEST_F(ServiceTables, rows_with_a_score_and_rows_without_one_are_not_of_one_table) {
  Random random(14);
  for (const ScoreOf scored : {score_of, ScoreOf{nullptr}}) {
    const std::uint32_t relation = scored != nullptr ? 1 : 2;
    score = scored;
    EXPECT_EQ(load({{random_row(random)}, {random_row(random)}}, relation).rows().scores != nullptr,
              scored != nullptr);
    score = scored != nullptr ? nullptr : score_of;
    TableHold hold = find(relation);
    EXPECT_THROW(patch(hold, {{1, {random_row(random)}}}, 2), Failure);
    hold = find(relation);
    EXPECT_NO_THROW(patch(hold, {{0, {random_row(random)}}, {1, {random_row(random)}}}, 2));
    EXPECT_EQ(hold.rows().scores != nullptr, scored == nullptr) << "where none of the old is left";
  }
}

TEST_F(ServiceTables, another_score_alone_makes_another_version) {
  Random random(15);
  const Block block = {random_row(random), random_row(random)};
  TableHold hold = load({block, {random_row(random)}});
  const DatasetKey key = hold.rows().key;
  patch(hold, {{0, block}}, 2);
  EXPECT_EQ(hold.rows().key, key);
  score = [](std::int64_t id) { return score_of(id) + 1; };
  patch(hold, {{0, block}}, 2);
  EXPECT_EQ(hold.rows().key.identity, key.identity);
  EXPECT_NE(hold.rows().key.version, key.version);
  EXPECT_EQ(hold.rows().scores[0], score_of(block[0].id) + 1);
}

TEST_F(ServiceTables, empty_slots_have_finite_scores) {
  Random random(16);
  load(random_blocks(random, 40, 9));
  TableHold hold = find();
  patch(hold, {{3, {}}, {7, random_blocks(random, 1, 30)[0]}, {9, {random_row(random)}}}, 39);
  const Dataset rows = hold.rows();
  EXPECT_GT(rows.rows, hold.live_rows());
  for (std::uint64_t row = 0; row < rows.rows; ++row)
    EXPECT_TRUE(std::isfinite(rows.scores[row])) << row;
}

TEST_F(ServiceTables, patches_that_do_not_fit_are_refused) {
  Random random(9);
  const Row row = random_row(random);
  EXPECT_THROW(patch_of({{2, {row}}, {1, {row}}}, 3), Failure);
  EXPECT_THROW(patch_of({{2, {row}}}, 2), Failure);
  TableHold hold = find();
  EXPECT_THROW(patch(hold, {{0, {row}}, {2, {row}}}, 3), Failure);
  hold = load({{row}});
  EXPECT_THROW(patch(hold, {{2, {row}}}, 3), Failure);
}

TEST_F(ServiceTables, packed_rows_have_no_slot_without_a_row) {
  Random random(10);
  Blocks blocks = random_blocks(random, 40, 3);
  load(blocks);
  blocks[5] = random_blocks(random, 1, 9)[0];
  blocks[6] = {};
  TableHold hold = find();
  patch(hold, {{5, blocks[5]}, {6, blocks[6]}}, 40, true);
  EXPECT_EQ(hold.rows().rows, hold.live_rows());
  EXPECT_EQ(rows_of(hold.rows()), rows_of(blocks));
}

TEST_F(ServiceTables, what_was_used_least_recently_goes_first) {
  Random random(11);
  const Blocks blocks = random_blocks(random, 4);
  for (std::uint32_t relation = 1; relation <= 3; ++relation) load(blocks, relation);
  const std::vector<ListedTable> listed = tables.list(1);
  ASSERT_EQ(listed.size(), 3u);
  find(1);
  const TableHold held = find(2);
  tables.configure(listed[0].host_bytes * 2);
  EXPECT_EQ(find(3).version(), nullptr);
  EXPECT_NE(find(1).version(), nullptr);
  EXPECT_FALSE(tables.may_stay(listed[0].host_bytes * 3));
  tables.configure(0);
  EXPECT_EQ(find(2).version(), nullptr);
  EXPECT_EQ(rows_of(held.rows()), rows_of(blocks)) << "what is held stays";
  load(blocks, 4);
  EXPECT_EQ(find(4).version(), nullptr);
}

TEST_F(ServiceTables, databases_see_and_evict_their_own) {
  Random random(12);
  const Blocks blocks = random_blocks(random, 4);
  load(blocks, 1, 1);
  load(blocks, 2, 1);
  load(blocks, 1, 2);
  find(1, 1);
  const std::vector<ListedTable> listed = tables.list(1);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].key.relation, 1u);
  EXPECT_EQ(listed[0].hits, 1u);
  EXPECT_EQ(listed[0].blocks_read, 4u);
  EXPECT_EQ(listed[0].rows, rows_of(blocks).size());
  EXPECT_EQ(tables.evict(1, 1), 1u);
  EXPECT_EQ(find(1, 1).version(), nullptr);
  EXPECT_NE(find(1, 2).version(), nullptr);
  EXPECT_EQ(tables.evict(1, 0), 1u);
  EXPECT_EQ(tables.list(2).size(), 1u);
  load(blocks, 1, 1);
  EXPECT_EQ(tables.evict({}, 1), 2u) << "of both";
}

TEST_F(ServiceTables, tables_whose_files_are_gone_are_dropped) {
  Random random(14);
  char path[] = "/tmp/gpujoin_table_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  const auto load_from = [&](std::uint32_t relation, const Blocks& blocks, const char* of) {
    TableHold hold = find(relation, 1, of);
    patch(hold, all_of(blocks), blocks.size());
    return hold;
  };
  const Blocks blocks = random_blocks(random, 4), none;
  ASSERT_EQ(ftruncate(file, 8192), 0);
  load_from(1, blocks, path);
  load_from(2, none, path);
  const auto there = [&] {
    tables.drop_removed(50ms);
    return tables.list(1).size();
  };
  EXPECT_EQ(there(), 2u);
  ASSERT_EQ(ftruncate(file, 0), 0);
  EXPECT_EQ(there(), 2u) << "vacuumed, perhaps";
  std::this_thread::sleep_for(60ms);
  find(1, 1, path);
  EXPECT_EQ(there(), 2u) << "used since then";
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(there(), 1u) << "dropped, before the file is removed";
  ASSERT_EQ(ftruncate(file, 8192), 0);
  const TableHold held = load_from(1, blocks, path);
  close(file);
  unlink(path);
  EXPECT_EQ(there(), 0u);
  EXPECT_EQ(rows_of(held.rows()), rows_of(blocks)) << "what is held stays";
}

TEST_F(ServiceTables, only_rows_that_are_there_can_stay) {
  const Row one = {std::int64_t{1} << 16 | 1, 0.1, 0.2}, other = {std::int64_t{1} << 16 | 2, 1, 2};
  const Row elsewhere = {std::int64_t{2} << 16 | 1, 3, 4}, moved = {other.id, 5, 6};
  const Blocks blocks = {{}, {one, other}, {elsewhere}};
  const auto read_again = [&](const Block& rows, const Block& same) {
    TableHold hold = load(blocks);
    patch(hold, {{.number = 1, .rows = rows, .same = same}}, 3);
    return rows_of(hold.rows());
  };
  EXPECT_EQ(read_again({}, {one, other}), rows_of(blocks));
  tables.evict(1, 0);
  EXPECT_EQ(read_again({moved}, {one}), rows_of({{}, {one, moved}, {elsewhere}}));
  tables.evict(1, 0);
  EXPECT_EQ(read_again({}, {other}), rows_of({{}, {other}, {elsewhere}}));
  tables.evict(1, 0);
  const Row unknown = {std::int64_t{1} << 16 | 3, 0, 0};
  EXPECT_THROW(read_again({}, {one, unknown}), Failure);
}

TEST_F(ServiceTables, who_changes_no_row_changes_no_traits) {
  Random random(15);
  const Blocks blocks = random_blocks(random, 3, 4);
  const auto patch_with = [&](unsigned char trait, bool lasts) {
    std::vector<Read> reads = all_of(random_blocks(random, 3, 4));
    for (Read& read : reads) read.lasts = lasts;
    TablePatch patch = patch_of(reads, 3);
    patch.traits.bytes[0] = trait;
    TableHold hold = find();
    tables.patch(hold, patch, false);
    return find().version()->traits().bytes[0];
  };
  load(blocks);
  EXPECT_EQ(patch_with(7, true), 7);
  EXPECT_EQ(patch_with(8, false), 7) << "rows of one snapshot alone";
  EXPECT_EQ(patch_with(9, true), 9);
}

TEST_F(ServiceTables, a_rewritten_relation_takes_the_place_of_the_old_one) {
  Random random(13);
  const Blocks blocks = random_blocks(random, 4);
  load(blocks);
  TableHold rewritten = tables.find(1, key_of(1, 2), kFile);
  EXPECT_EQ(rewritten.version(), nullptr);
  patch(rewritten, all_of(blocks), 4);
  EXPECT_EQ(find().version(), nullptr);
  EXPECT_EQ(tables.list(1).size(), 1u);
}

/// Writers change a table, and readers find it, patch what they see changed, and hold some of what
/// they have; each sees its own rows, for as long as it holds them.
TEST_F(ServiceTables, random_patches_leave_what_plain_blocks_have) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed + 100);
    score = seed % 3 == 0 ? nullptr : score_of;
    const bool by_ctid = seed % 2 == 1;
    Blocks stored = random_blocks(random, random.index(12)), shared = stored;
    load(stored, static_cast<std::uint32_t>(seed));
    struct Held {
      TableHold hold;
      std::vector<Row> rows;
    };
    std::vector<Held> held;
    std::map<std::uint64_t, std::vector<Row>> versions;  // of rows with a key
    for (int step = 0; step < 60; ++step) {
      std::vector<Read> reads;
      const std::uint64_t before = shared.size(), blocks = random.index(4) == 0
                                                               ? random.index(14)
                                                               : before + random.index(2);
      Blocks own = shared;
      own.resize(blocks);
      Blocks next = own;
      for (std::uint32_t b = 0; b < blocks; ++b) {
        if (b < before && random.index(3) > 0) continue;
        const bool same = b < before && random.index(3) == 0;
        Read read = by_ctid ? read_of_ctids(random, b, own[b],
                                            score == nullptr ? rows_at_ctids(shared) : Block{})
                            : Read{b, same ? own[b] : random_blocks(random, 1, 9)[0]};
        read.lasts = random.index(4) > 0;
        own[b] = read.rows;
        own[b].insert(own[b].end(), read.same.begin(), read.same.end());
        own[b].insert(own[b].end(), read.moved.begin(), read.moved.end());
        if (read.lasts || b >= before) next[b] = own[b];
        reads.push_back(read);
      }
      Held one = {find(static_cast<std::uint32_t>(seed)), rows_of(own)};
      const bool packed = random.index(6) == 0;
      patch(one.hold, reads, blocks, packed);
      shared = next;
      ASSERT_EQ(rows_of(one.hold.rows()), one.rows) << "seed " << seed << " step " << step;
      ASSERT_EQ(one.hold.live_rows(), one.rows.size());
      if (packed) {
        ASSERT_EQ(one.hold.rows().rows, one.rows.size());
      }
      const TableHold found = find(static_cast<std::uint32_t>(seed));
      ASSERT_EQ(rows_of(found.rows()), rows_of(shared)) << "seed " << seed << " step " << step;
      ASSERT_LE(found.version()->rows()->holes(), found.version()->rows()->slots() / 4 + 1);
      const std::uint64_t version = found.rows().key.version;
      ASSERT_EQ(versions.try_emplace(version, rows_of(shared)).first->second, rows_of(shared));
      if (random.index(3) == 0) held.push_back(std::move(one));
      if (!held.empty() && random.index(4) == 0) held.erase(held.begin());
    }
    for (const Held& one : held) ASSERT_EQ(rows_of(one.hold.rows()), one.rows);
  }
}

/// The same by several threads: whatever each has found is as it was when it was published.
/// Copies against plain arrays: of rows in a region, which fills no whole number of chunks, and of
/// rows that came later.
TEST(ServiceRowChunks, copies_share_what_none_of_them_has_changed) {
  constexpr std::uint64_t kNumbers = 512, kRowBytes = kNumbers * sizeof(std::uint64_t);
  for (const std::uint64_t rows : {0u, 1u, 64u, 300u}) {
    Random random(rows);
    Region region("rows", std::max<std::uint64_t>(rows * kRowBytes, 1));
    std::vector<std::uint64_t> plain(rows);
    const auto fill = [](unsigned char* row, std::uint64_t value) {
      std::fill_n(reinterpret_cast<std::uint64_t*>(row), kNumbers, value);
    };
    for (std::uint64_t row = 0; row < rows; ++row)
      fill(region.data() + row * kRowBytes, plain[row] = random.bits());
    struct Copy {
      RowChunks chunks;
      std::vector<std::uint64_t> plain;
    };
    std::vector<Copy> copies;
    copies.push_back({RowChunks(std::move(region), rows, kRowBytes), plain});
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t kind = random.index(10), number = random.index(copies.size());
      Copy& copy = copies[number];
      if (kind == 0 && copies.size() < 5) {
        copies.push_back(Copy(copy));
      } else if (kind == 1 && copies.size() > 1) {
        copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(number));
      } else if (kind == 2) {
        copy.plain.resize(copy.plain.size() + 1 + random.index(70));
        copy.chunks.reserve(copy.plain.size());
        for (std::uint64_t row = 0; row < copy.plain.size(); ++row)
          if (copy.plain[row] == 0) fill(copy.chunks.change(row), copy.plain[row] = random.bits());
      } else if (!copy.plain.empty()) {
        const std::uint64_t row = random.index(copy.plain.size());
        fill(copy.chunks.change(row), copy.plain[row] = random.bits());
      }
    }
    for (const Copy& copy : copies) {
      Dataset data = {nullptr, nullptr, copy.plain.size(), kNumbers, ScalarType::kFloat64};
      copy.chunks.place(&data);
      for (std::uint64_t row = 0; row < data.rows; ++row) {
        ASSERT_EQ(point<std::uint64_t>(data, row)[0], copy.plain[row]);
        ASSERT_EQ(point<std::uint64_t>(data, row)[kNumbers - 1], copy.plain[row]);
      }
    }
  }
}

/// What patch_of() makes of x and y.
std::vector<double> coordinates_of(double x, double y, std::uint32_t dims) {
  std::vector<double> coordinates(dims, y);
  coordinates[0] = x;
  return coordinates;
}

/// The rows nearest to a point, by brute force.
std::vector<FoundRow> nearest_of(const Blocks& blocks, const std::vector<double>& point,
                                 Metric metric, double eps, std::uint64_t k) {
  const auto dims = static_cast<std::uint32_t>(point.size());
  std::vector<FoundRow> found;
  for (const Row& row : rows_of(blocks)) {
    const std::vector<double> place = coordinates_of(row.x, row.y, dims);
    const double raw = raw_distance(metric, point.data(), place.data(), dims);
    if (raw <= make_threshold(metric, eps).raw)
      found.push_back({row.id, distance_from_raw(metric, raw)});
  }
  std::sort(found.begin(), found.end(), [](const FoundRow& a, const FoundRow& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
  });
  found.resize(std::min<std::uint64_t>(found.size(), k));
  return found;
}

/// Changes a few rows: some go, some come, some move, on a grid where many distances are equal.
void change_some(Random& random, bool lasts, Blocks* blocks, std::vector<Read>* reads) {
  const auto on_grid = [&] { return static_cast<double>(random.index(40)); };
  const auto new_row = [&] {
    return Row{static_cast<std::int64_t>(1 + random.bits() / 2), on_grid(), on_grid()};
  };
  if (lasts && random.index(9) == 0 && blocks->size() > 20) blocks->pop_back();
  std::vector<bool> is_read(blocks->size(), false);
  if (lasts && random.index(6) == 0) {
    blocks->push_back({});
    is_read.push_back(true);
  }
  for (std::uint64_t count = 1 + random.index(3); count > 0; --count) {
    const std::uint64_t number = random.index(blocks->size());
    Block& block = (*blocks)[number];
    is_read[number] = true;
    if (!block.empty() && random.index(2) == 0) {
      const std::uint64_t at = random.index(block.size());
      if (random.index(2) == 0)
        block[at] = {block[at].id, on_grid(), on_grid()};
      else
        block.erase(block.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (std::uint64_t more = random.index(4); more > 0; --more) block.push_back(new_row());
  }
  for (std::uint32_t number = 0; number < blocks->size(); ++number)
    if (is_read[number]) reads->push_back({number, (*blocks)[number], lasts});
}

/// A device that copies the coordinates of a version once, and names rows by the ids there now.
namespace copying_device {

struct FakeJoin {
  std::vector<std::uint32_t> rows, neighbors;
  std::vector<std::uint64_t> offsets{0};
  std::vector<double> distances;
  std::vector<std::int64_t> left_ids;
  const std::int64_t* right_ids = nullptr;
  bool is_delivered = false;
};

std::mutex mutex;
std::map<std::uint64_t, std::vector<double>> copies;  // by version

std::vector<double> copy_of(const Dataset& data) {
  std::vector<double> copy;
  for (std::uint64_t row = 0; row < data.rows; ++row)
    copy.insert(copy.end(), point<double>(data, row), point<double>(data, row) + data.dims);
  return copy;
}

Status open(const JoinRequest* request, Join** join) {
  auto fake = std::make_unique<FakeJoin>();
  if (request->output() == Output::kNearest) {
    const Dataset &left = request->left(), &right = request->right();
    const std::lock_guard lock(mutex);
    std::vector<double>& points = copies[right.key.version];
    if (points.empty() || right.key.identity == 0) points = copy_of(right);
    const double most = make_threshold(request->metric(), request->eps()).raw;
    for (std::uint32_t row = 0; row < left.rows; ++row) {
      std::vector<std::pair<double, std::uint32_t>> found;
      for (std::uint32_t other = 0; other < right.rows; ++other) {
        const double raw = raw_distance(request->metric(), point<double>(left, row),
                                        &points[std::size_t{other} * right.dims], right.dims);
        if (raw <= most) found.emplace_back(distance_from_raw(request->metric(), raw), other);
      }
      std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : right.ids[a.second] < right.ids[b.second];
      });
      found.resize(std::min<std::uint64_t>(found.size(), request->neighbors()));
      fake->rows.push_back(row);
      fake->left_ids.push_back(row);
      for (const auto& [distance, other] : found) {
        fake->distances.push_back(distance);
        fake->neighbors.push_back(other);
      }
      fake->offsets.push_back(fake->neighbors.size());
    }
    fake->right_ids = right.ids;
  }
  *join = reinterpret_cast<Join*>(fake.release());
  return {};
}

Status next_batch(Join* join, ResultBatch* batch) {
  auto* const fake = reinterpret_cast<FakeJoin*>(join);
  if (fake->rows.empty() || std::exchange(fake->is_delivered, true)) return {StatusCode::kEnd};
  *batch = {};
  batch->row_count = fake->rows.size();
  batch->rows = fake->rows.data();
  batch->offsets = fake->offsets.data();
  batch->neighbors = fake->neighbors.data();
  batch->distances = fake->distances.data();
  batch->left_ids = fake->left_ids.data();
  batch->right_ids = fake->right_ids;
  return {};
}

Status find(const EngineTable** engine) {
  static EngineTable table;
  table = *cpu_engine();
  table.name = "cuda";
  table.open = open;
  table.next_batch = next_batch;
  table.stats = [](const Join*, JoinStats* stats) { *stats = {}; };
  table.close = [](Join* join) { delete reinterpret_cast<FakeJoin*>(join); };
  *engine = &table;
  return {};
}

}  // namespace copying_device

using OnEngine = std::tuple<WantedEngine, std::uint32_t>;  ///< and dimensions
class ServiceSearches : public ServiceTables, public testing::WithParamInterface<OnEngine> {};

TEST_P(ServiceSearches, see_what_has_changed_since_the_index_was_built) {
  Engines with_device(copying_device::find);
  copying_device::copies.clear();
  const auto [engine, dimensions] = GetParam();
  dims = dimensions;
  Random random(31);
  Admission admission;
  SearchBatches searches({with_device, admission});
  Interrupt interrupt;
  Blocks blocks = random_blocks(random, 40, 60);
  for (Block& block : blocks)
    for (Row& row : block) row.x = std::floor(row.x * 40), row.y = std::floor(row.y * 40);
  cpu_engine()->keep(std::uint64_t{1} << 30, 0);
  load(blocks);
  const auto expect = [&](const TableHold& hold, const Blocks& seen) {
    for (int i = 0; i < 6; ++i) {
      const Metric metric = std::array{Metric::kL2, Metric::kL1, Metric::kCosine}[random.index(3)];
      const double eps = random.index(3) == 0
                             ? random.unit() * (metric == Metric::kCosine ? 0.1 : 9)
                             : std::numeric_limits<double>::max();
      const std::uint64_t k = std::array<std::uint64_t, 4>{1, 7, 50, 4000}[random.index(4)];
      const std::vector<double> point =
          coordinates_of(static_cast<double>(random.index(40)), random.unit() * 40, dims);
      const Dataset left = {point.data(), nullptr, 1, dims, ScalarType::kFloat64};
      const JoinRequest request(Sides::two(left, hold.rows()), PointsWithin{metric, eps},
                                Output::nearest(k));
      SearchAnswer answer;
      ASSERT_TRUE(search_table(searches, request, hold, engine, interrupt, &answer).ok());
      const std::vector<FoundRow> expected = nearest_of(seen, point, metric, eps, k);
      ASSERT_EQ(answer.rows.size(), expected.size());
      for (std::size_t at = 0; at < expected.size(); ++at) {
        ASSERT_EQ(answer.rows[at].id, expected[at].id) << to_string(metric) << ' ' << k;
        ASSERT_EQ(answer.rows[at].distance, expected[at].distance);
      }
    }
  };
  expect(find(), blocks);
  std::set<std::uint64_t> indexed;
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round) {
    TableHold hold = find();
    const TableHold other = random.index(3) == 0 ? find() : TableHold();  // the rows are copied
    const Blocks before = blocks;
    std::vector<Read> reads;
    const bool lasts = random.index(4) != 0;
    change_some(random, lasts, &blocks, &reads);
    patch(hold, reads, blocks.size());
    expect(hold, blocks);
    const Blocks seen = blocks;
    if (!lasts) blocks = before;
    if (random.index(4) == 0) {  // engines let go of what they have not used for long
      cpu_engine()->forget(find().version()->key().identity);
      copying_device::copies.clear();
      if (random.index(2) == 0) expect(hold, seen);
    }
    if (other.version() != nullptr) expect(other, before);
    expect(find(), blocks);
    indexed.insert(find().indexed_rows().key.version);
  }
  EXPECT_GT(indexed.size(), 1u) << "after many changes another index is worth it";
  EXPECT_LT(indexed.size(), 150u);
  cpu_engine()->keep(0, 0);
}

INSTANTIATE_TEST_SUITE_P(On, ServiceSearches,
                         testing::Combine(testing::Values(WantedEngine::kCpu, WantedEngine::kCuda),
                                          testing::Values(2u, 24u)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == WantedEngine::kCpu
                                                  ? "cpu"
                                                  : "device") +
                                  "_" + std::to_string(std::get<1>(test.param));
                         });

TEST_F(ServiceTables, threads_see_whole_versions) {
  constexpr int kThreads = 4, kBlocks = 6;
  // All rows of a version have one x; a patch of all blocks sets another.
  const auto rows_with = [](double x, int salt) {
    Blocks blocks(kBlocks);
    for (int b = 0; b < kBlocks; ++b)
      for (int i = 0; i <= (b + salt) % 4; ++i)
        blocks[static_cast<std::size_t>(b)].push_back({b, x, 1});
    return blocks;
  };
  load(rows_with(0, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 1; i < 60; ++i) {
        TableHold hold = find();
        if (hold.version() != nullptr) {
          const std::vector<Row> rows = rows_of(hold.rows());
          for (const Row& row : rows) EXPECT_EQ(row.x, rows[0].x);
        }
        const Blocks blocks = rows_with(t * 1000 + i, t + i);
        std::vector<Read> reads = all_of(blocks);
        patch(hold, reads, kBlocks, i % 5 == 0);
        EXPECT_EQ(rows_of(hold.rows()), rows_of(blocks));
        if (i % 20 == 0) tables.evict(1, 0);
        tables.list(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpujoin::test
