// Pairs of boxes, found slice by slice: boxes of the indexed side stay on the device, boxes of the
// probing side come to it a slice at a time and search their partners. Counts first, so that every
// pair's place is known, then fills.
//
// Neither side has to fit: an indexed side that exceeds its share of the memory is taken in chunks
// of consecutive rows, and each chunk meets all slices.
#pragma once

#include <cstdint>

#include "cuda/boxes/box_index.h"
#include "cuda/boxes/box_kernels.h"
#include "cuda/device/device_context.h"
#include "cuda/device/slice_source.h"
#include "cuda/device/upload.h"
#include "engine/joins/work_share.h"
#include "engine/strategy/box_strategy.h"

namespace gpujoin::cuda {

class BoxWalk final : public SliceSource {
 public:
  /// Makes room. Both sides have rows. `stop` is a word on the device that makes kernels leave when
  /// it is not 0.
  BoxWalk(const JoinRequest& request, const BoxStrategy& strategy, const WorkShare& share,
          JoinResources& resources, const unsigned* stop, cudaStream_t stream);
  /// Waits for rows that are on their way. Kernels have ended.
  ~BoxWalk() override;

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return next_.chunk == chunks_; }
  CountedSlice slice() const override;
  /// Rows of the dataset.
  const std::uint32_t* sequence() const override { return host_rows_.as<std::uint32_t>(); }
  void fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) override;
  Buffer<std::uint32_t> counts() override { return {}; }
  std::uint64_t pairs() const override;
  void describe(JoinStats* stats) const override;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// One launch: a chunk of the indexed side with a slice of the probing one. In a sweep they meet
  /// twice: in the second walk the boxes of the chunk search the slice for boxes with larger low
  /// bounds. Places begin at a position of the side that searches.
  struct Turn {
    std::uint64_t chunk;
    std::uint64_t slice;
    std::uint32_t walk;
    std::uint32_t first;
  };
  /// Rows of the probing side on their way to the device.
  struct Staging {
    DeviceBuffer<unsigned char> numbers;
    Event arrived;
    std::uint64_t slice = kNone;
  };

  double candidates_per_box() const;
  void plan_memory();
  void share_memory(std::uint64_t slice_rows);
  void make_room();
  std::uint32_t chunk_rows(std::uint64_t chunk) const;
  std::uint32_t slice_rows(std::uint64_t slice) const;
  std::uint32_t places_of(const Turn& turn) const;
  Turn next_meeting();
  Turn after(Turn turn);
  void upload(Staging& staging, std::uint64_t slice);
  void index_chunk();
  void order_slice();
  void upload_ahead();
  void count();
  void choose_places();

  const JoinRequest& request_;
  const BoxStrategy& strategy_;
  WorkShare share_;  ///< meetings of a chunk with a slice, by chunk
  const Dataset& indexed_data_;
  const Dataset& probing_data_;
  JoinResources& resources_;
  Uploader uploader_;
  cudaStream_t stream_;
  std::uint64_t row_bytes_;

  std::uint64_t chunks_ = 1, most_chunk_rows_ = 0;
  std::uint64_t slices_ = 1, most_slice_rows_ = 0;
  std::uint32_t walks_ = 1;
  Turn turn_{}, next_{};
  BoxOrder order_{};
  BoxJoinView view_{};

  Stream upload_stream_;
  Staging staging_[2];
  unsigned staged_ = 0;                  ///< the one to be put in order next
  std::uint64_t indexed_chunk_ = kNone;  ///< the one on the device
  std::uint64_t ordered_slice_ = kNone;  ///< likewise
  DeviceBoxes indexed_, probing_;
  LayeredTable table_;
  Event index_begins_{cudaEventDefault}, index_ends_{cudaEventDefault};
  bool indexes_ = false;  ///< in this turn
  double index_ms_ = 0;
  std::uint64_t compared_boxes_ = 0;  ///< in all turns that ended

  /// What a turn reports to the host.
  struct Report {
    BoxTotals totals;  ///< of all turns so far
    std::uint32_t chosen;
  };
  DeviceBuffer<Report> report_;
  PinnedBlock host_report_;
  DeviceBuffer<PositionRange> ranges_;
  DeviceBuffer<std::uint32_t> counts_;         ///< [places]
  DeviceBuffer<std::uint32_t> chosen_;         ///< places whose boxes found partners
  DeviceBuffer<std::uint32_t> chosen_rows_;    ///< the rows of these boxes
  DeviceBuffer<std::uint32_t> chosen_counts_;  ///< numbers of their partners; 0 after the last
  DeviceBuffer<std::uint64_t> offsets_;
  PinnedBlock host_rows_, host_offsets_;  ///< of the chosen ones
};

}  // namespace gpujoin::cuda
