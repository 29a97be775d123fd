#include "engine/joins/partitioned_tree.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/joins/partitioned_nearest.h"

namespace gpujoin {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};
/// Edges between two looks at the interrupt.
constexpr std::uint64_t kEdgesAtOnce = std::uint64_t{1} << 20;
constexpr std::uint64_t kBatchEntries = std::uint64_t{1} << 16;

/// Room for edges beside those of the tree.
std::uint64_t spare_edges(std::uint64_t rows) { return rows / 4 + 1; }

/// Fewer rows than that no part has, so that there are not more pairs of parts than rows.
std::uint64_t fewest_rows(std::uint64_t rows) {
  constexpr std::uint64_t kFewest = 16;
  return std::max(kFewest, static_cast<std::uint64_t>(std::sqrt(static_cast<double>(rows))));
}

}  // namespace

PartitionedTree::PartitionedTree(const JoinRequest& request, const PartSize& size, OpenJoin joins)
    : request_(request),
      data_(bare_rows(request.left())),
      cut_(choose_nearest_cut(request)),
      joins_(std::move(joins)),
      budget_(request.resources.memory_limit) {
  done_.left_rows = done_.right_rows = rows();
  const std::uint64_t limit = request.resources.memory_limit;
  const std::uint64_t needed = std::max(
      rows() * row_bytes_held(),
      wants_edges() ? 0
                    : rows() * (sizeof(std::int64_t) + sizeof(TreeEdge) + sizeof(TreeEdge) / 4) +
                          StableClusters::bytes(rows(), request.min_cluster_size()));
  if (limit > 0 && needed > limit) throw MemoryLimitExceeded{needed, limit};
  part_rows_ = size.most_rows;
  if (limit > 0) {
    const std::uint64_t copied = row_bytes(data_) + sizeof(double);
    const std::uint64_t left = limit - rows() * row_bytes_held();
    part_rows_ = std::min(part_rows_, (left - left / 4) / (2 * (copied + size.row_bytes)));
  }
  part_rows_ = std::max(part_rows_, fewest_rows(rows()));
  order_.emplace(budget_, rows(), false);
  ranks_ = Buffer<std::uint32_t>(budget_, rows());
}

/// At most, besides what belongs to parts.
std::uint64_t PartitionedTree::row_bytes_held() const {
  const std::uint64_t listed = data_.file == nullptr ? sizeof(std::uint32_t) : 0;
  return sizeof(std::uint32_t) + sizeof(double) + sizeof(std::uint32_t) + sizeof(TreeEdge) +
         sizeof(TreeEdge) / 4 + 1 + listed;
}

// ---- Ranks and core distances

/// Some more rows by their ids.
void PartitionedTree::read_names() {
  if (data_.file == nullptr) {
    Dataset named = data_;
    named.ids = request_.left().ids;
    order_->add(named);
    stage_ = Stage::kRanks;
    return;
  }
  if (next_chunk_ == chunk_count(data_)) {
    stage_ = Stage::kRanks;
    return;
  }
  Dataset named = request_.left();
  named.scores_in_file = false;
  const std::uint64_t number = next_chunk_++, count = rows_of_chunk(named, number);
  Buffer<std::int64_t> ids(budget_, count);
  load_names(named, number, ids.data(), nullptr);
  order_->add({nullptr, ids.data(), count, data_.dims, data_.scalar});
}

void PartitionedTree::rank_rows() {
  if (order_->step()) return;
  for (std::uint64_t rank = 0; rank < rows(); ++rank)
    ranks_[order_->row_at(rank)] = static_cast<std::uint32_t>(rank);
  order_.reset();
  cores_ = Buffer<double>(budget_, rows());
  open_cores();
}

/// The core distance by one point is 0, that by more points than there are is infinite.
void PartitionedTree::open_cores() {
  const std::uint64_t others = request_.min_points() - 1;
  std::fill(cores_.begin(), cores_.end(), others == 0 ? 0 : HUGE_VAL);
  if (others == 0 || others >= rows()) return begin_parts();
  JoinRequest nearest = request_.asking({request_.metric(), DBL_MAX}, Output::nearest(others));
  nearest.sides = Sides::one(data_, PairSelection::kDistinct);
  nearest.knobs.batch_pairs = 0;
  held_ = budget_.used();
  std::uint64_t& limit = nearest.resources.memory_limit;
  if (limit > 0) limit = limit > held_ ? limit - held_ : 1;
  join_ = joins_(nearest);
  stage_ = Stage::kCores;
}

Status PartitionedTree::collect_cores() {
  ResultBatch batch{};
  const Status status = join_->next_batch(&batch);
  if (status.code == StatusCode::kEnd) {
    forget_step();
    begin_parts();
    return {};
  }
  if (!status.ok()) return status;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const std::uint64_t end = batch.entry(i + 1);
    if (end - batch.entry(i) < request_.min_points() - 1) continue;
    const auto position = static_cast<std::uint64_t>(batch.left_ids[batch.rows[i]]);
    cores_[ranks_[position]] = batch.distances[end - 1];
  }
  cores_found_ += batch.row_count;
  return status;
}

// ---- Parts

/// No edge is known.
void PartitionedTree::begin_parts() {
  stage_ = Stage::kDivide;
  edge_count_ = tree_edges_ = all_cores_ = 0;
  links_are_clear_ = false;
  reach_ = HUGE_VAL;
  part_cores_.clear();
  longest_.clear();
  width_ = -1;
  if (links_.size() == 0) {
    links_ = Buffer<std::uint32_t>(budget_, rows());
    edges_ = Buffer<TreeEdge>(budget_, rows() + spare_edges(rows()));
    lefts_ = Buffer<std::uint64_t>(budget_, (rows() + 63) / 64);
  }
  std::fill(lefts_.begin(), lefts_.end(), 0);
  const std::uint64_t limit = request_.resources.memory_limit, held = budget_.used();
  const std::uint64_t memory =
      limit == 0 ? std::uint64_t{1} << 30 : (limit > held ? (limit - held) / 2 : 0);
  if (!dividers_) dividers_.emplace(dividing_threads(request_));
  side_.emplace(budget_, data_, cut_.column, part_rows_, memory, request_.resources.scratch,
                *dividers_);
}

/// Begins again with smaller parts: a step had no memory.
void PartitionedTree::shrink_parts() {
  forget_step();
  side_.reset();
  part_rows_ /= 2;
  begin_parts();
}

void PartitionedTree::divide() {
  if (side_->divide()) return;
  stage_ = Stage::kParts;
  part_ = 0;
}

double PartitionedTree::gap(std::size_t left, std::size_t right) const {
  return least_distance(request_.metric(), side_->extent(left), side_->extent(right));
}

/// The rows of a part that have core distances and are wanted: wanted(rank, value in the cut
/// column). They are named by rank.
template <class Wanted>
RowCopy PartitionedTree::load(std::size_t part, const Wanted& wanted) {
  RowCopy copy = side_->load(part);
  const std::uint64_t count = copy.view.rows, bytes = point_bytes(copy.view);
  copy.scores = Buffer<double>(budget_, count);
  std::uint64_t kept = 0;
  for (std::uint64_t row = 0; row < count; ++row) {
    const std::uint32_t rank = ranks_[static_cast<std::uint64_t>(copy.ids[row])];
    if (!is_finite_row(copy.view, row)) cores_[rank] = HUGE_VAL;
    if (!(cores_[rank] <= DBL_MAX) || !wanted(rank, side_->bounds_of(copy.view, row))) continue;
    copy.ids[kept] = rank;
    copy.scores[kept] = cores_[rank];
    if (kept < row)
      std::memcpy(copy.coordinates.data() + kept * bytes, copy.coordinates.data() + row * bytes,
                  bytes);
    ++kept;
  }
  copy.view.rows = kept;
  copy.view.scores = copy.scores.data();
  return copy;
}

/// Those so near to another part, and not connected to a root.
RowCopy PartitionedTree::load_near(std::size_t part, std::size_t other, double within,
                                   std::uint32_t root) {
  const DisjointSets sets(links_.data());
  return load(part, [&](std::uint32_t rank, const Extent& value) {
    return least_distance(request_.metric(), value, side_->extent(other)) <= within &&
           (root == kNobody || sets.root(rank) != root);
  });
}

void PartitionedTree::unite(const RowCopy& left, const RowCopy& right) {
  rows_ = make_room_for_rows(budget_, left.view, left.view.rows + right.view.rows);
  const std::uint64_t bytes = point_bytes(left.view);
  std::uint64_t place = 0;
  for (const RowCopy* const one : {&left, &right}) {
    const std::uint64_t count = one->view.rows;
    std::memcpy(rows_.coordinates.data() + place * bytes, one->coordinates.data(), count * bytes);
    std::copy_n(one->ids.data(), count, rows_.ids.data() + place);
    std::copy_n(one->scores.data(), count, rows_.scores.data() + place);
    place += count;
  }
  left_rows_ = left.view.rows;
  mark_lefts(true);
}

void PartitionedTree::mark_lefts(bool are_left) {
  for (std::uint64_t row = 0; row < left_rows_; ++row) {
    const auto rank = static_cast<std::uint64_t>(rows_.ids[row]);
    const std::uint64_t bit = std::uint64_t{1} << rank % 64;
    lefts_[rank / 64] = are_left ? lefts_[rank / 64] | bit : lefts_[rank / 64] & ~bit;
  }
}

/// The root of all rows of a part that have core distances; kNobody where there are several.
std::uint32_t PartitionedTree::common_root(std::size_t part) {
  const DisjointSets sets(links_.data());
  std::uint32_t root = kNobody;
  for (const std::int64_t position : side_->load_ids(part)) {
    const std::uint32_t rank = ranks_[static_cast<std::uint64_t>(position)];
    if (!(cores_[rank] <= DBL_MAX)) continue;
    const std::uint32_t its = sets.root(rank);
    if (root != kNobody && root != its) return kNobody;
    root = its;
  }
  return root;
}

// ---- Steps

void PartitionedTree::open_next() {
  switch (stage_) {
    case Stage::kParts:
      return part_ == parts() ? end_stage() : open_part();
    case Stage::kNeighbors:
      return part_ + 1 >= parts() ? end_stage() : open_neighbors();
    default:
      return part_ == others_.size() || others_[part_].gap > reach_ ? end_stage() : open_other();
  }
}

void PartitionedTree::open_part() {
  rows_ = load(part_, [](std::uint32_t, const Extent&) { return true; });
  left_rows_ = 0;
  part_cores_.push_back(rows_.view.rows);
  longest_.push_back(0);
  all_cores_ += rows_.view.rows;
  if (rows_.view.rows > 1)
    open_tree();
  else
    end_step();
}

/// The tree of a part and the next one needs more attempts where they are further apart from each
/// other than their own rows are.
void PartitionedTree::open_neighbors() {
  const std::size_t next = part_ + 1;
  if (width_ < 0) width_ = std::max(longest_[part_], longest_[next]);
  is_whole_ = part_cores_[part_] == 0 || part_cores_[next] == 0;
  if (is_whole_) return end_step();
  const RowCopy left = load_near(part_, next, width_, kNobody);
  const RowCopy right = load_near(next, part_, width_, kNobody);
  is_whole_ = left.view.rows == part_cores_[part_] && right.view.rows == part_cores_[next];
  if (left.view.rows > 0 && right.view.rows > 0) {
    unite(left, right);
    open_tree();
  } else {
    end_step();
  }
}

/// Another attempt with more rows.
void PartitionedTree::widen(double width) {
  forget_step();
  width_ = width > width_ ? width : HUGE_VAL;
}

/// Lists the other pairs of parts that edges may connect, as far as is known.
void PartitionedTree::list_others() {
  others_.clear();
  for (std::uint32_t left = 0; left < parts(); ++left)
    for (std::uint32_t right = left + 2; right < parts(); ++right)
      if (const double least = gap(left, right);
          least <= reach_ && part_cores_[left] > 0 && part_cores_[right] > 0)
        others_.push_back({least, left, right});
  std::sort(others_.begin(), others_.end());
}

void PartitionedTree::open_other() {
  const PartPair pair = others_[part_];
  if (!connect_below(pair.gap)) return;
  std::uint32_t left_root = kNobody, right_root = kNobody;
  if (pair.gap > 0) {
    left_root = common_root(pair.left);
    right_root = common_root(pair.right);
  }
  if (left_root != kNobody && left_root == right_root) return end_step();
  const RowCopy left = load_near(pair.left, pair.right, reach_, right_root);
  if (left.view.rows == 0) return end_step();
  const RowCopy right = load_near(pair.right, pair.left, reach_, left_root);
  if (right.view.rows == 0) return end_step();
  unite(left, right);
  open_tree();
}

/// The tree of the rows at hand.
void PartitionedTree::open_tree() {
  held_ = budget_.used();
  join_ = joins_(request_of_step(request_, Output::spanning_tree(request_.min_points()),
                                 Sides::one(rows_.view, PairSelection::kAll), held_));
}

/// Takes edges of the step, in their order, until there is no room for more, and ends it after the
/// last one.
Status PartitionedTree::collect_edges() {
  if (batch_row_ == batch_.row_count) {
    batch_ = {};
    batch_row_ = batch_entry_ = 0;
    ResultBatch batch{};
    const Status status = join_->next_batch(&batch);
    if (status.code == StatusCode::kEnd) {
      end_step();
      return {};
    }
    if (!status.ok()) return status;
    batch_ = batch;
  }
  for (; batch_row_ < batch_.row_count; ++batch_row_)
    for (; batch_entry_ < batch_.entry(batch_row_ + 1); ++batch_entry_) {
      const std::int64_t first = batch_.left_ids[batch_.rows[batch_row_]],
                         second = batch_.right_ids[batch_.neighbors[batch_entry_]];
      const std::uint64_t ends =
          edge_ends(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second));
      if (!take_edge({batch_.distances[batch_entry_], ends})) return {};
    }
  return {};
}

/// False: the edge has to come again, there is no room, or the step begins anew.
bool PartitionedTree::take_edge(const TreeEdge& edge) {
  const bool between = is_left(edge.first()) != is_left(edge.second());
  if (stage_ != Stage::kParts && !between) return true;
  if (stage_ == Stage::kNeighbors && edges_between_ == 0 && !is_whole_ && edge.distance > width_) {
    widen(edge.distance);
    return false;
  }
  if (edge_count_ == edges_.size()) {
    start_thinning();
    return false;
  }
  edges_[edge_count_++] = edge;
  ++step_edges_;
  last_distance_ = edge.distance;
  edges_between_ += between;
  return true;
}

void PartitionedTree::end_step() {
  if (stage_ == Stage::kParts) {
    if (part_cores_[part_] > 1)
      longest_[part_] = step_edges_ + 1 == part_cores_[part_] ? last_distance_ : HUGE_VAL;
  } else if (stage_ == Stage::kNeighbors) {
    constexpr double kWider = 16;
    if (!is_whole_ && edges_between_ == 0)
      return widen(kWider * std::max(width_, gap(part_, part_ + 1)));
    width_ = -1;
  }
  forget_step();
  ++part_;
}

void PartitionedTree::forget_step() {
  if (join_) {
    JoinStats step{};
    join_->stats(&step);
    if (joins_parts()) strategy_ = step.strategy;
    done_ = stats_with(done_, join_.get(), held_);
    done_.parts += std::max<std::uint64_t>(1, step.parts);
    join_.reset();
  }
  if (left_rows_ > 0) mark_lefts(false);
  left_rows_ = 0;
  rows_ = {};
  batch_ = {};
  batch_row_ = batch_entry_ = step_edges_ = edges_between_ = 0;
}

/// Once no step is open: thins out edges, where there are new ones.
void PartitionedTree::end_stage() {
  if (stage_ != Stage::kParts && edge_count_ > tree_edges_) return start_thinning();
  part_ = 0;
  if (stage_ == Stage::kParts) {
    stage_ = Stage::kNeighbors;
  } else if (stage_ == Stage::kNeighbors) {
    list_others();
    stage_ = Stage::kOthers;
  } else {
    end_tree();
  }
}

// ---- Edges

void PartitionedTree::start_thinning() {
  thinning_ = true;
  sort_.emplace(edges_.data(), edge_count_);
  std::iota(links_.begin(), links_.end(), 0u);
  looked_at_ = tree_edges_ = 0;
}

/// Sorts some more edges, or keeps some of those that close no circle.
void PartitionedTree::thin() {
  if (sort_) {
    if (!sort_->step()) sort_.reset();
    return;
  }
  const DisjointSets sets(links_.data());
  const std::uint64_t end = std::min(edge_count_, looked_at_ + kEdgesAtOnce);
  for (; looked_at_ < end; ++looked_at_) {
    const TreeEdge edge = edges_[looked_at_];
    if (sets.root(edge.first()) == sets.root(edge.second())) continue;
    sets.unite(edge.first(), edge.second());
    edges_[tree_edges_++] = edge;
  }
  if (looked_at_ < edge_count_) return;
  edge_count_ = tree_edges_;
  const bool spans = tree_edges_ + 1 >= all_cores_ && stage_ != Stage::kParts;
  reach_ = !spans ? HUGE_VAL : tree_edges_ > 0 ? edges_[tree_edges_ - 1].distance : 0;
  connected_ = tree_edges_;
  links_are_clear_ = false;
  thinning_ = false;
}

/// Makes links those of edges that are shorter; not less than before, unless edges were thinned out
/// since. False: there is more to do.
bool PartitionedTree::connect_below(double distance) {
  if (!links_are_clear_) {
    std::iota(links_.begin(), links_.end(), 0u);
    connected_ = 0;
    links_are_clear_ = true;
  }
  const DisjointSets sets(links_.data());
  const std::uint64_t end = std::min(tree_edges_, connected_ + kEdgesAtOnce);
  while (connected_ < end && edges_[connected_].distance < distance) {
    sets.unite(edges_[connected_].first(), edges_[connected_].second());
    ++connected_;
  }
  return connected_ < end || end == tree_edges_;
}

void PartitionedTree::end_tree() {
  side_.reset();
  cores_ = {};
  links_ = {};
  lefts_ = {};
  others_ = {};
  ids_ = Buffer<std::int64_t>(budget_, rows());
  next_chunk_ = 0;
  stage_ = Stage::kIds;
}

// ---- The result

/// Some more ids, by rank.
void PartitionedTree::read_ids() {
  const std::uint64_t chunks = data_.file == nullptr ? 1 : chunk_count(data_);
  if (next_chunk_ < chunks) {
    Dataset named = request_.left();
    named.scores_in_file = false;
    const bool in_file = named.file != nullptr;
    const std::uint64_t number = next_chunk_++;
    const std::uint64_t first = in_file ? number << named.chunk_bits : 0;
    const std::uint64_t count = in_file ? rows_of_chunk(named, number) : rows();
    Buffer<std::int64_t> ids(budget_, in_file ? count : 0);
    if (in_file) load_names(named, number, ids.data(), nullptr);
    for (std::uint64_t i = 0; i < count; ++i)
      ids_[ranks_[first + i]] = in_file ? ids[i] : id_of(named, i);
    return;
  }
  ranks_ = {};
  if (!wants_edges()) clusters_.emplace(budget_, rows(), request_.min_cluster_size());
  looked_at_ = 0;
  stage_ = wants_edges() ? Stage::kResult : Stage::kClusters;
}

void PartitionedTree::gather_clusters() {
  const std::uint64_t end = std::min(tree_edges_, looked_at_ + kEdgesAtOnce);
  for (; looked_at_ < end; ++looked_at_) {
    const TreeEdge& edge = edges_[looked_at_];
    if (!clusters_->add(edge.first(), edge.second(), edge.distance)) return;
  }
  if (end < tree_edges_ || !clusters_->finish()) return;
  edges_ = {};
  numbers_ = Buffer<std::int64_t>(budget_, std::uint64_t{clusters_->clusters()} + 1);
  std::iota(numbers_.begin(), numbers_.end(), std::int64_t{0});
  numbers_[clusters_->clusters()] = kNoCluster;
  stage_ = Stage::kResult;
}

/// The next edges, or rows with their clusters; false: there are no more.
bool PartitionedTree::deliver(ResultBatch* batch) {
  const std::uint64_t all = wants_edges() ? tree_edges_ : rows();
  if (offsets_.size() == 0) {
    const std::uint64_t asked = request_.knobs.batch_pairs;
    const std::uint64_t most =
        std::clamp<std::uint64_t>(asked > 0 ? std::min(asked, kBatchEntries) : kBatchEntries, 1,
                                  std::max<std::uint64_t>(all, 1));
    batch_rows_ = Buffer<std::uint32_t>(budget_, most);
    batch_neighbors_ = Buffer<std::uint32_t>(budget_, most);
    batch_distances_ = Buffer<double>(budget_, most);
    offsets_ = Buffer<std::uint64_t>(budget_, most + 1);
    std::iota(offsets_.begin(), offsets_.end(), std::uint64_t{0});
  }
  const std::uint64_t count = std::min<std::uint64_t>(batch_rows_.size(), all - delivered_);
  if (count == 0) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = delivered_ + i;
    if (wants_edges()) {
      batch_rows_[i] = edges_[number].first();
      batch_neighbors_[i] = edges_[number].second();
      batch_distances_[i] = edges_[number].distance;
      continue;
    }
    const auto rank = static_cast<std::uint32_t>(number);
    const std::uint32_t cluster = clusters_->cluster_of(rank);
    batch_rows_[i] = rank;
    batch_neighbors_[i] = cluster == StableClusters::kNone ? clusters_->clusters() : cluster;
    batch_distances_[i] = clusters_->probability_of(rank);
  }
  delivered_ += count;
  *batch = {};
  batch->row_count = batch->pair_count = count;
  batch->rows = batch_rows_.data();
  batch->neighbors = batch_neighbors_.data();
  batch->distances = batch_distances_.data();
  batch->offsets = offsets_.data();
  const Buffer<std::int64_t>& right = wants_edges() ? ids_ : numbers_;
  batch->set_ids(ids_.data(), ids_.size(), right.data(), right.size());
  ++done_.batches;
  done_.pairs += count;
  return true;
}

// ---- All of it

/// Does some of what comes before the result.
Status PartitionedTree::advance() {
  if (thinning_) {
    thin();
  } else if (stage_ == Stage::kCores) {
    return collect_cores();
  } else if (join_) {
    return collect_edges();
  } else if (joins_parts()) {
    open_next();
  } else if (stage_ == Stage::kNames) {
    read_names();
  } else if (stage_ == Stage::kRanks) {
    rank_rows();
  } else if (stage_ == Stage::kDivide) {
    divide();
  } else if (stage_ == Stage::kIds) {
    read_ids();
  } else {
    gather_clusters();
  }
  return {};
}

Status PartitionedTree::next_batch(ResultBatch* batch) {
  try {
    while (stage_ != Stage::kResult) {
      try {
        const Status status = advance();
        if (!status.ok()) return status;
      } catch (const MemoryLimitExceeded&) {
        if (!joins_parts() || part_rows_ < 2 * fewest_rows(rows())) throw;
        shrink_parts();
      }
      if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
    }
    return {deliver(batch) ? StatusCode::kOk : StatusCode::kEnd};
  } catch (const RowFileFailed& failed) {
    return failed.status;
  }
}

/// The work is that of core distances, and as much each of the trees of parts, between neighbours
/// and between others.
void PartitionedTree::stats(JoinStats* stats) const {
  *stats = stats_with(done_, join_.get(), held_);
  stats->strategy = strategy_;
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
  const std::uint64_t all = rows();
  stats->work = 4 * all;
  const auto share = [all](std::uint64_t part, std::uint64_t of) {
    return of > 0 ? static_cast<std::uint64_t>(static_cast<double>(all) *
                                               static_cast<double>(part) / static_cast<double>(of))
                  : all;
  };
  switch (stage_) {
    case Stage::kNames:
    case Stage::kRanks:
      stats->work_done = 0;
      break;
    case Stage::kCores:
      stats->work_done = std::min(cores_found_, all);
      break;
    case Stage::kDivide:
      stats->work_done = all;
      break;
    case Stage::kParts:
      stats->work_done = all + share(part_, parts());
      break;
    case Stage::kNeighbors:
      stats->work_done = 2 * all + share(part_, parts());
      break;
    case Stage::kOthers:
      stats->work_done = 3 * all + share(part_, others_.size());
      break;
    default:
      stats->work_done = 4 * all;
  }
}

}  // namespace gpujoin
