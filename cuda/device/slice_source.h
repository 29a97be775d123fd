// What finds the pairs of a join on the device, a slice of them at a time, so that the result may
// be of any size. Among the kinds: grid_walk searches around each point, tile_walk compares tiles
// of points.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/request/buffer.h"
#include "engine/request/result.h"

namespace gpujoin::cuda {

/// Which points of a slice have a self-pair in it.
enum class Themselves {
  kNone,
  kAll,   ///< each one, as its first pair
  kEach,  ///< each one, among its other pairs
  kSome,  ///< some of them, among their other pairs
};

/// Places first .. end - 1 of the sequence, whose neighbours are counted: every pair has its
/// number.
struct CountedSlice {
  std::uint32_t first;
  std::uint32_t end;
  const std::uint64_t* offsets;         ///< [end - first + 1], on the host
  const std::uint64_t* device_offsets;  ///< the same
  const std::uint32_t* neighbors;       ///< all of them on the device, or null: fill() writes them
  const double* distances;              ///< likewise, or null
  Themselves themselves;
  bool last;                ///< no other slice follows
  bool transposed = false;  ///< its points are the right side's

  std::uint64_t entries() const { return offsets[end - first]; }
};

/// Places first .. end - 1 of the sequence. Arrays with one element a place begin at `base`.
struct Stretch {
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t base;
  unsigned* next;  ///< device counter, set to `first` by the launch; used by the queue
};

/// The part of the result that one batch holds: neighbours number first_pair .. end_pair - 1 of
/// all, counted in sequence order from `base`. A point's neighbours begin at offsets[place - base],
/// exactly, so nothing can overflow.
struct FillRange {
  const std::uint64_t* offsets;  ///< one more than there are places
  std::uint64_t first_pair;
  std::uint64_t end_pair;
  std::uint32_t* neighbors;  ///< [end_pair - first_pair]
  double* distances;         ///< likewise, or null
};

/// Works in the order of the join's stream. All methods but describe() throw CudaError,
/// MemoryLimitExceeded or std::bad_alloc.
class SliceSource {
 public:
  virtual ~SliceSource() = default;

  /// Starts on the next slice, or again on one that did not fit. Asynchronous.
  virtual void start_slice() = 0;
  /// To be called when the device has done the slice. False: it did not fit and has to be started
  /// again.
  virtual bool finish_slice() = 0;
  /// Whether all slices are finished.
  virtual bool finished() const = 0;
  /// Whether others that share the work have to find something before the next slice: until then
  /// slices do nothing.
  virtual bool waits() const { return false; }

  /// Where pairs are wanted: the slice finished last.
  virtual CountedSlice slice() const = 0;
  /// Left positions in the order of work, on the host.
  virtual const std::uint32_t* sequence() const = 0;
  /// Writes a part of the slice, where it has no neighbours yet. Asynchronous.
  virtual void fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) = 0;

  /// Where counts are wanted, after the last slice: by position. Waits for the device.
  virtual Buffer<std::uint32_t> counts() = 0;
  /// Where sums are wanted, likewise: the words of so many rows, which stay until the next call.
  virtual const FoldWord* sums(std::uint64_t, std::uint64_t) { return nullptr; }
  /// Where clusters are wanted, likewise, of all rows: what pack_cluster() makes of each.
  virtual Buffer<std::uint64_t> clusters() { return {}; }
  /// Pairs found so far, in both orders where both are wanted.
  virtual std::uint64_t pairs() const = 0;
  /// Sets what concerns the search for pairs.
  virtual void describe(JoinStats* stats) const = 0;
};

}  // namespace gpujoin::cuda
