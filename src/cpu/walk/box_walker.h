// One worker's walk of a join of boxes: for each box of a stretch of one side, the windows of the
// other side's index that can hold its partners, and the scan of them. A sink takes the pairs of a
// box, several runs of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/box.h"
#include "cpu/index/box_index.h"
#include "cpu/scan/box_scan.h"
#include "cpu/walk/pair_sinks.h"
#include "engine/request/buffer.h"
#include "engine/request/request.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// What every worker of a walk reads and none writes: all boxes of one side search their partners
/// on the other.
struct BoxWalk {
  BoxMethod method;
  BoxTest test;
  BoxScanKernel kernel;
  std::uint32_t sweep_dimension;
  PairSelection pairs;
  bool self_join;          ///< they are the index's own
  bool first_side;         ///< of a sweep: see boxes_above()
  const Dataset* rows;     ///< the boxes that search; their positions are their rows
  const BoxIndex* sorted;  ///< or, where not null, the positions of this index
  const BoxIndex* index;
  std::uint64_t batch_entries;

  /// A self-join meets each pair once. The pair stands for both orders unless only one is wanted.
  bool mirrored() const { return self_join && pairs != PairSelection::kUnordered; }
  std::uint32_t positions() const {
    return sorted != nullptr ? sorted->boxes : static_cast<std::uint32_t>(rows->rows);
  }
};

/// Windows to be scanned together, with few enough candidates to check the stop flag once.
struct WindowList {
  static constexpr std::uint32_t kMostWindows = 64;
  static constexpr std::uint32_t kMostCandidates = 4096;
  Window windows[kMostWindows];
  std::uint32_t count = 0;
  std::uint32_t candidates = 0;

  /// Adds begin .. end - 1, after whatever was added before. Calls scan() whenever the list is
  /// full; scan() leaves it empty.
  template <class Scan>
  void add(std::uint32_t begin, std::uint32_t end, const Scan& scan);
  void clear() { count = candidates = 0; }
};

/// Boxes of scalar type T; the sink is TotalSink or BoxPairSink.
template <class T, class Sink>
class BoxWalker {
 public:
  /// make_sink(progress) makes the worker's sink.
  template <class MakeSink>
  BoxWalker(const BoxWalk& walk, const WalkTools& tools, const MakeSink& make_sink)
      : walk_(walk),
        index_(*walk.index),
        pool_(tools.pool),
        progress_(tools.tally),
        sink(make_sink(progress_)),
        found_boxes_(tools.budget, WindowList::kMostCandidates) {
    if (walk.method == BoxMethod::kLayeredGrid)
      found_blocks_ = Buffer<std::uint32_t>(tools.budget, WindowList::kMostCandidates);
  }

  /// Joins the boxes at positions first .. end - 1 with the boxes in window `within` of the index.
  void walk(std::uint32_t first, std::uint32_t end, Window within);
  WalkProgress& progress() { return progress_; }

 private:
  bool load(std::uint32_t position);
  void look_up(std::uint32_t position, Window within);
  Window sweep_window(Window within);
  void look_ahead(std::uint32_t position);
  void look_up_parts();
  void add_parts(std::uint64_t bits, std::uint32_t first);
  void add_boxes(std::uint32_t begin, std::uint32_t end);
  void scan_blocks();
  void scan_boxes();

  static constexpr std::uint32_t kAhead = 8;

  const BoxWalk& walk_;
  const BoxIndex& index_;
  WorkerPool& pool_;
  WalkProgress progress_;

 public:
  Sink sink;

 private:
  const T* query_ = nullptr;  ///< the box that searches
  T loaded_[2 * kMaxBoxDimensions];
  std::uint32_t position_ = 0;
  std::uint32_t from_ = 0;  ///< the first position of the index that it is compared with
  std::uint32_t sweep_begin_ = 0;
  bool entered_ = false;         ///< sweep_begin_ is the last box's
  CellRectangle cells_[kAhead];  ///< by position % kAhead, of this box and the next ones
  WindowList blocks_, boxes_;
  Buffer<std::uint32_t> found_blocks_, found_boxes_;
};

using BoxPairSink = PairBatchSink<PairNeed::kPosition>;

extern template class BoxWalker<float, TotalSink>;
extern template class BoxWalker<double, TotalSink>;
extern template class BoxWalker<float, BoxPairSink>;
extern template class BoxWalker<double, BoxPairSink>;

}  // namespace gpujoin::cpu
