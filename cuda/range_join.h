// The range join of the CUDA engine: how its sides are prepared, and which source finds its pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/sliced_join.h"
#include "cuda/device/upload.h"
#include "cuda/grid/prepared_side.h"
#include "engine/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// As SlicedJoin.
class RangeJoin final : public SlicedJoin {
 public:
  RangeJoin(const JoinRequest& request, JoinResources& resources);
  ~RangeJoin() override { halt(); }

  void stats(JoinStats* stats) const override;

 private:
  enum class Work { kUpload, kExtents, kIndex };

  void prepare() override;
  bool next_counts(ResultBatch* batch) override;
  void choose_method();
  void make_sides();
  void upload_piece();
  void measure();
  void sort();
  void name();
  double tile_radius() const;
  std::unique_ptr<SliceSource> make_source();
  void collect_counts();

  Uploader uploader_;
  Strategy strategy_{};
  ReferencePoints references_;
  double reach_ = 0;  ///< of the indexed columns
  SortLayout layout_{};
  Work work_ = Work::kUpload;          ///< that prepare() has begun, or begins with
  std::vector<PreparedSide> sides_;    ///< left, right; a self-join has one
  std::size_t uploaded_ = 0;           ///< of them
  DeviceBuffer<ExtentBits> extents_;   ///< of the indexed columns of all sides
  PinnedBlock host_extents_;           ///< likewise
  DeviceBuffer<unsigned> queue_;       ///< for the grid's launches
  PinnedBlock rows_;                   ///< [rows] 0, 1, ..., where counts are wanted
  Buffer<std::uint64_t> row_counts_;   ///< likewise
  std::uint64_t delivered_ = 0;        ///< rows of them
  Buffer<std::int64_t> left_numbers_;  ///< of a side that meets no rows and has no ids
  Stopwatch since_open_;
};

}  // namespace gpujoin::cuda
