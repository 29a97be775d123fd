#include "engine/joins/partitioned_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "engine/joins/distance_to_itself.h"

namespace gpujoin {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// Fewer rows than that no part has.
constexpr std::uint64_t kFewestRows = 16;

/// Rows of a batch, and clusters that are sorted between interrupts: a share of all of them, and so
/// many at least.
constexpr std::uint64_t kBatchRows = std::uint64_t{1} << 16;
constexpr std::uint64_t kSortedAtOnce = std::uint64_t{1} << 20, kSortingShare = 16;

/// How far two points are apart in a column, at most, whose distances to a third one are `reach` at
/// most: differences are rounded.
double twice(double reach) { return 2 * reach * (1 + 0x1p-40); }

/// Whether a value is near the rows of other parts: `others` is the gap between these.
bool is_near(const Extent& others, const Extent& value, double reach) {
  return !(value.low - others.low > reach) || !(others.high - value.high > reach);
}

}  // namespace

Cut choose_cluster_cut(const JoinRequest& request, const WalkCosts& costs) {
  if (request.left().rows == 0) return {};
  const JoinRequest counts = request.asking(Output::count_per_row());
  return choose_cut(
      counts, is_of_bits(request.metric()) ? Strategy{} : choose_strategy(counts, costs), costs);
}

PartitionedClusters::PartitionedClusters(const JoinRequest& request, const Cut& cut,
                                         const PartSize& size, OpenJoin joins)
    : request_(request),
      cut_(cut),
      joins_(std::move(joins)),
      budget_(request.resources.memory_limit),
      links_(budget_, request.left().rows),
      states_(budget_, request.left().rows),
      sets_(links_.data()) {
  done_.left_rows = done_.right_rows = request.left().rows;
  const Dataset& data = request.left();
  const std::uint64_t listed = data.file == nullptr ? sizeof(std::uint32_t) * data.rows : 0;
  const std::uint64_t copied = point_bytes(data) + sizeof(std::int64_t) + sizeof(std::uint32_t);
  const std::uint64_t left = budget_.left() - std::min(budget_.left(), listed);
  part_rows_ = std::max(
      kFewestRows, std::min(size.most_rows, (left - left / 4) / (2 * (copied + size.row_bytes))));
  begin();
}

/// Nothing is known of any row.
void PartitionedClusters::begin() {
  const std::uint64_t left = budget_.left();
  const std::uint64_t memory = left == MemoryBudget::kUnlimited ? std::uint64_t{1} << 30 : left / 2;
  std::iota(links_.begin(), links_.end(), 0u);
  std::fill(states_.begin(), states_.end(), kNone);
  if (!dividers_) dividers_.emplace(dividing_threads(request_));
  side_.emplace(budget_, request_.left(), cut_.column, part_rows_, memory,
                request_.resources.scratch, *dividers_);
  stage_ = Stage::kDivide;
}

/// Begins again with smaller parts: a step had no memory.
void PartitionedClusters::shrink_parts() {
  join_.reset();
  left_ = {};
  right_ = {};
  first_ = {};
  counts_ = {};
  followed_ = {};
  side_.reset();
  part_rows_ /= 2;
  begin();
}

void PartitionedClusters::divide() {
  if (side_->divide()) return;
  bases_.assign(1, 0);
  for (std::size_t part = 0; part < parts(); ++part)
    bases_.push_back(bases_.back() + side_->rows(part));
  has_new_cores_.assign(parts(), false);
  begin_stage(Stage::kClusters);
}

void PartitionedClusters::begin_stage(Stage stage) {
  stage_ = stage;
  part_ = 0;
  if (joins_parts() && parts() > 0) begin_part();
}

// ---- Rows of parts

/// Whether a part has such a row: wanted(slot).
template <class Wanted>
bool PartitionedClusters::has(std::size_t part, const Wanted& wanted) const {
  for (std::uint64_t slot = bases_[part]; slot < bases_[part + 1]; ++slot)
    if (wanted(slot)) return true;
  return false;
}

/// The rows of a part that are wanted: wanted(slot) and is_in_reach(value in the cut column).
template <class Wanted, class IsInReach>
PartitionedClusters::Loaded PartitionedClusters::load(std::size_t part, const Wanted& wanted,
                                                      const IsInReach& is_in_reach) {
  Loaded loaded{side_->load(part), {}};
  RowCopy& copy = loaded.copy;
  const std::uint64_t rows = copy.view.rows, bytes = point_bytes(copy.view);
  loaded.slots = Buffer<std::uint32_t>(budget_, rows);
  copy.view.scores = nullptr;
  std::uint64_t kept = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t slot = bases_[part] + row;
    if (!wanted(slot) || !is_in_reach(side_->bounds_of(copy.view, row))) continue;
    loaded.slots[kept] = static_cast<std::uint32_t>(slot);
    copy.ids[kept] = copy.ids[row];
    if (kept < row)
      std::memcpy(copy.coordinates.data() + kept * bytes, copy.coordinates.data() + row * bytes,
                  bytes);
    ++kept;
  }
  copy.view.rows = kept;
  return loaded;
}

template <class IsInReach>
PartitionedClusters::Loaded PartitionedClusters::load_cores(std::size_t part,
                                                            const IsInReach& is_in_reach) {
  return load(
      part, [this](std::uint64_t slot) { return is_core(slot); }, is_in_reach);
}

PartitionedClusters::Loaded PartitionedClusters::unite(const Loaded& a, const Loaded& b) {
  Loaded both{make_room_for_rows(budget_, a.view(), a.rows() + b.rows()), {}};
  both.slots = Buffer<std::uint32_t>(budget_, both.rows());
  const std::uint64_t bytes = point_bytes(a.view());
  std::uint64_t place = 0;
  for (const Loaded* const one : {&a, &b}) {
    std::memcpy(both.copy.coordinates.data() + place * bytes, one->copy.coordinates.data(),
                one->rows() * bytes);
    std::copy_n(one->copy.ids.data(), one->rows(), both.copy.ids.data() + place);
    std::copy_n(one->slots.data(), one->rows(), both.slots.data() + place);
    place += one->rows();
  }
  return both;
}

/// Between which values no row of another part lies, seen from the values of this one.
Extent PartitionedClusters::others_of(std::size_t part) const {
  const double low = side_->extent(part).low;
  Extent others{-HUGE_VAL, HUGE_VAL};
  for (std::size_t other = 0; other < parts(); ++other) {
    if (other == part) continue;
    const Extent& extent = side_->extent(other);
    if (extent.low <= low)
      others.low = std::max(others.low, extent.high);
    else
      others.high = std::min(others.high, extent.low);
  }
  return others;
}

/// The root of all core rows of a part; kNobody where there are none, or several.
std::uint32_t PartitionedClusters::common_root(std::size_t part) const {
  std::uint32_t root = kNobody;
  for (std::uint64_t slot = bases_[part]; slot < bases_[part + 1]; ++slot) {
    if (!is_core(slot)) continue;
    const std::uint32_t its = sets_.root(static_cast<std::uint32_t>(slot));
    if (root != kNobody && root != its) return kNobody;
    root = its;
  }
  return root;
}

// ---- Steps

/// Opens the step of the next pair of parts, if it has anything to do.
void PartitionedClusters::look_at_pair() {
  if (part_ == parts()) {
    const bool all_are_core = request_.min_points() == 1;  // none have to be looked for
    switch (stage_) {
      case Stage::kClusters:
        return begin_stage(all_are_core ? Stage::kUnions : Stage::kCounts);
      case Stage::kCounts:
        return begin_stage(Stage::kUnions);
      default:
        return begin_stage(all_are_core || stage_ == Stage::kBorders ? Stage::kLinks
                                                                     : Stage::kBorders);
    }
  }
  const std::size_t other = partner_++;
  if (other == parts() || (stage_ == Stage::kClusters && other > part_)) {
    ++part_;
    if (part_ < parts()) begin_part();
    return;
  }
  if (!are_within_reach(side_->extent(part_), side_->extent(other), cut_.reach)) return;
  switch (stage_) {
    case Stage::kClusters:
      return open_clusters();
    case Stage::kCounts:
      return open_counts(other);
    case Stage::kUnions:
      return open_union(other);
    default:
      return open_borders(other);
  }
}

/// Before a part meets others: clusters are of one part, unions of each two parts once.
void PartitionedClusters::begin_part() {
  const bool once = stage_ == Stage::kClusters || stage_ == Stage::kUnions;
  partner_ = once ? part_ : 0;
  others_ = others_of(part_);
  counts_ = {};
  followed_ = {};
  const bool any = has(part_, [&](std::uint64_t slot) { return !is_core(slot); });
  if (stage_ != Stage::kClusters && stage_ != Stage::kUnions && !any) {
    partner_ = parts();
  } else if (stage_ == Stage::kCounts) {
    counts_ = Buffer<std::uint32_t>(budget_, rows_of_part());
    std::fill(counts_.begin(), counts_.end(), 0);
  } else if (stage_ == Stage::kBorders) {
    followed_ = Buffer<Followed>(budget_, rows_of_part());
  }
}

void PartitionedClusters::open_clusters() {
  const auto all = [](const auto&) { return true; };
  left_ = load(part_, all, all);
  open(Sides::one(left_.view(), PairSelection::kAll), Output::clusters(request_.min_points()));
}

/// Only rows near other parts may have neighbours there.
void PartitionedClusters::open_counts(std::size_t other) {
  if (parts() == 1) return;
  const auto near_part = [&](std::size_t part, double reach) {
    return [this, other, part, reach](const Extent& value) {
      return other == part_ ? is_near(others_, value, reach)
                            : are_within_reach(side_->extent(part), value, cut_.reach);
    };
  };
  left_ = load(
      part_, [&](std::uint64_t slot) { return !is_core(slot); }, near_part(other, cut_.reach));
  if (left_.rows() == 0) return;
  right_ = load(
      other, [](std::uint64_t) { return true; }, near_part(part_, twice(cut_.reach)));
  if (right_.rows() == 0) return;
  open(Sides::two(left_.view(), right_.view()), Output::count_per_row());
}

void PartitionedClusters::open_union(std::size_t other) {
  if (other == part_) {
    if (!has_new_cores_[part_]) return;
    left_ = load_cores(
        part_, [&](const Extent& value) { return is_near(others_, value, twice(cut_.reach)); });
  } else {
    const std::uint32_t root = common_root(part_);
    if (root != kNobody && root == common_root(other)) return;
    left_ = load_cores(part_, within_reach_of(other));
    if (left_.rows() == 0) return;
    right_ = load_cores(other, within_reach_of(part_));
    if (right_.rows() == 0) return;
    left_ = unite(left_, right_);
    right_ = {};
  }
  open(Sides::one(left_.view(), PairSelection::kAll), Output::clusters(1));
}

void PartitionedClusters::open_borders(std::size_t other) {
  if (!has(other, [&](std::uint64_t slot) { return is_core(slot); })) return;
  left_ = load(
      part_, [&](std::uint64_t slot) { return !is_core(slot); }, within_reach_of(other));
  if (left_.rows() == 0) return;
  right_ = load_cores(other, within_reach_of(part_));
  if (right_.rows() == 0) return;
  open(Sides::two(left_.view(), right_.view()), Output::pairs_with_distances());
}

void PartitionedClusters::open(const Sides& sides, const Output& output) {
  first_ = Buffer<std::uint32_t>(budget_, output.kind() == Output::kClusters ? sides.rows() : 0);
  std::fill(first_.begin(), first_.end(), kNobody);
  held_ = budget_.used();
  join_ = joins_(request_of_step(request_, output, sides, budget_.limit_within()));
}

/// Takes the next batch of the step, and ends it after the last one.
Status PartitionedClusters::collect() {
  ResultBatch batch{};
  const Status status = join_->next_batch(&batch);
  if (status.code == StatusCode::kEnd) {
    end_step();
    return {};
  }
  if (!status.ok()) return status;
  if (stage_ == Stage::kCounts)
    take_counts(batch);
  else if (stage_ == Stage::kBorders)
    take_pairs(batch);
  else
    take_clusters(batch);
  return status;
}

void PartitionedClusters::take_clusters(const ResultBatch& batch) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const RowCluster found = unpack_cluster(batch.counts[i]);
    if (found.role != ClusterRole::kCore) continue;
    const std::uint32_t slot =
        left_.slots[static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]])];
    states_[slot] = kCore;
    std::uint32_t& first = first_[found.cluster];
    if (first == kNobody)
      first = slot;
    else
      sets_.unite(first, slot);
  }
}

void PartitionedClusters::take_counts(const ResultBatch& batch) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const auto row = static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]);
    counts_[left_.slots[row] - bases_[part_]] += static_cast<std::uint32_t>(batch.counts[i]);
  }
}

void PartitionedClusters::take_pairs(const ResultBatch& batch) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      std::uint32_t left = batch.rows[i], right = batch.neighbors[at];
      if (batch.transposed) std::swap(left, right);
      const std::uint32_t slot = left_.slots[static_cast<std::uint64_t>(batch.left_ids[left])];
      const auto row = static_cast<std::uint64_t>(batch.right_ids[right]);
      const Followed core{batch.distances[at], right_.copy.ids[row]};
      Followed& known = followed_[slot - bases_[part_]];
      const bool nearest = request_.borders() == BorderRule::kNearest;
      const auto rank = [&](const Followed& of, std::uint32_t at_slot) {
        return std::tuple(nearest ? of.distance : 0, of.id, at_slot);
      };
      if (states_[slot] == kBorder && !(rank(core, right_.slots[row]) < rank(known, links_[slot])))
        continue;
      known = core;
      links_[slot] = right_.slots[row];
      states_[slot] = kBorder;
    }
}

void PartitionedClusters::end_step() {
  JoinStats step{};
  join_->stats(&step);
  if (stage_ == Stage::kClusters) strategy_ = step.strategy;
  done_ = stats_with(done_, join_.get(), held_);
  ++done_.parts;
  join_.reset();
  if (stage_ == Stage::kCounts) mark_counted();
  left_ = {};
  right_ = {};
}

/// After a part has counted more neighbours of its rows. Among those in the part itself is the row,
/// where its distance to itself is within eps; every row is a neighbour of its own whatever that
/// is.
void PartitionedClusters::mark_counted() {
  const bool own = partner_ == part_ + 1;
  for (std::uint64_t row = 0; row < left_.rows(); ++row) {
    const std::uint32_t slot = left_.slots[row];
    std::uint32_t& count = counts_[slot - bases_[part_]];
    if (own && distance_to_itself(request_.metric(), left_.copy.view, row) <= request_.eps())
      --count;
    if (std::uint64_t{count} + 1 < request_.min_points()) continue;
    states_[slot] = kCore;
    has_new_cores_[part_] = true;
  }
}

// ---- Numbers

/// Links of rows become their roots.
void PartitionedClusters::link_part() {
  for (std::uint64_t slot = bases_[part_]; slot < bases_[part_ + 1]; ++slot) {
    if (states_[slot] == kNone) continue;
    links_[slot] = sets_.root(static_cast<std::uint32_t>(slot));
    if (links_[slot] == slot) ++cluster_count_;
  }
}

/// Links of roots become numbers.
void PartitionedClusters::list_part() {
  if (part_ == 0) clusters_ = Buffer<Cluster>(budget_, cluster_count_);
  for (std::uint64_t slot = bases_[part_]; slot < bases_[part_ + 1]; ++slot) {
    if (!is_core(slot) || links_[slot] != slot) continue;
    clusters_[listed_] = {std::numeric_limits<std::int64_t>::max(),
                          static_cast<std::uint32_t>(slot)};
    links_[slot] = static_cast<std::uint32_t>(listed_++);
    states_[slot] = kRoot;
  }
}

std::uint32_t PartitionedClusters::number_of(std::uint64_t slot) const {
  return states_[slot] == kRoot ? links_[slot] : links_[links_[slot]];
}

void PartitionedClusters::take_ids() {
  const Buffer<std::int64_t> ids = side_->load_ids(part_);
  for (std::uint64_t row = 0; row < ids.size(); ++row) {
    const std::uint64_t slot = bases_[part_] + row;
    if (states_[slot] == kNone) continue;
    std::int64_t& first = clusters_[number_of(slot)].id;
    first = std::min(first, ids[row]);
  }
}

/// Sorts some more clusters, and numbers them.
void PartitionedClusters::order_some() {
  const std::uint64_t end =
      std::min(cluster_count_, ordered_ + std::max(kSortedAtOnce, cluster_count_ / kSortingShare));
  if (end < cluster_count_)
    std::nth_element(clusters_.begin() + ordered_, clusters_.begin() + end, clusters_.end());
  std::sort(clusters_.begin() + ordered_, clusters_.begin() + end);
  for (; ordered_ < end; ++ordered_)
    links_[clusters_[ordered_].root] = static_cast<std::uint32_t>(ordered_);
  if (ordered_ < cluster_count_) return;
  clusters_ = {};
  begin_stage(Stage::kResult);
}

/// The next rows; false: there are no more.
bool PartitionedClusters::deliver(ResultBatch* batch) {
  while (part_ < parts() && ids_.size() == delivered_) {
    if (ids_.size() > 0) ++part_;
    ids_ = {};
    delivered_ = 0;
    if (part_ < parts()) ids_ = side_->load_ids(part_);
  }
  if (part_ == parts()) return false;
  const std::uint64_t asked = request_.knobs.batch_pairs, most = asked > 0 ? asked : kBatchRows,
                      count = std::min<std::uint64_t>(most, ids_.size() - delivered_);
  if (positions_.size() < count) {
    positions_ = Buffer<std::uint32_t>(budget_, count);
    words_ = Buffer<std::uint64_t>(budget_, count);
    std::iota(positions_.begin(), positions_.end(), 0u);
  }
  for (std::uint64_t row = 0; row < count; ++row) {
    const std::uint64_t slot = bases_[part_] + delivered_ + row;
    const std::uint8_t state = states_[slot];
    words_[row] = state == kNone
                      ? pack_cluster({ClusterRole::kNoise, 0})
                      : pack_cluster({state == kBorder ? ClusterRole::kBorder : ClusterRole::kCore,
                                      number_of(slot)});
  }
  *batch = {};
  batch->row_count = count;
  batch->rows = positions_.data();
  batch->counts = words_.data();
  const std::int64_t* const ids = ids_.data() + delivered_;
  batch->set_ids(ids, count, ids, count);
  batch->ids_generation = ++ids_generation_;
  delivered_ += count;
  ++done_.batches;
  return true;
}

// ---- All of it

/// Does some of what comes before the result.
Status PartitionedClusters::advance() {
  if (stage_ == Stage::kDivide) {
    divide();
  } else if (join_) {
    return collect();
  } else if (joins_parts()) {
    left_ = {};
    right_ = {};
    look_at_pair();
  } else if (stage_ == Stage::kOrder) {
    order_some();
  } else if (part_ == parts()) {
    begin_stage(stage_ == Stage::kLinks   ? Stage::kLists
                : stage_ == Stage::kLists ? Stage::kIds
                                          : Stage::kOrder);
  } else {
    if (stage_ == Stage::kLinks) link_part();
    if (stage_ == Stage::kLists) list_part();
    if (stage_ == Stage::kIds) take_ids();
    ++part_;
  }
  return {};
}

Status PartitionedClusters::next_of_parts(ResultBatch* batch) {
  while (stage_ != Stage::kResult) {
    try {
      const Status status = advance();
      if (!status.ok()) return status;
    } catch (const MemoryLimitExceeded&) {
      if (stage_ > Stage::kBorders || part_rows_ < 2 * kFewestRows) throw;
      shrink_parts();
    }
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  }
  return {deliver(batch) ? StatusCode::kOk : StatusCode::kEnd};
}

Status PartitionedClusters::next_batch(ResultBatch* batch) {
  try {
    return next_of_parts(batch);
  } catch (const RowFileFailed& failed) {
    return failed.status;
  }
}

/// The work is that of the first joins, and as much again of the others, in rows.
void PartitionedClusters::stats(JoinStats* stats) const {
  *stats = stats_with(done_, join_.get(), held_);
  stats->strategy = strategy_;
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
  const std::uint64_t rows = request_.left().rows, stages = 4;
  if (stage_ == Stage::kDivide) return;
  const auto number =
      static_cast<std::uint64_t>(stage_) - static_cast<std::uint64_t>(Stage::kClusters);
  stats->work = stages * rows;
  stats->work_done =
      joins_parts() ? number * rows + bases_[std::min(part_, parts())] : stages * rows;
}

}  // namespace gpujoin
