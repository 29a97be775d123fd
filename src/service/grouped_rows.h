// What an engine finds of left rows, added up by their groups before it is sent.
#pragma once

#include <vector>

#include "engine/request/group_sums.h"
#include "service/open_join.h"

namespace gpujoin::service {

class GroupedRows {
 public:
  /// `request` and `groups`, of which there is one at least, outlive it.
  GroupedRows(const JoinRequest& request, const ClientGroups& groups);

  /// Bytes that so many groups take, those of the last batch included.
  static std::uint64_t bytes(const JoinRequest& request, std::uint64_t groups);

  /// Adds rows of a batch from *row on. False: they have no room until the groups are taken.
  bool add(const ResultBatch& batch, std::uint64_t* row);

  /// The groups that have pairs, as rows of a batch that stays until it is called again; begins
  /// with new groups.
  const ResultBatch& take();

 private:
  std::vector<std::uint64_t> counts_;
  std::vector<FoldWord> words_;
  GroupSums groups_;
  // What the last batch consists of:
  std::vector<std::uint32_t> sent_;
  std::vector<std::uint64_t> sent_counts_;
  std::vector<FoldWord> sent_words_;
  ResultBatch batch_{};
};

}  // namespace gpujoin::service
