#include "service/tables/table_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
constexpr std::int64_t kNoRow = 0;  ///< the id of an empty slot; those of rows are ctids

}  // namespace

TableRows::TableRows(const TableRows& other)
    : points_(other.points_),
      ids_(other.ids_),
      scores_(other.scores_),
      dims_(other.dims_),
      scalar_(other.scalar_),
      scored_(other.scored_),
      end_(other.end_),
      live_(other.live_),
      blocks_(other.blocks_),
      changes_(other.changes_) {}

std::uint64_t TableRows::bytes() const {
  const std::uint64_t base =
      changes_.base ? changes_.base->ids.bytes() + points_.bytes_of_changes(changes_.changed.size())
                    : 0;
  return blocks_.size() * sizeof(Slots) + points_.bytes() + ids_.bytes() + scores_.bytes() + base;
}

Dataset TableRows::view(const DatasetKey& key) const {
  Dataset data = {nullptr, ids_.data(), end_, dims_, scalar_, scores_.data()};
  points_.place(&data);
  data.key = key;
  return data;
}

/// Whether rows that came can lie beside those there.
bool TableRows::has_form_of(const ClientRows& rows) const {
  return rows.dims == dims_ && rows.scalar == scalar_ && rows.scored() == scored_;
}

bool TableRows::lacks_blocks(const TablePatch& patch) const {
  const auto beyond =
      std::find_if(patch.blocks.begin(), patch.blocks.end(),
                   [&](const auto& block) { return block.block >= blocks_.size(); });
  const std::uint64_t known = std::min<std::uint64_t>(blocks_.size(), patch.table_blocks);
  return known + static_cast<std::uint64_t>(patch.blocks.end() - beyond) != patch.table_blocks;
}

bool TableRows::has_same_row(std::uint64_t slot, const TablePatch& patch,
                             const TablePatch::Block& block, std::uint32_t row) const {
  const std::uint64_t bytes = points_.row_bytes();
  const double score = score_at(slot), other = patch.score(block, row);
  return id_at(slot) == patch.id(block, row) &&
         std::memcmp(points_.row(slot), patch.point(block, row, bytes), bytes) == 0 &&
         std::memcmp(&score, &other, sizeof score) == 0;
}

/// Number of the block's rows here that the patch has stay as they are.
std::uint32_t TableRows::rows_that_stay(const TablePatch::Block& block) const {
  if (block.coming_rows() == block.proof.rows || block.block >= blocks_.size()) return 0;
  const Slots& slots = blocks_[block.block];
  std::uint32_t rows = 0;
  for (std::uint32_t place = 0; place < slots.rows; ++place)
    rows += is_same(block, id_at(slots.slot(place))) ? 1 : 0;
  return rows;
}

/// By row that comes to the block: the row there that has its id, or kNowhere.
std::vector<std::uint32_t> TableRows::places_of(const TablePatch& patch,
                                                const TablePatch::Block& block) const {
  const Slots& slots = blocks_[block.block];
  std::vector<std::uint32_t> places(block.coming_rows(), kNowhere);
  if (places.empty()) return places;
  std::vector<std::int64_t> read(places.size());
  for (std::uint32_t row = 0; row < read.size(); ++row) read[row] = patch.id(block, row);
  const std::int64_t* const ids = ids_.data() + slots.first;
  if (slots.rows <= slots.count &&
      std::equal(ids, ids + slots.rows, read.begin(), read.end())) {  // as it nearly always is
    std::iota(places.begin(), places.end(), 0u);
    return places;
  }
  const auto id_of = [&](std::uint32_t place) { return id_at(slots.slot(place)); };
  std::vector<std::uint32_t> by_id;
  for (std::uint32_t place = 0; place < slots.rows; ++place)
    if (!is_same(block, id_of(place))) by_id.push_back(place);
  std::sort(by_id.begin(), by_id.end(),
            [&](std::uint32_t a, std::uint32_t b) { return id_of(a) < id_of(b); });
  std::vector<bool> is_taken(slots.rows, false);
  for (std::uint32_t row = 0; row < places.size(); ++row) {
    const auto found =
        std::lower_bound(by_id.begin(), by_id.end(), read[row],
                         [&](std::uint32_t place, std::int64_t id) { return id_of(place) < id; });
    if (found == by_id.end() || id_of(*found) != read[row] || is_taken[*found]) continue;
    places[row] = *found;
    is_taken[*found] = true;
  }
  return places;
}

/// The order of the rows does not matter.
bool TableRows::has_same_rows(const TablePatch& patch, const TablePatch::Block& block) const {
  if (block.block >= blocks_.size()) return block.proof.rows == 0;
  const Slots& slots = blocks_[block.block];
  if (slots.rows != block.proof.rows || rows_that_stay(block) + block.coming_rows() != slots.rows)
    return false;
  if (block.coming_rows() == 0) return true;
  if (block.new_rows > 0 && !has_form_of(patch.rows)) return false;
  const std::vector<std::uint32_t> places = places_of(patch, block);
  for (std::uint32_t row = 0; row < places.size(); ++row)
    if (places[row] == kNowhere || !has_same_row(slots.slot(places[row]), patch, block, row))
      return false;
  return true;
}

bool TableRows::is_changed_by(const TablePatch& patch, bool lasting) const {
  if (patch.table_blocks != blocks_.size()) return true;
  return std::any_of(patch.blocks.begin(), patch.blocks.end(), [&](const auto& block) {
    return regards(block, lasting) && !has_same_rows(patch, block);
  });
}

/// Whether the value of some row stays.
bool TableRows::leaves_rows(const TablePatch& patch, bool lasting) const {
  if (!patch.moved.empty()) return true;
  auto next = patch.blocks.begin();
  for (std::uint64_t number = 0;
       number < std::min<std::uint64_t>(patch.table_blocks, blocks_.size()); ++number) {
    const bool is_read = next != patch.blocks.end() && next->block == number;
    const TablePatch::Block* const block = is_read ? &*next++ : nullptr;
    if (block == nullptr || !regards(*block, lasting) ? blocks_[number].rows > 0
                                                      : rows_that_stay(*block) > 0)
      return true;
  }
  return false;
}

/// Makes the patch's rows the only ones, in the memory of the client, which has sealed it.
void TableRows::adopt(TablePatch& patch, bool lasting) {
  std::vector<Slots> blocks(patch.table_blocks);
  std::uint64_t live = 0;
  for (const auto& block : patch.blocks) {
    if (!regards(block, lasting)) continue;
    blocks[block.block] = {
        .first = block.first_row, .count = block.new_rows, .rows = block.new_rows};
    live += block.new_rows;
  }
  blocks_ = std::move(blocks);
  live_ = live;
  end_ = patch.rows.rows;
  take_form_of(patch.rows);
  points_ = RowChunks(std::move(patch.rows.coordinates), end_, points_.row_bytes());
  ids_ = SharedArray<std::int64_t>(std::move(patch.rows.ids), end_);
  if (scored_) scores_ = SharedArray<double>(std::move(patch.rows.scores), end_);
}

/// Called before the first change.
void TableRows::keep_base() {
  if (changes_.version == 0 || changes_.base) return;
  changes_.base = std::make_shared<const TableBase>(TableBase{points_, ids_, live_});
  changes_.is_changed.resize(ids_.size());
}

Dataset TableRows::base_view(const DatasetKey& key) const {
  const TableBase& base = *changes_.base;
  Dataset data = {nullptr, base.ids.data(), base.ids.size(), dims_, scalar_};
  base.points.place(&data);
  data.key = key;
  return data;
}

/// Called before a slot gets another row, or none.
void TableRows::note_change(std::uint64_t slot) {
  if (!changes_.base || slot >= changes_.base->ids.size()) return;
  if (changes_.is_changed[slot]) return;
  changes_.is_changed[slot] = true;
  changes_.changed.push_back(slot);
  changes_.ids.insert(changes_.base->ids[slot]);
}

bool TableRows::has_many_changes() const {
  constexpr std::uint64_t kMostNumbers = 1 << 23;  // a few milliseconds of one core
  if (changes_.version == 0) return true;
  if (!changes_.base) return false;
  const std::uint64_t changed = changes_.changed.size(), slots = changes_.base->ids.size();
  const std::uint64_t unchanged = changes_.base->rows - std::min(changes_.base->rows, changed);
  const std::uint64_t others = live_ - std::min(live_, unchanged);
  return std::max(changed, others) > slots / 4 || others * dims_ > kMostNumbers;
}

/// Leaves slots without rows. One NaN is enough for a row to match nothing; but the memory of a
/// slot that never had a row is unknown.
void TableRows::clear(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t slot = first; slot < first + count; ++slot) {
    note_change(slot);
    unsigned char* const point = points_.change(slot);
    const std::uint32_t numbers = ids_[slot] == kNoRow ? dims_ : 1;
    if (scalar_ == ScalarType::kFloat32)
      std::fill_n(reinterpret_cast<float*>(point), numbers,
                  std::numeric_limits<float>::quiet_NaN());
    else
      std::fill_n(reinterpret_cast<double*>(point), numbers,
                  std::numeric_limits<double>::quiet_NaN());
    ids_[slot] = kNoRow;
  }
}

/// Puts a row into the slot.
void TableRows::set_row(std::uint64_t slot, const unsigned char* point, std::int64_t id,
                        double score) {
  note_change(slot);
  std::memcpy(points_.change(slot), point, points_.row_bytes());
  ids_[slot] = id;
  if (scored_) scores_[slot] = score;
}

void TableRows::move_row(std::uint64_t from, std::uint64_t to) {
  set_row(to, points_.row(from), id_at(from), score_at(from));
}

/// Makes room for `slots` slots.
void TableRows::reserve(std::uint64_t slots) {
  if (dims_ == 0) return;
  points_.reserve(slots);
  ids_.open(slots);
  if (scored_) scores_.open(slots);
}

/// Number of slots that a block needs beyond those that it has.
std::uint32_t TableRows::slots_for(const TablePatch::Block& block) const {
  const std::uint32_t rows = block.proof.rows;
  if (block.block >= blocks_.size()) return rows;
  const Slots& slots = blocks_[block.block];
  if (rows <= slots.places()) return 0;
  return slots.more_count == 0 ? rows - slots.count
                               : std::max(rows - slots.count, 2 * slots.more_count);
}

/// Gives a block the slots that it needs, after all others. Rows stay where they are, but for those
/// in slots that it got later.
void TableRows::add_slots(const TablePatch::Block& block) {
  Slots& slots = blocks_[block.block];
  const std::uint32_t count = slots_for(block);
  if (count == 0) return;
  const Slots old = slots;
  const bool is_last = old.more_count == 0 && old.first + old.count == end_;
  if (old.count == 0) slots.first = end_;
  if (old.count == 0 || is_last) {
    slots.count += count;
  } else {
    slots.more_first = end_;
    slots.more_count = count;
  }
  end_ += count;
  for (std::uint32_t place = old.count; place < old.rows; ++place)
    move_row(old.slot(place), slots.slot(place));
  clear(old.more_first, old.more_count);
  for (std::uint32_t place = block.proof.rows; place < slots.places(); ++place)
    clear(slots.slot(place), 1);
}

/// Rows that are there already stay in their slots, but the last ones take the places of rows that
/// have gone.
void TableRows::put(const TablePatch& patch, const TablePatch::Block& block) {
  Slots& slots = blocks_[block.block];
  std::vector<std::uint8_t> stays(slots.rows);
  std::uint32_t staying = 0;
  for (std::uint32_t place = 0; place < slots.rows; ++place) {
    stays[place] = is_same(block, id_at(slots.slot(place))) ? 1 : 0;
    staying += stays[place];
  }
  require(staying + block.coming_rows() == block.proof.rows, "a table lacks rows that are to stay");
  live_ = live_ - slots.rows + block.proof.rows;
  add_slots(block);
  const std::vector<std::uint32_t> places = places_of(patch, block);
  const auto set_row_of_patch = [&](std::uint64_t slot, std::uint32_t row) {
    set_row(slot, patch.point(block, row, points_.row_bytes()), patch.id(block, row),
            patch.score(block, row));
  };
  for (std::uint32_t row = 0; row < places.size(); ++row) {
    if (places[row] == kNowhere) continue;
    stays[places[row]] = 1;
    const std::uint64_t slot = slots.slot(places[row]);
    if (!has_same_row(slot, patch, block, row)) set_row_of_patch(slot, row);
  }
  for (std::uint32_t place = slots.rows; place-- > 0;) {
    if (stays[place] != 0) continue;
    const std::uint64_t last = slots.slot(--slots.rows);
    if (slots.slot(place) != last) move_row(last, slots.slot(place));
    clear(last, 1);
  }
  for (std::uint32_t row = 0; row < places.size(); ++row)
    if (places[row] == kNowhere) set_row_of_patch(slots.slot(slots.rows++), row);
}

void TableRows::find_moved(TablePatch* patch) const {
  if (patch->moved.empty()) return;
  require(!scored_ && dims_ > 0, "a table has no rows that could move");
  const std::uint64_t bytes = points_.row_bytes();
  patch->moved_points.reset(new unsigned char[patch->moved.size() * bytes]);
  unsigned char* to = patch->moved_points.get();
  for (const MovedRow& row : patch->moved) {
    const auto block = static_cast<std::uint64_t>(row.before) >> 16;
    require(block < blocks_.size(), "a table lacks a row that has moved");
    const Slots& slots = blocks_[block];
    std::uint32_t place = 0;
    while (place < slots.rows && id_at(slots.slot(place)) != row.before) ++place;
    require(place < slots.rows, "a table lacks a row that has moved");
    std::memcpy(to, points_.row(slots.slot(place)), bytes);
    to += bytes;
  }
}

void TableRows::apply(TablePatch& patch, bool lasting) {
  std::vector<const TablePatch::Block*> changed;
  for (const auto& block : patch.blocks)
    if (regards(block, lasting)) changed.push_back(&block);
  if (!leaves_rows(patch, lasting)) {
    if (changed.size() == patch.blocks.size()) return adopt(patch, lasting);
    start_anew(patch.rows);
  }
  require(patch.rows.rows == 0 || has_form_of(patch.rows),
          "the rows of a table have different numbers of dimensions, or some have no score");
  std::uint64_t more_slots = 0;
  for (const auto* const block : changed) more_slots += slots_for(*block);
  keep_base();
  reserve(end_ + more_slots);
  for (std::uint64_t block = patch.table_blocks; block < blocks_.size(); ++block) {
    clear(blocks_[block].first, blocks_[block].count);
    clear(blocks_[block].more_first, blocks_[block].more_count);
    live_ -= blocks_[block].rows;
  }
  blocks_.resize(patch.table_blocks);
  for (const TablePatch::Block* const block : changed) put(patch, *block);
}

/// For rows that may have other dimensions; none are here then.
void TableRows::take_form_of(const ClientRows& rows) {
  dims_ = rows.dims;
  scalar_ = rows.scalar;
  scored_ = rows.scored();
  points_ = RowChunks(dims_ * scalar_bytes(scalar_));
  ids_ = {};
  scores_ = {};
  changes_ = {};
}

/// Forgets all slots.
void TableRows::start_anew(const ClientRows& rows) {
  take_form_of(rows);
  std::fill(blocks_.begin(), blocks_.end(), Slots{});
  end_ = live_ = 0;
}

void TableRows::pack() {
  RowChunks points(points_.row_bytes());
  SharedArray<std::int64_t> ids;
  SharedArray<double> scores;
  points.reserve(live_);
  ids.open(live_);
  if (scored_) scores.open(live_);
  std::uint64_t next = 0;
  for (Slots& slots : blocks_) {
    const Slots old = slots;
    slots = {.first = next, .count = old.rows, .rows = old.rows};
    for (std::uint32_t place = 0; place < old.rows; ++place, ++next) {
      const std::uint64_t from = old.slot(place);
      std::memcpy(points.change(next), points_.row(from), points_.row_bytes());
      ids[next] = id_at(from);
      if (scored_) scores[next] = score_at(from);
    }
  }
  points_ = std::move(points);
  ids_ = std::move(ids);
  scores_ = std::move(scores);
  end_ = live_;
  changes_ = {};
}

}  // namespace gpujoin::service
