// Where a left point's candidates are: windows of the right index in the neighbouring cells that
// can hold points within eps (SORTIDU [GPU-Join, section 4.3]). Geometry only; what is found in the
// windows is walker's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpu/walk/join_plan.h"

namespace gpujoin::cpu {

/// The windows of one left point after another, in ascending order of positions.
class PointWindows {
 public:
  /// The most candidates in a piece, so that a walk checks the stop flag often enough.
  static constexpr std::uint64_t kMaxPiece = 1 << 16;

  explicit PointWindows(const JoinPlan& plan);

  /// Before the point at `first`, to which move_to() goes next.
  void start(std::uint32_t first);
  /// Finds the windows of the point at `position`, the one after the last.
  void move_to(std::uint32_t position) { find_windows(position, arrive(position)); }
  /// Finds windows for the point at `position`, and those after it, before `end`, in its tile and
  /// its cell that can share them without many more candidates. Returns their number. Where it is
  /// more than one, and the walk a half one, pairs among them are in no window. Not for a full walk
  /// of rows with themselves.
  std::uint32_t move_to_block(std::uint32_t position, std::uint32_t end);

  const std::vector<Window>& windows() const { return windows_; }
  /// How many candidates the windows hold, of all points that have them.
  std::uint64_t candidates() const { return candidates_; }
  /// Returns the cost of the windows of the last move, in candidates.
  std::uint64_t work() const { return candidates_ + window_work_ * windows_.size(); }
  /// Returns the expected cost of a point's windows, with its share of its cell's cost. Moves to
  /// the point's windows.
  std::uint64_t sample_work(std::uint32_t position);
  /// The most candidates of a piece: they fit in a batch.
  std::uint64_t max_piece() const { return std::min(plan_.batch_entries, kMaxPiece); }
  /// Calls visit(windows, count, candidates) for runs of windows with max_piece() candidates at
  /// most.
  template <class Visit>
  void for_pieces(const Visit& visit) const {
    for (std::size_t first = 0; first < windows_.size();) {
      std::size_t end = first;
      std::uint64_t total = 0;
      for (; end < windows_.size(); ++end) {
        const std::uint64_t size = windows_[end].end - windows_[end].begin;
        if (total + size > max_piece()) break;
        total += size;
      }
      visit(windows_.data() + first, end - first, total);
      first = end;
    }
  }
  /// Calls visit(part) for parts of the windows, the likeliest places of neighbours first, until it
  /// returns true.
  template <class Visit>
  void find_part(const Visit& visit) const {
    constexpr std::uint32_t kFewCandidates = 64;
    const auto find = [&](std::uint32_t begin, std::uint32_t end) {
      for (; begin < end; begin += std::min(kFewCandidates, end - begin))
        if (visit(Window{begin, begin + std::min(kFewCandidates, end - begin)})) return true;
      return false;
    };
    for (const Window& window : windows_) {
      const std::uint32_t middle = std::midpoint(window.begin, window.end);
      if (find(middle, window.end) || find(window.begin, middle)) return;
    }
  }

 private:
  /// A neighbouring cell on the right, and the part of it that the current point's sort value
  /// reaches.
  struct NeighborCell {
    std::uint32_t begin, end;
    std::uint32_t low, high;
    std::uint32_t shared_high;  ///< of the last point that shares the window
    bool own;                   ///< the cell that the point itself lies in
  };

  bool arrive(std::uint32_t position);
  bool share_windows(std::uint32_t first, std::uint32_t end, bool entered);
  double sort_value(std::uint32_t position) const;
  void enter_cell();
  void place_window(NeighborCell& neighbor, double x) const;
  void slide_window(NeighborCell& neighbor, double x) const;
  void move_window(NeighborCell& neighbor, double x, bool entered) const;
  void find_windows(std::uint32_t position, bool entered);
  void add_window(std::uint32_t begin, std::uint32_t end);

  const JoinPlan& plan_;
  const std::uint64_t window_work_, cell_work_;  ///< in candidates
  std::size_t cell_ = 0;                         ///< that the current point lies in
  bool started_ = false;
  std::vector<NeighborCell> neighbors_;
  std::vector<std::size_t> cursors_;  ///< per neighbour number, where its cell was last found
  std::vector<Window> windows_;
  std::uint64_t candidates_ = 0;
};

}  // namespace gpujoin::cpu
