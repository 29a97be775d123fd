// One side of a nearest-neighbour join on the device: its rows, and what is made of them for a
// search, a tree of boxes or rounded tiles. It knows nothing of the other side, but for the frame
// that both have in common, so that joins with other left points find a right side prepared.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/upload.h"
#include "cuda/grid/uploaded_rows.h"
#include "cuda/nearest/curve_points.h"
#include "cuda/nearest/screened_kernels.h"
#include "engine/joins/prepared_side.h"
#include "engine/strategy/screen_frame.h"

namespace gpujoin::cuda {

/// Functions are called in the order in which they stand here, until the side is finished; then
/// joins on other streams may use it. They work in the order of the resources' stream, are
/// asynchronous unless they say something else, and throw CudaError, MemoryLimitExceeded or
/// std::bad_alloc.
class NearestSide final : public gpujoin::PreparedSide {
 public:
  /// Makes room for the rows, unless they are in the slot, which may be null.
  NearestSide(const Dataset& data, const void* plan, std::shared_ptr<SideSlot> rows,
              const std::shared_ptr<JoinResources>& resources);
  /// Waits for its stream. Kernels of joins that use it have ended.
  ~NearestSide() override;

  const void* plan() const override { return plan_; }
  SideBytes bytes() const override { return resources_.bytes(); }
  const gpujoin::PreparedSide* rests_on() const override { return arriving_.rows().get(); }

  /// Whether another join has copied the rows.
  bool rows_were_there() const { return arriving_.were_there(); }
  /// Copies rows for some milliseconds. True: all are copied.
  bool copy_piece(Uploader& uploader) { return arriving_.copy_piece(uploader); }
  /// Copies the ids of the rows, where they have some.
  void name(const Dataset& data, Uploader& uploader);
  /// Has directions indexed in the place of the points.
  void find_directions();

  // After the stream is done with that: for tiles,

  /// Chooses how points are rounded. Waits for the stream.
  void choose_rounding(const ScreenFrame& frame);
  void round(const Rounding& how);

  // or for a tree.

  void sort(const CurveFrame& frame);
  /// After the stream is done with that: orders the coordinates, of so many columns.
  void order(std::uint32_t stride);
  void make_tree();

  /// Ends what is put into the side's stream.
  void finish() { ready_.record(stream_); }
  /// What is put into another stream from now on finds the side finished.
  void hold(cudaStream_t stream) const { ready_.hold(stream); }

  /// The rows as they were uploaded.
  const DevicePoints& originals() const { return originals_; }
  /// By row, null: rows are ids.
  const std::int64_t* ids() const { return ids_.data(); }
  /// Whether a direction is extreme (core/cosine.h).
  bool extreme() const { return report()->extreme != 0; }
  const Rounding& rounding() const { return rounding_; }
  const RoundedPoints& rounded() const { return rounded_; }
  const CurveFrame& frame() const { return frame_; }
  /// Finite ones, once sorted.
  std::uint32_t points() const { return report()->finite; }
  const CurvePoints& ordered() const { return ordered_; }
  const BoxTree& tree() const { return tree_; }

 private:
  /// What the device finds out.
  struct Report {
    unsigned finite, extreme;
  };
  const Report* report() const { return host_report_.as<Report>(); }
  const DevicePoints& indexed() const { return directions_.rows > 0 ? directions_ : originals_; }
  void ask_report() { copy_to_host(host_report_.as<Report>(), report_.data(), 1, stream_); }

  const void* const plan_;
  SideResources resources_;
  cudaStream_t stream_;  ///< the resources'
  ArrivingRows arriving_;
  DevicePoints originals_;
  DevicePoints directions_;  ///< until the side is made of them
  DeviceBuffer<std::int64_t> ids_;
  DeviceBuffer<Report> report_;
  PinnedBlock host_report_;
  CurveFrame frame_{};
  CurvePoints ordered_;
  DeviceBuffer<float> boxes_;
  BoxTree tree_{};
  DeviceBuffer<std::uint32_t> column_order_;
  DeviceBuffer<double> center_;
  Rounding rounding_{};
  RoundedPoints rounded_;
  Event ready_;
};

}  // namespace gpujoin::cuda
