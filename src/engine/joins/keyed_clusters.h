// Clusters among rows of equal keys, built on joins of clusters that know no keys: one for each
// key.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/joins/join.h"
#include "engine/request/buffer.h"
#include "engine/request/row_copy.h"

namespace gpujoin {

/// Rows of one key are a group, and a row whose key is NaN is one by itself. Groups come one after
/// the other, by their keys; clusters are numbered from 0 in each. Beside the rows of a group,
/// which are copied unless they are all, it holds eight bytes a row.
class KeyedClusters final : public Join {
 public:
  /// The request has one key, an equality (check_request()). `clusters` opens joins of clusters.
  /// Throws what Buffer throws; next_batch() throws what `clusters` and its joins throw, too.
  KeyedClusters(const JoinRequest& request, OpenJoin clusters);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  enum class Stage { kCount, kPlace, kGroups };

  std::uint64_t group_of(std::uint64_t row) const;
  void take_some_rows();
  bool open_group();
  void end_group();

  JoinRequest request_;
  OpenJoin clusters_;
  MemoryBudget budget_;
  const std::uint64_t groups_;  ///< of keys that are numbers
  Stage stage_ = Stage::kCount;
  std::uint64_t next_row_ = 0;  ///< to be counted, or to be placed
  Buffer<std::uint32_t>
      places_;                  ///< [groups_ + 2] where each group's next row goes; at last its end
  Buffer<std::uint32_t> rows_;  ///< by group, in each by row
  std::uint64_t group_ = 0, begin_ = 0;  ///< the next group, and its first place
  RowCopy copy_;
  std::unique_ptr<Join> part_;
  std::uint64_t batches_ = 0;
  JoinStats done_{};  ///< of the groups before
};

}  // namespace gpujoin
