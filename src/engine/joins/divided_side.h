// One side of a join, divided into parts that are small enough to be joined in memory: each has
// rows with consecutive values in one column, so that it meets few parts of the other side.
#pragma once

#include <cstdint>
#include <vector>

#include "core/distance.h"
#include "core/grid.h"
#include "engine/joins/file_rows.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/request/row_copy.h"
#include "engine/worker_pool.h"

namespace gpujoin {

/// A column of points, or one of their keys, numbered after them; or a dimension of boxes: its low
/// bounds sort, its high bounds end.
struct CutColumn {
  std::uint32_t low;
  std::uint32_t high;  ///< of points the same
  /// Not empty: low and high are an interval's ends, and rows are divided by how long it is, where
  /// these lengths begin, ascending.
  std::vector<double> lengths = {};
};

/// Whether values of two extents may differ by no more than `reach`.
inline bool are_within_reach(const Extent& a, const Extent& b, double reach) {
  return !(a.low - b.high > reach) && !(b.low - a.high > reach);
}

/// A bound on the distance of two rows whose values in one column, the same of both, lie in these
/// extents: subtraction, squares, sums and roots round monotonically, so that no two rows are
/// nearer to each other than their values in a column are. Directions and bits have no such column.
double least_distance(Metric metric, const Extent& a, const Extent& b);

/// Columns of a side's rows, of 8 bytes a row, that parts carry with them for Output::kSums.
struct SumColumnsOfSide {
  std::uint32_t count = 0;
  std::vector<const void*> columns;  ///< [count], of data in memory
};

/// Rows of a dataset that is in memory are only listed, rows of one in a file are copied, part by
/// part, to another place of the file.
class DividedSide {
 public:
  /// `memory` is what dividing may take. `scratch` is for data in a file, `pool` for data in
  /// memory, whose parts have the ids of their rows if `named`. Everything outlives this. Throws
  /// what Buffer throws.
  DividedSide(MemoryBudget& budget, const Dataset& data, CutColumn column, std::uint64_t part_rows,
              std::uint64_t memory, const RowFile* scratch, WorkerPool& pool,
              SumColumnsOfSide sums = {}, bool named = true);

  /// Divides some more rows, in some milliseconds. False when all are divided. Throws what Buffer
  /// throws, and RowFileFailed.
  bool divide();

  // What follows is for a divided side.

  /// Their extents ascend.
  std::size_t parts() const { return parts_.size(); }
  std::uint64_t rows(std::size_t part) const { return parts_[part].rows; }
  /// From the least low bound of a part to its largest high bound.
  const Extent& extent(std::size_t part) const { return parts_[part].extent; }

  /// A copy of a part's rows; they keep their ids, or are named by row. Throws what Buffer throws,
  /// and RowFileFailed.
  RowCopy load(std::size_t part) const;
  /// The ids alone, in the same order.
  Buffer<std::int64_t> load_ids(std::size_t part) const;

  /// The values of a row in the column, NaN as infinity, or the length of its interval, NaN as
  /// minus infinity: such rows match nothing, in whichever part.
  Extent bounds_of(const Dataset& data, std::uint64_t row) const;

 private:
  /// Rows that lie together: in rows_ from `place` on, or in the file, as a chunk does.
  struct Run {
    std::uint64_t place;
    std::uint64_t rows;
  };
  struct Part {
    std::uint64_t rows = 0;
    Extent extent = kNoExtent;
    std::vector<Run> runs;
  };
  /// Rows with values between two bounds, on their way into parts.
  struct Bucket {
    std::uint64_t first = 0;    ///< where its rows begin in rows_, or its share of the buffers
    std::uint64_t rows = 0;     ///< there so far
    Extent extent = kNoExtent;  ///< of its rows, or of those that go to the file next
    std::size_t part = ~std::size_t{0};  ///< the one that takes in more rows; none yet
  };

  /// What a share has of a bucket: how many rows, then where the next one goes; and their extent.
  struct Piece {
    std::uint64_t next = 0;
    Extent extent = kNoExtent;
  };

  void choose_bounds(std::uint64_t buckets);
  void find_buckets(const Extent* extents, std::uint64_t rows, std::uint32_t* buckets) const;
  template <class Visit>
  void visit_rows(const Dataset& data, std::uint64_t begin, std::uint64_t end,
                  const Visit& visit) const;
  template <class Visit>
  void visit_turn(const Visit& visit);
  void place_lists();
  void cut_lists();
  void move_chunk(std::uint64_t number);
  void flush(Bucket& bucket);
  void sort_parts();
  void add_run(Bucket& bucket, const Run& run, const Extent& extent);

  MemoryBudget& budget_;
  const Dataset& data_;
  CutColumn column_;
  std::uint64_t part_rows_;
  const RowFile* scratch_;
  SumColumnsOfSide sums_;
  bool named_;
  std::vector<double> bounds_;  ///< ascending; the values from which the next bucket begins
  std::vector<Bucket> buckets_;
  std::vector<Part> parts_;
  std::uint64_t done_ = 0;  ///< chunks; or rows of each share in memory, which pass twice

  // In memory.
  WorkerPool& pool_;
  std::uint64_t shares_ = 1, share_rows_ = 0;  ///< each of consecutive rows
  std::vector<Piece> pieces_;                  ///< [shares][buckets]
  Buffer<std::uint32_t> rows_;                 ///< by bucket

  // In a file.
  std::uint64_t run_rows_ = 0;  ///< rows of a bucket that go to the file at a time
  RowCopy runs_;                ///< [buckets][run_rows_]
  RowCopy chunk_;
};

}  // namespace gpujoin
