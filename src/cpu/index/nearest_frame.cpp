#include "cpu/index/nearest_frame.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/reduced_points.h"
#include "core/tile_screen.h"
#include "cpu/index/tile_index.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/sample.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint32_t kFewestReduced = 96;  ///< columns that reducing pays for
constexpr std::uint32_t kManyReduced = 160;

/// A row in double precision, centred, scaled and cut. Returns its squared length; NaN for a row
/// that is not finite.
double write_centred(const ScreenFrame& frame, const Dataset& data, std::uint64_t row,
                     double* values) {
  double squares = 0;
  for (std::uint32_t d = 0; d < data.dims; ++d) {
    const std::uint32_t column = frame.order[d];
    const double x = coordinate(data, row, column);
    if (!std::isfinite(x)) return std::nan("");
    values[d] = cut_to_screen(centred(x, frame.center[column], frame.scale));
    squares += values[d] * values[d];
  }
  return squares;
}

double dot(const double* a, const double* b, std::uint32_t dims) {
  double parts[4] = {};
  std::uint32_t d = 0;
  for (; d + 4 <= dims; d += 4)
    for (std::uint32_t i = 0; i < 4; ++i) parts[i] += a[d + i] * b[d + i];
  for (; d < dims; ++d) parts[0] += a[d] * b[d];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

/// Some rows of both sides, and the directions in which they differ most.
class Sample {
 public:
  Sample(WorkerPool& pool, MemoryBudget& budget, const NearestFrame& frame, const Sides& indexed)
      : pool_(pool), budget_(budget), scan_(frame.scan), dims_(frame.dims) {
    std::vector<SampledRow> rows = rows_of(indexed.left());
    if (!indexed.self_join())
      for (const SampledRow row : rows_of(indexed.right())) rows.push_back(row);
    rows = ordinary_rows(std::move(rows), dims_, kManyOutliers);
    rows_ = static_cast<std::uint32_t>(rows.size() & ~std::size_t{kProductColumns - 1});
    values_ = Buffer<double>(budget, std::size_t{rows_} * dims_);
    turned_ = Buffer<double>(budget, std::size_t{rows_} * dims_);
    for (std::uint32_t i = 0; i < rows_; ++i) {
      write_centred(frame.screen, *rows[i].data, rows[i].row, row(i));
      for (std::uint32_t d = 0; d < dims_; ++d) turned_[std::size_t{d} * rows_ + i] = row(i)[d];
    }
  }

  std::uint32_t size() const { return rows_; }

  /// The directions by subspace iteration [Subspaces, section 4.5], as columns, the first ones
  /// those of most variance. `skew` bounds how far they are from orthonormal.
  Buffer<double> directions(std::uint32_t count, double* skew) const {
    constexpr int kRounds = 4;
    Buffer<double> basis(budget_, std::size_t{dims_} * count);
    Buffer<double> columns(budget_, std::size_t{dims_} * count);
    Buffer<double> parts(budget_, std::size_t{rows_} * count);
    std::uint32_t state = 1;  // any start will do whose columns differ
    for (double& part : parts) part = (state = state * 1664525 + 1013904223) >> 31 != 0 ? 1 : -1;
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) multiply(values_, dims_, rows_, basis, count, parts);
      multiply(turned_, rows_, dims_, parts, count, basis);
      orthonormalize(basis, columns, count);
    }
    *skew = skew_of(columns, count);
    return basis;
  }

  /// The share of pairs that lie no further apart along the directions and by the rest's length
  /// than the nearest rows of the sample do.
  double share_left(const NearestFrame& frame, std::uint32_t nearest) const {
    constexpr std::uint32_t kLeft = 64;
    const std::uint32_t count = frame.directions, columns = count + 1;
    std::vector<double> reduced(std::size_t{rows_} * columns);
    Buffer<double> parts(budget_, std::size_t{rows_} * count);
    multiply(values_, dims_, rows_, frame.basis, count, parts);
    for (std::uint32_t i = 0; i < rows_; ++i) {
      const double* const part = parts.data() + std::size_t{i} * count;
      double* const at = reduced.data() + std::size_t{i} * columns;
      std::copy_n(part, count, at);
      at[count] = rest_length(dot(row(i), row(i), dims_), dot(part, part, count));
    }
    const RowScan scan = choose_row_scan(ScalarType::kFloat64);
    std::uint64_t left = 0, pairs = 0;
    std::vector<double> whole(rows_), squares(rows_);
    std::vector<const void*> wholes(rows_), reduceds(rows_);
    for (std::uint32_t i = 0; i < rows_; ++i) {
      wholes[i] = row(i);
      reduceds[i] = reduced.data() + std::size_t{i} * columns;
    }
    const std::uint32_t step = std::max(1u, rows_ / kLeft);
    for (std::uint32_t i = 0; i < rows_; i += step, pairs += rows_) {
      scan.squares(wholes[i], wholes.data(), rows_, dims_, whole.data());
      scan.squares(reduceds[i], reduceds.data(), rows_, columns, squares.data());
      std::nth_element(whole.begin(), whole.begin() + nearest, whole.end());  // the first is itself
      left += static_cast<std::uint64_t>(std::count_if(
          squares.begin(), squares.end(), [&](double x) { return x <= whole[nearest]; }));
    }
    return static_cast<double>(left) / static_cast<double>(pairs);
  }

 private:
  const double* row(std::uint32_t i) const { return values_.data() + std::size_t{i} * dims_; }
  double* row(std::uint32_t i) { return values_.data() + std::size_t{i} * dims_; }

  std::vector<SampledRow> rows_of(const Dataset& data) const {
    constexpr std::size_t kMostCoordinates = std::size_t{1} << 20;
    std::vector<SampledRow> rows;
    for (const std::uint64_t row : sample_rows(data.rows)) {
      if (rows.size() * dims_ > kMostCoordinates) break;
      if (is_finite_row(data, row)) rows.push_back({&data, row});
    }
    return rows;
  }

  /// products = [count][terms] values * [terms][columns] matrix.
  void multiply(const Buffer<double>& values, std::uint32_t terms, std::uint32_t count,
                const Buffer<double>& matrix, std::uint32_t columns,
                Buffer<double>& products) const {
    pool_.parallel_for((count + kProductRows - 1) / kProductRows, [&](std::size_t task, unsigned) {
      // The last rows may come twice.
      const std::size_t first = std::min<std::size_t>(task * kProductRows, count - kProductRows);
      Buffer<double> some(budget_, std::size_t{kProductRows} * columns);
      scan_.products(values.data() + first * terms, terms, terms, matrix.data(), columns,
                     some.data());
      std::copy(some.begin() + (task * kProductRows - first) * columns, some.end(),
                products.data() + task * kProductRows * columns);
    });
  }

  /// Gram-Schmidt, twice. A column that others explain is left as zeros. `columns` are the same,
  /// one after the other.
  void orthonormalize(Buffer<double>& basis, Buffer<double>& columns, std::uint32_t count) const {
    for (std::uint32_t j = 0; j < count; ++j) {
      double* const column = columns.data() + std::size_t{j} * dims_;
      for (std::uint32_t d = 0; d < dims_; ++d) column[d] = basis[std::size_t{d} * count + j];
      double before = std::sqrt(dot(column, column, dims_));
      for (int pass = 0; pass < 2; ++pass, before = 1) {
        for (std::uint32_t i = 0; i < j; ++i) {
          const double* const other = columns.data() + std::size_t{i} * dims_;
          const double along = dot(column, other, dims_);
          for (std::uint32_t d = 0; d < dims_; ++d) column[d] -= along * other[d];
        }
        const double length = std::sqrt(dot(column, column, dims_));
        const double factor = length > before * 1e-6 && std::isfinite(length) ? 1 / length : 0;
        for (std::uint32_t d = 0; d < dims_; ++d) column[d] = factor == 0 ? 0 : column[d] * factor;
        if (factor == 0) break;
      }
      for (std::uint32_t d = 0; d < dims_; ++d) basis[std::size_t{d} * count + j] = column[d];
    }
  }

  /// The largest row sum of |Q'Q - I|, zeros aside, which leave out their part of every point; a
  /// little more for its rounding.
  double skew_of(const Buffer<double>& columns, std::uint32_t count) const {
    double most = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double* const a = columns.data() + std::size_t{i} * dims_;
      double sum = 0;
      for (std::uint32_t j = 0; j < count; ++j) {
        const double product = dot(a, columns.data() + std::size_t{j} * dims_, dims_);
        sum += i == j && product > 0.5 ? std::fabs(product - 1) : std::fabs(product);
      }
      most = std::max(most, sum);
    }
    return most + count * (dims_ + 4.0) * 0x1p-51;
  }

  WorkerPool& pool_;
  MemoryBudget& budget_;
  const RowScan scan_;
  const std::uint32_t dims_;
  std::uint32_t rows_ = 0;
  Buffer<double> values_;  ///< [rows][dims]
  Buffer<double> turned_;  ///< [dims][rows]
};

/// What a pair costs in nanoseconds: the columns of a screen, and a distance of what that leaves.
double pair_ns(std::uint32_t columns, double share_left, std::uint32_t dims) {
  constexpr double kColumn = 0.02, kPair = 10, kDimension = 0.05;
  return columns * kColumn + share_left * (kPair + dims * kDimension);
}

/// Finds the directions, and takes them where they pay.
void reduce(WorkerPool& pool, MemoryBudget& budget, const JoinRequest& request,
            const Sides& indexed, NearestFrame& frame) {
  constexpr double kProductNs = 0.06;
  const std::uint32_t dims = frame.dims;
  const auto left = static_cast<double>(indexed.left().rows),
             right = static_cast<double>(indexed.right().rows);
  const std::uint32_t count = dims < kManyReduced ? 32 : 64;
  const double reducing = static_cast<double>(indexed.rows()) * dims * count * kProductNs;
  const double whole = left * right * pair_ns(dims, 0, dims);
  if (reducing > whole / 2) return;
  const Sample sample(pool, budget, frame, indexed);
  if (sample.size() < 2 * count) return;
  double skew;
  frame.basis = sample.directions(count, &skew);
  frame.directions = count;
  frame.share = reduction_share(skew, count, dims);
  const double nearest = static_cast<double>(request.neighbors()) / right * sample.size();
  const auto rank = static_cast<std::uint32_t>(std::clamp(nearest, 1.0, sample.size() - 1.0));
  const double share = sample.share_left(frame, rank);
  if (skew < 1e-6 && reducing + left * right * pair_ns(count + 1, share, dims) < whole) return;
  frame.directions = 0;
  frame.basis = {};
}

}  // namespace

void NearestFrame::write_columns(const Dataset& data, const std::uint64_t* rows,
                                 std::uint32_t count, double* work, float* place,
                                 double* errors) const {
  const std::size_t stride = (dims + 7) & ~std::size_t{7};
  double squares[kProductRows];
  for (std::uint32_t i = 0; i < kProductRows; ++i)
    squares[i] = write_centred(screen, data, rows[std::min(i, count - 1)], work + i * stride);
  double* const products = work + kProductRows * stride;
  if (directions > 0) scan.products(work, stride, dims, basis.data(), directions, products);
  for (std::uint32_t i = 0; i < count; ++i) {
    float* const row = place + std::size_t{i} * columns;
    errors[i] = 0;
    if (std::isnan(squares[i])) {
      std::fill_n(row, columns, std::nanf(""));
      continue;
    }
    double changed = 0;
    const auto write = [&](std::uint32_t column, double y) {
      row[column] = static_cast<float>(y);
      const double error = y - static_cast<double>(row[column]);
      changed += error * error;
    };
    if (directions == 0) {
      for (std::uint32_t d = 0; d < dims; ++d) write(d, work[i * stride + d]);
      errors[i] = quantization_error(changed, squares[i]);
      continue;
    }
    const double* const product = products + i * std::size_t{directions};
    for (std::uint32_t j = 0; j < directions; ++j) write(j, product[j]);
    const double rest = rest_length(squares[i], dot(product, product, directions));
    write(directions, rest);
    errors[i] = quantization_error(changed, squares[i]) + reduction_error(share, squares[i], rest);
  }
}

NearestFrame choose_nearest_frame(WorkerPool& pool, MemoryBudget& budget,
                                  const JoinRequest& request, const Sides& indexed) {
  NearestFrame frame;
  frame.screen = choose_screen_frame(request, request.knobs.reorder_dimensions != Switch::kOff);
  frame.dims = indexed.left().dims;
  frame.scan = choose_row_scan(indexed.left().scalar);
  if (frame.dims >= kFewestReduced && request.knobs.reorder_dimensions != Switch::kOff)
    reduce(pool, budget, request, indexed, frame);
  frame.columns = frame.directions > 0 ? frame.directions + 1 : frame.dims;
  frame.checkpoints = make_checkpoints(frame.columns, request.knobs.short_circuit != Switch::kOff);
  return frame;
}

}  // namespace gpujoin::cpu
