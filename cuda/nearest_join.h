// The nearest-neighbour join of the CUDA engine: how its sides come to the device, which search
// finds its neighbours, and their way to the caller, a slice of left points at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cuda/device/device_join.h"
#include "cuda/device/upload.h"
#include "cuda/nearest/box_search.h"
#include "cuda/nearest/screened_search.h"
#include "engine/joins/work_share.h"
#include "engine/request/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// What a join shares with others.
struct NearestShares {
  std::shared_ptr<SideSlot> left_rows, right_rows;  ///< rows as they came; may be null
  std::shared_ptr<KeptJoin> kept;  ///< whose right side is the request's, prepared; may be null
  WorkShare work;                  ///< left points, in the order of the search
};

/// What is kept of the request's right side for its nearest rows: its key.
JoinKey key_of_nearest(const JoinRequest& request);

/// What the search of such a join is expected to take on a device, in milliseconds.
double nearest_ms(const JoinRequest& request);

/// Bytes of the device that so many rows of a join's sides take at most, besides its slices.
std::uint64_t nearest_device_bytes(const JoinRequest& request, std::uint64_t rows);

/// `request` is one for Output::kNearest whose rows lie in memory; else as DeviceJoin.
class NearestJoin final : public DeviceJoin {
 public:
  /// Makes room for the rows, so that a lack of memory shows at once.
  NearestJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
              const NearestShares& shares);
  /// Makes running kernels leave, and waits for them.
  ~NearestJoin() override;

  void stats(JoinStats* stats) const override;

 private:
  enum class Phase { kUpload, kDirections, kSort, kSearch, kEnd };

  /// The result of a slice, on its way.
  struct Slot {
    Slot(JoinResources& resources, std::uint32_t points, std::uint32_t k);

    Stream stream;
    Event searched, arrived;
    DeviceBuffer<std::uint32_t> rows, counts, neighbors;
    DeviceBuffer<double> distances;
    PinnedBlock host_rows, host_counts, host_neighbors, host_distances, host_report;
    Buffer<std::uint64_t> offsets;
    std::uint32_t points = 0;     ///< of the slice
    bool is_packed = false;       ///< what follows is known
    std::uint32_t row_count = 0;  ///< rows that have neighbours
    std::uint32_t delivered = 0;  ///< of them
  };

  Progress move_on(ResultBatch* batch) override;
  std::shared_ptr<NearestSide> make_side(const Dataset& data,
                                         const std::shared_ptr<SideSlot>& rows);
  void open_sides();
  bool prepares_right() const;
  JoinRequest framed() const;
  bool upload();
  void find_directions();
  void sort_sides();
  void keep_right();
  void prepare_search();
  void search_tree();
  NeighborQuestion question();
  void start_search();
  Progress search(ResultBatch* batch);
  void start_slice();
  void finish_slice();
  void pack(Slot& slot);
  bool deliver(ResultBatch* batch);
  Slot& oldest() { return slots_[delivered_ % slots_.size()]; }

  Uploader uploader_;
  NearestShares shares_;
  const std::uint32_t k_;  ///< neighbours of a point at most
  Phase phase_ = Phase::kUpload;
  std::shared_ptr<NearestSide> left_, right_;  ///< of a self-join one
  std::vector<NearestSide*> unprepared_;       ///< of these, the ones that this join prepares
  std::size_t uploaded_ = 0;                   ///< of them, those whose rows are there
  std::unique_ptr<NeighborSearch> search_;
  std::deque<Slot> slots_;
  std::uint32_t slice_points_ = 0;
  bool searching_ = false;  ///< a slice is in progress, in the slot of number `launched_`
  std::uint64_t searched_points_ = 0;
  std::uint64_t launched_ = 0;   ///< slices whose results are on their way
  std::uint64_t delivered_ = 0;  ///< of them
  Buffer<std::int64_t> left_numbers_, right_numbers_;
  SearchReport counted_{};
  Stopwatch since_open_;
};

}  // namespace gpujoin::cuda
