// The rows that a better row makes superfluous, built on any plain join (Output::kDuplicates).
// Exact: every pair that can matter is met, and no more of them are kept than there is memory for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/joins/chosen_rows.h"
#include "engine/joins/join.h"
#include "engine/joins/rank_order.h"
#include "engine/request/buffer.h"

namespace gpujoin {

/// Works on blocks of rows in the order of their ranks. The first block is all rows. The pairs of a
/// block are kept, and decide its rows: a row stays unless one of its better neighbours does. Where
/// there are too many pairs for that, the join of the block stops and begins again with fewer rows.
/// What is left then is joined with the rows of the block that stay, which leaves the next block
/// without their neighbours. So a dense place costs one block, not all of its pairs: in rows whose
/// ranks are independent of their places, few pairs are left after each block [greedy-mis]. Rows
/// that have gone in this way find the nearest row that stays in a last join.
///
/// Rows may lie in a file, as long as `plain_join` takes such rows. Beside what their joins take,
/// 36 bytes are held for each.
class DuplicatesJoin final : public Join {
 public:
  /// `plain_join` opens joins of pairs with distances, and of matched rows. Throws what Buffer
  /// throws; next_batch() throws what `plain_join` and its joins throw, too.
  DuplicatesJoin(const JoinRequest& request, OpenJoin plain_join);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Stage { kBlock, kDecide, kRest, kNearest, kResult };

  /// A pair of a block, in the list of its worse row.
  struct Edge {
    double distance;
    std::uint32_t better;
    std::uint32_t next;
  };

  bool in_file() const { return request_.sides.in_file(); }
  std::uint64_t rows() const { return request_.left().rows; }
  std::int64_t id_of_row(std::uint32_t row) const {
    return in_file() ? ids_[row] : id_of(request_.left(), row);
  }

  void make_room();
  Status advance();
  void read_names();
  void finish_order();
  ChosenRows choose(const std::uint32_t* rows, std::uint64_t count);
  void choose_block();
  void choose_rest();
  void choose_gone();
  void open_part();
  Status collect_part();
  bool collect(const ResultBatch& batch);
  void collect_counts(const ResultBatch& batch);
  bool keep_edge(std::uint32_t better, std::uint32_t worse, double distance);
  void offer(std::uint32_t row, std::uint32_t better, double distance);
  void shrink_block();
  void end_part();
  void decide_rows();
  void end_rest();
  bool next_result(ResultBatch* batch);

  JoinStats stats_so_far() const;
  std::uint64_t most_edges() const;
  Edge& edge(std::uint32_t number);

  JoinRequest request_;
  OpenJoin plain_join_;
  MemoryBudget budget_;
  Stage stage_ = Stage::kBlock;
  std::optional<RankOrder> ranks_;  ///< until they are known

  Buffer<std::uint32_t> order_;  ///< rows by rank; from first_ on those that are undecided
  std::uint64_t first_ = 0, end_ = 0;
  std::uint64_t block_ = 0;            ///< rows of the block
  std::uint64_t decided_ = 0;          ///< of these, in Stage::kDecide
  Buffer<std::int64_t> ids_;           ///< by row, of a file; or at last of rows without ids
  std::uint64_t next_chunk_ = 0;       ///< of the file, whose ids are still to be read
  Buffer<std::uint32_t> rank_;         ///< by row
  Buffer<std::uint32_t> stays_;        ///< by row: the one that stays for it, itself, or kGone
  Buffer<double> distance_;            ///< by row: from that
  Buffer<std::uint32_t> edge_of_row_;  ///< by row: its last edge, or the next one to look at
  std::vector<Buffer<Edge>> edges_;
  std::uint64_t edge_count_ = 0, edge_limit_ = 0;
  bool has_gone_ = false;  ///< rows are kGone

  ChosenRows left_, right_;  ///< of the part, unless that is all rows
  std::unique_ptr<Join> part_;
  std::uint64_t held_ = 0;  ///< bytes besides the part's own
  JoinStats done_{};        ///< of the parts before

  // The result.
  std::uint64_t next_row_ = 0, pairs_ = 0, batches_ = 0;
  Buffer<std::uint32_t> rows_, kept_;
  Buffer<std::uint64_t> offsets_;  ///< 0, 1, ...
  Buffer<double> distances_;
};

}  // namespace gpujoin
