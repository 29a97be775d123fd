#include "service/search_batches.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

constexpr std::size_t kMostSearches = 128;  ///< of a batch: as many left rows as a tile has

/// Puts what the join finds into the answers of its left rows.
Status collect(RunningJoin& join, const std::vector<SearchAnswer*>& answers) {
  ResultBatch batch;
  Status status;
  while ((status = join.next(&batch)).ok())
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const auto left = static_cast<std::size_t>(batch.left_ids[batch.rows[i]]);
      for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at)
        answers[left]->rows.push_back({batch.right_ids[batch.neighbors[at]], batch.distances[at]});
    }
  if (status.code != StatusCode::kEnd) return status;
  JoinStats stats;
  join.stats(&stats);
  for (SearchAnswer* const answer : answers) {
    answer->engine = join.engine();
    answer->candidates = stats.candidates / answers.size();
  }
  return {};
}

/// Whether one join answers both, but for their left rows.
bool are_alike(const JoinRequest& a, const JoinRequest& b) {
  const Dataset &p = a.left(), &q = b.left();
  return a.right().key == b.right().key && p.dims == q.dims && p.scalar == q.scalar &&
         a.metric() == b.metric() && a.eps() == b.eps() && a.neighbors() == b.neighbors() &&
         a.knobs == b.knobs && a.resources.memory_limit == b.resources.memory_limit &&
         a.resources.device_memory_limit == b.resources.device_memory_limit &&
         a.resources.devices == b.resources.devices;
}

}  // namespace

/// Its client and the one that leads its batch share it: either may leave.
struct SearchBatches::Search {
  Search(const JoinRequest& asked, WantedEngine wanted)
      : request(asked),
        engine(wanted),
        row(static_cast<const unsigned char*>(asked.left().first_chunk),
            static_cast<const unsigned char*>(asked.left().first_chunk) +
                point_bytes(asked.left())) {}

  enum class State { kWaits, kLeads, kIsTaken, kIsDone };

  const JoinRequest request;
  const WantedEngine engine;
  const std::vector<unsigned char> row;  ///< the left one
  std::condition_variable changed;
  State state = State::kWaits;
  bool is_left = false;  ///< by its client
  SearchAnswer answer;
};

Status SearchBatches::find(const JoinRequest& request, WantedEngine engine, Interrupt& interrupt,
                           SearchAnswer* answer) {
  *answer = {};
  if (RunningJoin alone(machine_, interrupt, request, 0, engine);
      !alone.is_on_device() || request.right().key == DatasetKey{})
    return collect(alone, {answer});
  const auto search = std::make_shared<Search>(request, engine);
  const Status status = find_in_batch(search, interrupt);
  if (status.ok()) *answer = std::move(search->answer);
  return status;
}

Status SearchBatches::find_in_batch(const std::shared_ptr<Search>& search, Interrupt& interrupt) {
  using State = Search::State;
  Searches own(1, search);
  Lock lock(mutex_);
  Group& group = group_of(search);
  group.waiting.splice(group.waiting.end(), own);
  if (!group.at_work) call_next(group);
  while (search->state == State::kWaits || search->state == State::kIsTaken) {
    if (interrupt.cancelled()) {
      if (search->state == State::kWaits) group.waiting.remove(search);
      search->is_left = true;
      return {StatusCode::kInterrupted};
    }
    search->changed.wait_for(lock, std::chrono::milliseconds(kPollMs));
  }
  return search->state == State::kLeads ? lead(group, lock, interrupt) : Status{};
}

SearchBatches::Group& SearchBatches::group_of(const std::shared_ptr<Search>& search) {
  for (Group& group : groups_)
    if (group.like->engine == search->engine && are_alike(group.like->request, search->request))
      return group;
  groups_.push_back({search, {}});
  return groups_.back();
}

/// Has the next one lead. Without one the group goes.
void SearchBatches::call_next(Group& group) {
  group.at_work = !group.waiting.empty();
  if (group.at_work) {
    Search& next = *group.waiting.front();
    next.state = Search::State::kLeads;
    next.changed.notify_one();
  } else {
    groups_.remove_if([&](const Group& other) { return &other == &group; });
  }
}

/// Answers the waiting searches; the first of them is the leader. If that fails, or the leader's
/// client has gone, the others wait again, and the next one leads.
Status SearchBatches::lead(Group& group, Lock& lock, Interrupt& interrupt) {
  using State = Search::State;
  Searches batch;
  const auto count = static_cast<std::ptrdiff_t>(std::min(group.waiting.size(), kMostSearches));
  batch.splice(batch.end(), group.waiting, group.waiting.begin(),
               std::next(group.waiting.begin(), count));
  for (const auto& search : batch) search->state = State::kIsTaken;
  lock.unlock();
  const Status status = guarded([&] { return answer(batch, interrupt); });
  lock.lock();
  for (const auto& search : batch) {
    search->state = status.ok() ? State::kIsDone : State::kWaits;
    search->changed.notify_one();
  }
  if (!status.ok()) {
    batch.pop_front();
    batch.remove_if([](const auto& search) { return search->is_left; });
    group.waiting.splice(group.waiting.begin(), batch);
  }
  call_next(group);
  return status;
}

Status SearchBatches::answer(const Searches& batch, Interrupt& interrupt) const {
  std::vector<unsigned char> rows;
  std::vector<SearchAnswer*> answers;
  for (const auto& search : batch) {
    rows.insert(rows.end(), search->row.begin(), search->row.end());
    search->answer = {};
    answers.push_back(&search->answer);
  }
  const Search& first = *batch.front();
  JoinRequest request = first.request;
  Dataset left = request.left();
  left.first_chunk = rows.data();
  left.rows = batch.size();
  request.sides = request.sides.with_rows(left, request.right());
  RunningJoin join(machine_, interrupt, request, 0, first.engine);
  return collect(join, answers);
}

}  // namespace gpujoin::service
