#include "engine/joins/keyed_clusters.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpujoin {
namespace {

constexpr std::uint64_t kRowsAtOnce = 1 << 20;  // between interrupts

}  // namespace

KeyedClusters::KeyedClusters(const JoinRequest& request, OpenJoin clusters)
    : request_(request),
      clusters_(std::move(clusters)),
      budget_(request.resources.memory_limit),
      groups_(static_cast<std::uint64_t>(request.keys.most[0]) + 1),
      places_(budget_, groups_ + 2),
      rows_(budget_, request.left().rows) {
  done_.left_rows = done_.right_rows = request.left().rows;
  std::fill(places_.begin(), places_.end(), 0);
}

/// Those that are no numbers come last.
std::uint64_t KeyedClusters::group_of(std::uint64_t row) const {
  const double key = key_of(request_.left(), row, 0);
  return std::isnan(key) ? groups_ : static_cast<std::uint64_t>(key);
}

/// Some steps of a counting sort.
void KeyedClusters::take_some_rows() {
  const std::uint64_t rows = request_.left().rows, end = std::min(rows, next_row_ + kRowsAtOnce);
  for (; next_row_ < end; ++next_row_) {
    if (stage_ == Stage::kCount)
      ++places_[group_of(next_row_) + 1];
    else
      rows_[places_[group_of(next_row_)]++] = static_cast<std::uint32_t>(next_row_);
  }
  if (next_row_ < rows) return;
  next_row_ = 0;
  if (stage_ == Stage::kCount)
    for (std::uint64_t group = 1; group < places_.size(); ++group)
      places_[group] += places_[group - 1];
  stage_ = stage_ == Stage::kCount ? Stage::kPlace : Stage::kGroups;
}

/// Opens the join of the next group that has rows; false: there is none.
bool KeyedClusters::open_group() {
  const std::uint64_t rows = request_.left().rows;
  while (group_ < groups_ && places_[group_] == begin_) ++group_;
  if (begin_ == rows) return false;
  const std::uint64_t end = group_ < groups_ ? places_[group_] : begin_ + 1;
  JoinRequest part = without_keys(request_);
  if (end - begin_ < rows) {
    copy_ = copy_rows(budget_, part.left(), rows_.data() + begin_, end - begin_, [] {});
    part.sides = Sides::one(copy_.view, request_.pairs());
  }
  part.resources.memory_limit = budget_.limit_within();
  begin_ = end;
  part_ = clusters_(part);
  return true;
}

void KeyedClusters::end_group() {
  JoinStats group{};
  part_->stats(&group);
  done_ = stats_with(done_, part_.get(), budget_.used());
  done_.parts += group.parts;
  part_.reset();
  copy_ = {};
}

Status KeyedClusters::next_batch(ResultBatch* batch) {
  for (;;) {
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
    if (stage_ != Stage::kGroups) {
      take_some_rows();
      continue;
    }
    if (!part_ && !open_group()) return {StatusCode::kEnd};
    const Status status = part_->next_batch(batch);
    if (status.code == StatusCode::kEnd) {
      end_group();
      continue;
    }
    if (!status.ok()) return status;
    batch->ids_generation = ++batches_;
    return {};
  }
}

void KeyedClusters::stats(JoinStats* stats) const {
  *stats = stats_with(done_, part_.get(), budget_.used());
  stats->batches = batches_;
  stats->memory_peak = std::max(stats->memory_peak, budget_.peak());
}

}  // namespace gpujoin
