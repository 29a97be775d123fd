#include "engine/joins/divided_side.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace gpujoin {
namespace {

constexpr std::uint64_t kTurnRows = std::uint64_t{1} << 18;  // of a share
constexpr std::uint64_t kSharesOfWorker = 4;  // since workers do not all come as far in a time
constexpr std::uint64_t kCopiedRows = std::uint64_t{1} << 14;  // by a worker at a time
constexpr std::uint64_t kSampledValues = std::uint64_t{1} << 16;
constexpr std::uint64_t kSampledOfBucket = 512;  // so that a bucket is seldom an eighth larger

}  // namespace

double least_distance(Metric metric, const Extent& a, const Extent& b) {
  if (metric == Metric::kCosine || is_of_bits(metric)) return 0;
  const bool above = b.low > a.high, below = b.high < a.low;
  if (!above && !below) return 0;
  const double from = above ? a.high : a.low, to = above ? b.low : b.high;
  return distance_from_raw(metric, raw_distance(metric, &from, &to, 1));
}

DividedSide::DividedSide(MemoryBudget& budget, const Dataset& data, CutColumn column,
                         std::uint64_t part_rows, std::uint64_t memory, const RowFile* scratch,
                         WorkerPool& pool, SumColumnsOfSide sums, bool named)
    : budget_(budget),
      data_(data),
      column_(column),
      part_rows_(part_rows),
      scratch_(scratch),
      sums_(std::move(sums)),
      named_(named || data.file != nullptr),
      pool_(pool) {
  // A little less than a part each, since a bucket is only about as large as the sample has it.
  const std::uint64_t expected = std::max<std::uint64_t>(1, part_rows - part_rows / 8);
  std::uint64_t buckets = std::max<std::uint64_t>(1, (data.rows + expected - 1) / expected);
  if (data.file == nullptr) {
    rows_ = Buffer<std::uint32_t>(budget, data.rows);
  } else {
    constexpr std::uint64_t kFewestRunRows = 16;
    const std::uint64_t bytes = row_bytes(data, sums_.count);
    const std::uint64_t chunk_rows = rows_of_chunk(data, 0);
    chunk_ = make_room_for_rows(budget, data, chunk_rows, sums_.count);
    const std::uint64_t left = memory > chunk_rows * bytes ? memory - chunk_rows * bytes : 0;
    buckets = std::clamp<std::uint64_t>(left / bytes / kFewestRunRows, 1, buckets);
    const std::uint64_t most = std::max(kFewestRunRows, std::min(part_rows, data.rows));
    run_rows_ = std::clamp(left / bytes / buckets, kFewestRunRows, most);
    runs_ = make_room_for_rows(budget, data, buckets * run_rows_, sums_.count);
  }
  bounds_ = column_.lengths;
  if (bounds_.empty()) choose_bounds(buckets);
  buckets_.resize(bounds_.size() + 1);
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i].first = i * run_rows_;
  if (data.file != nullptr) return;
  constexpr std::uint64_t kRowsOfPiece = 24;  // so that pieces take little memory beside rows
  shares_ = std::clamp<std::uint64_t>(data.rows / kRowsOfPiece / buckets_.size(), 1,
                                      kSharesOfWorker * pool.size());
  share_rows_ = (data.rows + shares_ - 1) / shares_;
  pieces_.resize(shares_ * buckets_.size());
}

/// Equal shares of a sample.
void DividedSide::choose_bounds(std::uint64_t buckets) {
  const Dataset& sample = in_memory(data_);
  const std::uint64_t count = std::min({sample.rows, kSampledValues, kSampledOfBucket * buckets});
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i)
    values[i] = bounds_of(sample, sample.rows * i / count).low;
  std::sort(values.begin(), values.end());
  for (std::uint64_t i = 1; i < buckets; ++i) {
    const double bound = values[count * i / buckets];
    if (bounds_.empty() || bound > bounds_.back()) bounds_.push_back(bound);
  }
}

Extent DividedSide::bounds_of(const Dataset& data, std::uint64_t row) const {
  if (!column_.lengths.empty()) {
    const double length =
        key_of(data, row, column_.high - data.dims) - key_of(data, row, column_.low - data.dims);
    return std::isnan(length) ? Extent{-INFINITY, -INFINITY} : Extent{length, length};
  }
  const auto bound = [&](std::uint32_t column) {
    const double value =
        column < data.dims ? coordinate(data, row, column) : key_of(data, row, column - data.dims);
    return std::isnan(value) ? INFINITY : value;
  };
  return {bound(column_.low), bound(column_.high)};
}

/// How many bounds are no larger than the low value. The search has no branch: values come in any
/// order, and a processor would guess every second one wrong. Values that are looked for together
/// do not wait for each other.
void DividedSide::find_buckets(const Extent* extents, std::uint64_t rows,
                               std::uint32_t* buckets) const {
  constexpr std::uint64_t kTogether = 8;
  const double* const bounds = bounds_.data();
  for (std::uint64_t first = 0; first < rows; first += kTogether) {
    double values[kTogether];
    std::uint32_t places[kTogether] = {};
    for (std::uint64_t i = 0; i < kTogether; ++i)
      values[i] = extents[std::min(first + i, rows - 1)].low;
    const auto step = [&](std::uint32_t half) {
      for (std::uint64_t i = 0; i < kTogether; ++i)
        places[i] += half * static_cast<std::uint32_t>(bounds[places[i] + half - 1] <= values[i]);
    };
    auto count = static_cast<std::uint32_t>(bounds_.size());
    for (; count > 1; count -= count / 2) step(count / 2);
    if (count == 1) step(1);
    std::copy_n(places, std::min(kTogether, rows - first), buckets + first);
  }
}

/// Calls visit(bucket, bounds, row) for rows begin .. end - 1, with the number of the row's bucket.
template <class Visit>
void DividedSide::visit_rows(const Dataset& data, std::uint64_t begin, std::uint64_t end,
                             const Visit& visit) const {
  constexpr std::uint64_t kFoundRows = 256;  // whose buckets are looked for at a time
  Extent extents[kFoundRows];
  std::uint32_t buckets[kFoundRows];
  for (std::uint64_t row = begin; row < end; row += kFoundRows) {
    const std::uint64_t count = std::min(kFoundRows, end - row);
    for (std::uint64_t i = 0; i < count; ++i) extents[i] = bounds_of(data, row + i);
    find_buckets(extents, count, buckets);
    for (std::uint64_t i = 0; i < count; ++i) visit(buckets[i], extents[i], row + i);
  }
}

bool DividedSide::divide() {
  if (data_.file != nullptr) {
    if (done_ == chunk_count(data_)) return false;
    move_chunk(done_++);
    if (done_ < chunk_count(data_)) return true;
    for (Bucket& bucket : buckets_) flush(bucket);
    sort_parts();
    runs_ = {};
    chunk_ = {};
    return false;
  }
  if (done_ == 2 * share_rows_) return false;
  if (done_ < share_rows_) {
    visit_turn([](Piece& piece, const Extent& bounds, std::uint64_t) {
      ++piece.next;
      include(piece.extent, bounds);
    });
    if (done_ == share_rows_) place_lists();
    return true;
  }
  visit_turn([this](Piece& piece, const Extent&, std::uint64_t row) {
    rows_[piece.next++] = static_cast<std::uint32_t>(row);
  });
  if (done_ < 2 * share_rows_) return true;
  cut_lists();
  pieces_ = {};
  return false;
}

// ---- In memory

/// Calls visit(piece, bounds, row) for some more rows of each share, with the piece of the row's
/// bucket.
template <class Visit>
void DividedSide::visit_turn(const Visit& visit) {
  const std::uint64_t first = done_ % share_rows_, turn = std::min(kTurnRows, share_rows_ - first);
  pool_.parallel_for(shares_, [&](std::size_t share, unsigned) {
    const std::uint64_t begin = share * share_rows_ + first;
    const std::uint64_t end = std::min({data_.rows, begin + turn, (share + 1) * share_rows_});
    // Threads would write into each other's cache lines where shares meet.
    Piece* const kept = pieces_.data() + share * buckets_.size();
    std::vector<Piece> pieces(kept, kept + buckets_.size());
    visit_rows(data_, begin, end, [&](std::size_t bucket, const Extent& bounds, std::uint64_t row) {
      visit(pieces[bucket], bounds, row);
    });
    std::copy(pieces.begin(), pieces.end(), kept);
  });
  done_ += turn;
}

/// Where the lists of buckets begin, and in each the rows of the shares, one after the other.
void DividedSide::place_lists() {
  std::uint64_t place = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    buckets_[b].first = place;
    for (std::uint64_t share = 0; share < shares_; ++share) {
      Piece& piece = pieces_[share * buckets_.size() + b];
      include(buckets_[b].extent, piece.extent);
      place += std::exchange(piece.next, place);
    }
    buckets_[b].rows = place - buckets_[b].first;
  }
}

/// Makes parts of the lists. Only of a bucket that is too large for one part rows are looked at
/// again, each somewhere else in memory.
void DividedSide::cut_lists() {
  std::vector<std::pair<Bucket*, Run>> runs;
  std::vector<Extent> extents;
  for (Bucket& bucket : buckets_) {
    for (std::uint64_t done = 0; done < bucket.rows; done += runs.back().second.rows)
      runs.push_back({&bucket, {bucket.first + done, std::min(part_rows_, bucket.rows - done)}});
    extents.resize(runs.size(), bucket.rows > part_rows_ ? kNoExtent : bucket.extent);
  }
  pool_.parallel_for(runs.size(), [&](std::size_t number, unsigned) {
    const auto& [bucket, run] = runs[number];
    if (bucket->rows <= part_rows_) return;
    for (std::uint64_t i = run.place; i < run.place + run.rows; ++i)
      include(extents[number], bounds_of(data_, rows_[i]));
  });
  for (std::size_t i = 0; i < runs.size(); ++i) add_run(*runs[i].first, runs[i].second, extents[i]);
}

// ---- In a file

void DividedSide::move_chunk(std::uint64_t number) {
  const std::uint64_t rows = rows_of_chunk(data_, number), bytes = point_bytes(data_);
  const std::uint32_t keys = data_.key_columns;
  load_chunk(data_, number, chunk_);
  visit_rows(chunk_.view, 0, rows, [&](std::size_t into, const Extent& bounds, std::uint64_t row) {
    Bucket& bucket = buckets_[into];
    const std::uint64_t place = bucket.first + bucket.rows++;
    runs_.ids[place] = chunk_.ids[row];
    std::memcpy(runs_.coordinates.data() + place * bytes, point(chunk_.view, row), bytes);
    if (has_scores(data_)) runs_.scores[place] = chunk_.scores[row];
    if (keys > 0)
      std::copy_n(chunk_.keys.data() + row * keys, keys, runs_.keys.data() + place * keys);
    for (std::uint32_t c = 0; c < sums_.count; ++c)
      runs_.columns[c * runs_.view.rows + place] = chunk_.columns[c * chunk_.view.rows + row];
    include(bucket.extent, bounds);
    if (bucket.rows == run_rows_) flush(bucket);
  });
}

/// Writes what a bucket has collected.
void DividedSide::flush(Bucket& bucket) {
  if (bucket.rows == 0) return;
  const Run run{write_rows(*scratch_, runs_, bucket.first, bucket.rows), bucket.rows};
  add_run(bucket, run, bucket.extent);
  bucket.rows = 0;
  bucket.extent = kNoExtent;
}

// ---- Parts

/// Adds rows to the bucket's last part, or to a new one where that is full.
void DividedSide::add_run(Bucket& bucket, const Run& run, const Extent& extent) {
  if (bucket.part == ~std::size_t{0} || parts_[bucket.part].rows + run.rows > part_rows_) {
    bucket.part = parts_.size();
    parts_.emplace_back();
  }
  Part& part = parts_[bucket.part];
  part.rows += run.rows;
  include(part.extent, extent);
  part.runs.push_back(run);
}

/// Parts of a file are begun in the order in which its buckets fill up.
void DividedSide::sort_parts() {
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.extent.low < b.extent.low; });
}

RowCopy DividedSide::load(std::size_t number) const {
  const Part& part = parts_[number];
  RowCopy copy = make_room_for_rows(budget_, data_, part.rows, sums_.count, named_);
  if (data_.file == nullptr) {
    const std::uint32_t* const rows = rows_.data() + part.runs.front().place;
    pool_.parallel_for(
        (part.rows + kCopiedRows - 1) / kCopiedRows, [&](std::size_t piece, unsigned) {
          const std::uint64_t first = piece * kCopiedRows;
          copy_listed_rows(data_, rows, first, std::min(part.rows, first + kCopiedRows),
                           sums_.columns.data(), &copy);
        });
    return copy;
  }
  std::uint64_t row = 0;
  for (const Run& run : part.runs) {
    read_rows(*scratch_, run.place, copy, row, run.rows);
    row += run.rows;
  }
  return copy;
}

Buffer<std::int64_t> DividedSide::load_ids(std::size_t number) const {
  const Part& part = parts_[number];
  Buffer<std::int64_t> ids(budget_, part.rows);
  std::uint64_t row = 0;
  for (const Run& run : part.runs) {
    std::int64_t* const to = ids.data() + row;
    row += run.rows;
    if (data_.file != nullptr) {
      check_file(scratch_->read(scratch_->context, run.place, to, run.rows * sizeof(std::int64_t)));
      continue;
    }
    for (std::uint64_t i = 0; i < run.rows; ++i) to[i] = id_of(data_, rows_[run.place + i]);
  }
  return ids;
}

}  // namespace gpujoin
