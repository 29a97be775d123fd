// The first k neighbours so far, by comes_before(): a short sorted list, and a heap for many. For
// host and device: no allocation, no state but their own.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/nearest.h"
#include "core/portability.h"

namespace gpujoin {

/// The order of neighbours, whose ids are those of rows: ids[rows[position]], or where there is no
/// array of ids or rows the row, or the position.
template <Metric M>
struct NeighborOrder {
  const std::uint32_t* rows;
  const std::int64_t* ids;

  GPUJOIN_HD std::int64_t id(std::uint32_t position) const {
    const std::uint32_t row = rows != nullptr ? rows[position] : position;
    return ids != nullptr ? ids[row] : static_cast<std::int64_t>(row);
  }
  GPUJOIN_HD bool operator()(double a, std::uint32_t p, double b, std::uint32_t q) const {
    return neighbor_comes_before<M>(Neighbor{a, p}, Neighbor{b, q},
                                    [this](std::uint32_t at) { return id(at); });
  }
};

/// Up to K of them, in the order; the first K - k places are taken by what nothing comes before, so
/// that the last place is always the k-th.
template <std::uint32_t K>
class ShortNeighborList {
 public:
  /// 1 <= k <= K.
  GPUJOIN_HD explicit ShortNeighborList(std::uint32_t k) {
    for (std::uint32_t i = 0; i < K; ++i) {
      raws_[i] = i < K - k ? -1.0 : HUGE_VAL;
      positions_[i] = ~0u;
    }
  }

  GPUJOIN_HD bool is_full() const { return raws_[K - 1] < HUGE_VAL; }
  GPUJOIN_HD double last_raw() const { return raws_[K - 1]; }
  GPUJOIN_HD double raw(std::uint32_t i) const { return raws_[i]; }  ///< infinite: there is none
  GPUJOIN_HD std::uint32_t position(std::uint32_t i) const { return positions_[i]; }

  /// A finite raw distance.
  template <class Order>
  GPUJOIN_HD void offer(double raw, std::uint32_t position, const Order& order) {
    if (!order(raw, position, raws_[K - 1], positions_[K - 1])) return;
    if constexpr (K <= 8) {
      // Without a jump, so that the list stays in registers.
      bool placed = false;
      for (std::uint32_t i = K - 1; i > 0; --i) {
        const bool before = !placed && order(raw, position, raws_[i - 1], positions_[i - 1]);
        raws_[i] = before ? raws_[i - 1] : placed ? raws_[i] : raw;
        positions_[i] = before ? positions_[i - 1] : placed ? positions_[i] : position;
        placed = !before;
      }
      if (!placed) raws_[0] = raw, positions_[0] = position;
    } else {
      std::uint32_t i = K - 1;
      for (; i > 0 && order(raw, position, raws_[i - 1], positions_[i - 1]); --i) {
        raws_[i] = raws_[i - 1];
        positions_[i] = positions_[i - 1];
      }
      raws_[i] = raw;
      positions_[i] = position;
    }
  }

 private:
  double raws_[K];
  std::uint32_t positions_[K];
};

/// A heap with the last one on top, in memory of the caller's, of k places.
class NeighborHeap {
 public:
  GPUJOIN_HD NeighborHeap(double* raws, std::uint32_t* positions, std::uint32_t k)
      : raws_(raws), positions_(positions), k_(k) {}

  GPUJOIN_HD bool is_full() const { return size_ == k_; }
  GPUJOIN_HD double last_raw() const { return raws_[0]; }  ///< where it is not empty
  GPUJOIN_HD std::uint32_t size() const { return size_; }

  template <class Order>
  GPUJOIN_HD void offer(double raw, std::uint32_t position, const Order& order) {
    if (size_ == k_) {
      if (order(raw, position, raws_[0], positions_[0])) sink(raw, position, order);
      return;
    }
    std::uint32_t at = size_++;
    while (at > 0) {
      const std::uint32_t up = (at - 1) / 2;
      if (!order(raws_[up], positions_[up], raw, position)) break;
      put(at, raws_[up], positions_[up]);
      at = up;
    }
    put(at, raw, position);
  }

  /// Leaves the places in the order; the heap is one no more. Returns how many there are.
  template <class Order>
  GPUJOIN_HD std::uint32_t sort(const Order& order) {
    const std::uint32_t found = size_;
    while (size_ > 1) {
      const double raw = raws_[0];
      const std::uint32_t position = positions_[0];
      --size_;
      sink(raws_[size_], positions_[size_], order);
      put(size_, raw, position);
    }
    return found;
  }

 private:
  GPUJOIN_HD void put(std::uint32_t at, double raw, std::uint32_t position) {
    raws_[at] = raw;
    positions_[at] = position;
  }

  /// Puts one in the place of the top.
  template <class Order>
  GPUJOIN_HD void sink(double raw, std::uint32_t position, const Order& order) {
    std::uint32_t at = 0;
    for (;;) {
      std::uint32_t child = 2 * at + 1;
      if (child >= size_) break;
      if (child + 1 < size_ &&
          order(raws_[child], positions_[child], raws_[child + 1], positions_[child + 1]))
        ++child;
      if (!order(raw, position, raws_[child], positions_[child])) break;
      put(at, raws_[child], positions_[child]);
      at = child;
    }
    put(at, raw, position);
  }

  double* raws_;
  std::uint32_t* positions_;
  std::uint32_t k_;
  std::uint32_t size_ = 0;
};

}  // namespace gpujoin
