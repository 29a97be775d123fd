#include "service/grouped_rows.h"

namespace gpujoin::service {
namespace {

std::uint64_t words_of_group(const JoinRequest& request) {
  return request.output() == Output::kSums ? row_words(*request.sums()) : 0;
}

}  // namespace

std::uint64_t GroupedRows::bytes(const JoinRequest& request, std::uint64_t groups) {
  const std::uint64_t group = sizeof(std::uint64_t) + words_of_group(request) * sizeof(FoldWord);
  return groups * (2 * group + sizeof(std::uint32_t));
}

GroupedRows::GroupedRows(const JoinRequest& request, const ClientGroups& groups)
    : counts_(groups.count),
      words_(groups.count * words_of_group(request)),
      groups_{request.output() == Output::kSums ? request.sums() : nullptr,
              groups.of_row.as<std::uint32_t>(),
              groups.count,
              0,
              counts_.data(),
              words_.data()} {
  clear_groups(&groups_);
}

bool GroupedRows::add(const ResultBatch& batch, std::uint64_t* row) {
  *row = add_rows(batch, *row, &groups_);
  return *row == batch.row_count;
}

const ResultBatch& GroupedRows::take() {
  const std::uint64_t width = words_.size() / counts_.size();
  sent_.clear();
  sent_counts_.clear();
  sent_words_.clear();
  for (std::uint64_t group = 0; group < counts_.size(); ++group) {
    if (counts_[group] == 0) continue;
    const auto words = words_.begin() + static_cast<std::ptrdiff_t>(group * width);
    sent_.push_back(static_cast<std::uint32_t>(group));
    sent_counts_.push_back(counts_[group]);
    sent_words_.insert(sent_words_.end(), words, words + static_cast<std::ptrdiff_t>(width));
  }
  batch_ = {};
  batch_.row_count = sent_.size();
  batch_.pair_count = groups_.pairs;
  batch_.rows = sent_.data();
  batch_.counts = sent_counts_.data();
  batch_.sums = width > 0 ? sent_words_.data() : nullptr;
  clear_groups(&groups_);
  return batch_;
}

}  // namespace gpujoin::service
