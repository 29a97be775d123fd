// Some rows of a dataset as a dataset of their own, wherever there is room for them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/joins/file_rows.h"
#include "engine/request/buffer.h"
#include "engine/request/row_copy.h"

namespace gpujoin {

/// They are named by their positions in the whole dataset, and have no scores and keys. Of data in
/// memory it is a copy. Of data in a file it is a copy as well, where they need no more than
/// `memory`; otherwise it lies in the file. Then they are in the order of the dataset.
class ChosenRows {
 public:
  ChosenRows() = default;
  /// `data`, which has no keys, and `scratch`, which is for data in a file, outlive this; the list
  /// of rows need not. Throws what Buffer throws.
  ChosenRows(MemoryBudget& budget, const Dataset& data, const std::uint32_t* rows,
             std::uint64_t count, std::uint64_t memory, const RowFile* scratch);

  /// Brings some more of them there, in some milliseconds; false: all are there. Throws
  /// RowFileFailed.
  bool step();
  /// Afterwards. It refers to this, which may be moved.
  Dataset view() const;

 private:
  bool is_chosen(std::uint64_t row) const { return (chosen_[row / 64] >> row % 64 & 1) != 0; }
  void take(std::uint64_t row, std::uint64_t position);
  void flush();

  const Dataset* data_ = nullptr;  ///< of a file
  const RowFile* scratch_ = nullptr;
  std::uint64_t count_ = 0;
  RowCopy rows_;                       ///< all of them, or those that go to the file next
  std::uint64_t taken_ = 0;            ///< of rows_
  Buffer<std::uint64_t> chosen_;       ///< a bit for each row of the file
  RowCopy chunk_;                      ///< of the file
  std::uint64_t next_chunk_ = 0;       ///< of the file
  bool in_file_ = false;               ///< they go there
  std::vector<std::uint64_t> places_;  ///< of their chunks
};

}  // namespace gpujoin
