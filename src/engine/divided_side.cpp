#include "engine/divided_side.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gpujoin {
namespace {

constexpr std::uint64_t kTurnRows = std::uint64_t{1} << 20;
constexpr std::uint64_t kSampledValues = std::uint64_t{1} << 16;

void check(const Status& status) {
  if (!status.ok()) throw RowFileFailed{status};
}

double finite_or_last(double x) { return std::isfinite(x) ? x : INFINITY; }

}  // namespace

DividedSide::DividedSide(MemoryBudget& budget, const Dataset& data, CutColumn column,
                         std::uint64_t part_rows, std::uint64_t memory, const RowFile* scratch)
    : budget_(budget), data_(data), column_(column), part_rows_(part_rows), scratch_(scratch) {
  // A little less than a part each, since a bucket is only about as large as the sample has it.
  const std::uint64_t expected = std::max<std::uint64_t>(1, part_rows - part_rows / 8);
  std::uint64_t buckets = (data.rows + expected - 1) / expected;
  if (data.file == nullptr) {
    rows_ = Buffer<std::uint32_t>(budget, data.rows);
  } else {
    constexpr std::uint64_t kFewestRunRows = 16;
    const std::uint64_t row_bytes = point_bytes(data) + sizeof(std::int64_t);
    const std::uint64_t chunk_rows = rows_of_chunk(data, 0);
    chunk_ids_ = Buffer<std::int64_t>(budget, chunk_rows);
    chunk_points_ = Buffer<unsigned char>(budget, chunk_rows * point_bytes(data));
    const std::uint64_t left =
        memory > chunk_rows * row_bytes ? memory - chunk_rows * row_bytes : 0;
    buckets = std::clamp<std::uint64_t>(left / row_bytes / kFewestRunRows, 1, buckets);
    run_rows_ =
        std::clamp(left / row_bytes / buckets, kFewestRunRows, std::max(part_rows, kFewestRunRows));
    run_ids_ = Buffer<std::int64_t>(budget, buckets * run_rows_);
    run_points_ = Buffer<unsigned char>(budget, buckets * run_rows_ * point_bytes(data));
  }
  choose_bounds(buckets);
}

/// Equal shares of a sample.
void DividedSide::choose_bounds(std::uint64_t buckets) {
  const Dataset& sample = in_memory(data_);
  const std::uint64_t count = std::min(sample.rows, kSampledValues);
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i)
    values[i] = finite_or_last(coordinate(sample, sample.rows * i / count, column_.low));
  std::sort(values.begin(), values.end());
  for (std::uint64_t i = 1; i < buckets; ++i) {
    const double bound = values[count * i / buckets];
    if (bounds_.empty() || bound > bounds_.back()) bounds_.push_back(bound);
  }
  buckets_.resize(bounds_.size() + 1);
}

std::size_t DividedSide::bucket_of(double value) const {
  return static_cast<std::size_t>(std::upper_bound(bounds_.begin(), bounds_.end(), value) -
                                  bounds_.begin());
}

/// Calls visit(row, low, high) with the bounds of each row.
template <class Visit>
void DividedSide::visit_rows(const Dataset& data, std::uint64_t first, std::uint64_t end,
                             const Visit& visit) const {
  for (std::uint64_t row = first; row < end; ++row)
    visit(row, finite_or_last(coordinate(data, row, column_.low)),
          finite_or_last(coordinate(data, row, column_.high)));
}

bool DividedSide::divide() {
  if (data_.file != nullptr) {
    if (done_ == chunk_count(data_)) return false;
    move_chunk(done_++);
    if (done_ < chunk_count(data_)) return true;
    for (std::size_t number = 0; number < buckets_.size(); ++number)
      flush(buckets_[number], number);
    run_ids_ = {};
    run_points_ = {};
    chunk_ids_ = {};
    chunk_points_ = {};
    return false;
  }
  if (done_ == 2 * data_.rows) return false;
  const bool counting = done_ < data_.rows;
  const std::uint64_t first = counting ? done_ : done_ - data_.rows;
  const std::uint64_t end = std::min(data_.rows, first + kTurnRows);
  counting ? count_rows(first, end) : list_rows(first, end);
  done_ += end - first;
  if (done_ == data_.rows) {
    std::uint64_t place = 0;
    for (Bucket& bucket : buckets_) {
      bucket.first = place;
      place += std::exchange(bucket.rows, 0);
    }
  } else if (done_ == 2 * data_.rows) {
    cut_lists();
  }
  return done_ < 2 * data_.rows;
}

// ---- In memory

void DividedSide::count_rows(std::uint64_t first, std::uint64_t end) {
  visit_rows(data_, first, end,
             [&](std::uint64_t, double low, double) { ++buckets_[bucket_of(low)].rows; });
}

void DividedSide::list_rows(std::uint64_t first, std::uint64_t end) {
  visit_rows(data_, first, end, [&](std::uint64_t row, double low, double) {
    Bucket& bucket = buckets_[bucket_of(low)];
    rows_[bucket.first + bucket.rows++] = static_cast<std::uint32_t>(row);
  });
}

/// Makes parts of the lists.
void DividedSide::cut_lists() {
  for (Bucket& bucket : buckets_) {
    for (std::uint64_t done = 0; done < bucket.rows;) {
      const Run run{bucket.first + done, std::min(part_rows_, bucket.rows - done)};
      double low = INFINITY, high = -INFINITY;
      for (std::uint64_t i = run.place; i < run.place + run.rows; ++i)
        visit_rows(data_, rows_[i], std::uint64_t{rows_[i]} + 1,
                   [&](std::uint64_t, double row_low, double row_high) {
                     low = std::min(low, row_low);
                     high = std::max(high, row_high);
                   });
      add_run(bucket, run, low, high);
      done += run.rows;
    }
  }
}

// ---- In a file

void DividedSide::move_chunk(std::uint64_t number) {
  const std::uint64_t rows = rows_of_chunk(data_, number), bytes = point_bytes(data_);
  const RowFile& file = *data_.file;
  check(file.read(file.context, data_.places[number], chunk_ids_.data(),
                  rows * sizeof(std::int64_t)));
  check(file.read(file.context, data_.places[number] + rows * sizeof(std::int64_t),
                  chunk_points_.data(), rows * bytes));
  const Dataset chunk{chunk_points_.data(), chunk_ids_.data(), rows, data_.dims, data_.scalar};
  visit_rows(chunk, 0, rows, [&](std::uint64_t row, double low, double high) {
    const std::size_t to = bucket_of(low);
    Bucket& bucket = buckets_[to];
    const std::uint64_t place = to * run_rows_ + bucket.rows++;
    run_ids_[place] = chunk_ids_[row];
    std::memcpy(run_points_.data() + place * bytes, point(chunk, row), bytes);
    bucket.low = std::min(bucket.low, low);
    bucket.high = std::max(bucket.high, high);
    if (bucket.rows == run_rows_) flush(bucket, to);
  });
}

/// Writes what a bucket has collected.
void DividedSide::flush(Bucket& bucket, std::size_t number) {
  if (bucket.rows == 0) return;
  const std::uint64_t place = number * run_rows_, bytes = point_bytes(data_);
  Run run{0, bucket.rows};
  std::uint64_t points_place;
  check(scratch_->write(scratch_->context, run_ids_.data() + place, run.rows * sizeof(std::int64_t),
                        &run.place));
  check(scratch_->write(scratch_->context, run_points_.data() + place * bytes, run.rows * bytes,
                        &points_place));
  add_run(bucket, run, bucket.low, bucket.high);
  bucket.rows = 0;
  bucket.low = INFINITY;
  bucket.high = -INFINITY;
}

// ---- Parts

/// Adds rows to the bucket's last part, or to a new one where that is full.
void DividedSide::add_run(Bucket& bucket, const Run& run, double low, double high) {
  if (bucket.part == ~std::size_t{0} || parts_[bucket.part].rows + run.rows > part_rows_) {
    bucket.part = parts_.size();
    parts_.emplace_back();
  }
  Part& part = parts_[bucket.part];
  part.rows += run.rows;
  part.low = std::min(part.low, low);
  part.high = std::max(part.high, high);
  part.runs.push_back(run);
}

RowCopy DividedSide::load(std::size_t number) const {
  const Part& part = parts_[number];
  if (data_.file == nullptr)
    return copy_rows(budget_, data_, rows_.data() + part.runs.front().place, part.rows, [] {});
  const std::uint64_t bytes = point_bytes(data_);
  RowCopy copy;
  copy.coordinates = Buffer<unsigned char>(budget_, part.rows * bytes);
  copy.ids = Buffer<std::int64_t>(budget_, part.rows);
  std::uint64_t row = 0;
  for (const Run& run : part.runs) {
    const std::uint64_t id_bytes = run.rows * sizeof(std::int64_t);
    check(scratch_->read(scratch_->context, run.place, copy.ids.data() + row, id_bytes));
    check(scratch_->read(scratch_->context, run.place + id_bytes,
                         copy.coordinates.data() + row * bytes, run.rows * bytes));
    row += run.rows;
  }
  copy.view = {copy.coordinates.data(), copy.ids.data(), part.rows, data_.dims, data_.scalar};
  return copy;
}

}  // namespace gpujoin
