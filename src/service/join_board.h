// The joins at work, for those who look at them from other conversations.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <vector>

#include "service/running_join.h"

namespace gpujoin::service {

class JoinBoard {
 public:
  /// A conversation's place on the board, from its first word on a join to its end. For its thread.
  class Entry {
   public:
    explicit Entry(JoinBoard& board) : board_(board) {}
    ~Entry() { hide(); }
    Entry(const Entry&) = delete;

    /// Shows the conversation, where it is not shown yet: its client reads.
    void show(std::int32_t pid, std::uint32_t database);
    /// Shows what the join does from now on, until null. The join outlives that.
    void show(const RunningJoin* join);
    /// Takes the conversation off the board.
    void hide();

   private:
    friend class JoinBoard;

    JoinBoard& board_;
    bool shown_ = false;
    ListedJoin client_{};
    const RunningJoin* join_ = nullptr;
    std::list<Entry*>::iterator place_;
  };

  std::vector<ListedJoin> list() const;

 private:
  mutable std::mutex mutex_;
  std::list<Entry*> entries_;
};

}  // namespace gpujoin::service
