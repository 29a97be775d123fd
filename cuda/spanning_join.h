// The spanning trees of the CUDA engine, and the clusters that follow from them: how points come to
// the device, rounds of [Boruvka] over a tree of boxes, and the edges' way to the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cuda/device/device_join.h"
#include "cuda/device/upload.h"
#include "cuda/grid/uploaded_rows.h"
#include "cuda/nearest/curve_points.h"
#include "cuda/spanning/spanning_kernels.h"
#include "engine/joins/stable_clusters.h"
#include "engine/request/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// Why the device leaves a request for Output::kSpanningTree or Output::kStableClusters, of rows in
/// memory, to the CPU; null: it does not.
const char* objection_to_spanning(const JoinRequest& request);

/// Bytes of the device that such a join holds at most.
std::uint64_t spanning_device_bytes(const JoinRequest& request);

/// `request` is one without objection; else as DeviceJoin.
class SpanningJoin final : public DeviceJoin {
 public:
  /// Makes room for the rows, so that a lack of memory shows at once. `rows` may be null: the rows
  /// as they came.
  SpanningJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
               std::shared_ptr<SideSlot> rows);
  /// Makes running kernels leave, and waits for them.
  ~SpanningJoin() override;

  void stats(JoinStats* stats) const override;

 private:
  enum class Phase { kUpload, kSort, kCores, kRounds, kEdges, kClusters, kEnd };

  /// Edges on their way to the host.
  struct Piece {
    std::uint32_t first = 0, end = 0;
    std::uint32_t clustered = 0;  ///< edges of it that clusters_ has
    PinnedBlock ends, distances;
  };

  Progress move_on(ResultBatch* batch) override;
  void sort_points();
  void build_tree();
  void rank_rows();
  void make_table();
  void find_cores();
  void start_round();
  bool finish_round();
  std::uint64_t core_work() const;
  std::uint64_t round_work() const;
  void sort_edges();
  void fetch_piece();
  Progress deliver_edges(ResultBatch* batch);
  void cluster_edges();
  void gather_clusters();
  Progress deliver_clusters(ResultBatch* batch);
  void record(Phase phase);
  bool wants_edges() const { return request_.output() == Output::kSpanningTree; }
  std::uint64_t batch_entries() const;
  std::uint32_t points() const { return view_.tree().points; }

  Uploader uploader_;
  std::optional<ArrivingRows> rows_;
  Phase phase_ = Phase::kUpload;
  Stopwatch since_open_;

  DevicePoints data_;
  CurvePoints ordered_;
  DeviceBuffer<float> boxes_;
  DeviceBuffer<unsigned> finite_;
  PinnedBlock host_finite_;
  DeviceBuffer<std::uint32_t> rows_by_rank_, positions_, ranks_, components_, links_, open_;
  DeviceBuffer<double> cores_, found_distances_, least_, first_distances_, edge_distances_,
      numbers_;
  DeviceBuffer<std::uint64_t> found_ends_, first_ends_, edge_ends_;
  DeviceBuffer<std::uint8_t> proven_;
  DeviceBuffer<NodeFacts> facts_;
  DeviceBuffer<SpanningReport> report_;
  PinnedBlock host_report_;
  SpanningView view_{};
  std::uint32_t cores_end_ = 0;  ///< points that have core distances
  std::uint32_t edges_ = 0;      ///< found in the rounds before
  std::uint64_t work_done_ = 0,
                work_left_ = 0;  ///< spanning_work.h; nothing before the tree is there

  Piece piece_;
  Buffer<std::uint64_t> offsets_;  ///< 0, 1, .. of a batch
  Buffer<std::uint32_t> batch_rows_, batch_neighbors_;
  Buffer<double> batch_distances_;
  std::optional<StableClusters> clusters_;
  Buffer<std::uint32_t> host_rows_by_rank_;
  Buffer<std::int64_t> numbers_of_rows_, numbers_of_clusters_;
  std::uint64_t delivered_ = 0;  ///< rows, of clusters
};

}  // namespace gpujoin::cuda
