// Searches of several clients in one table. On a device, one pass over the rows answers all
// searches that arrived during the pass before.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "service/running_join.h"

namespace gpujoin::service {

/// The rows nearest to one, in order.
struct SearchAnswer {
  std::vector<FoundRow> rows;
  const char* engine = "";
  std::uint64_t candidates = 0;  ///< a share of those of the whole batch
};

/// For all threads.
class SearchBatches {
 public:
  explicit SearchBatches(const Machine& machine) : machine_(machine) {}
  SearchBatches(const SearchBatches&) = delete;

  /// Answers a checked request for Output::nearest() with one left row; the datasets stay as they
  /// are meanwhile. kInterrupted: the client has gone. Throws Failure and std::bad_alloc.
  Status find(const JoinRequest& request, WantedEngine engine, Interrupt& interrupt,
              SearchAnswer* answer);

 private:
  struct Search;
  using Searches = std::list<std::shared_ptr<Search>>;
  using Lock = std::unique_lock<std::mutex>;

  /// Searches that one join can answer, one batch after another.
  struct Group {
    std::shared_ptr<const Search> like;
    Searches waiting;  ///< the first one leads the next batch
    bool at_work = false;
  };

  Status find_in_batch(const std::shared_ptr<Search>& search, Interrupt& interrupt);
  Group& group_of(const std::shared_ptr<Search>& search);
  void call_next(Group& group);
  Status lead(Group& group, Lock& lock, Interrupt& interrupt);
  Status answer(const Searches& batch, Interrupt& interrupt) const;

  const Machine machine_;
  std::mutex mutex_;  ///< guards what follows, and the states of searches
  std::list<Group> groups_;
};

}  // namespace gpujoin::service
