// Which part of a join's work a device does: walks of one join on several devices take the places
// of its left side in turn, so that all of them end at about the same time. Whether several are
// worth it shows in the first walk's first places. Work may be several sequences of places, one
// after the other, where the walks have something to give each other in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/stopwatch.h"

namespace gpujoin {

/// Places first .. end - 1 of a sequence.
struct Places {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  std::uint32_t count() const { return end - first; }
};

/// Whether walks share their work: always, or where the rest of it is expected to take one walk so
/// many milliseconds.
struct Sharing {
  bool always = false;
  double least_ms = 0;
};

/// A walk's share of a sequence, which is the same for all walks that share it. Calls come from one
/// thread.
class WorkShare {
 public:
  /// All of the work.
  WorkShare() : WorkShare(std::make_shared<Work>(1, Sharing{}), 0) { settle(true); }
  /// So many shares of one work. The first walk begins with a few places; then it takes all the
  /// others, or the other walks may begin.
  static std::vector<WorkShare> among(std::uint32_t walks, const Sharing& sharing) {
    const auto work = std::make_shared<Work>(walks, sharing);
    std::vector<WorkShare> shares;
    for (std::uint32_t i = 0; i < walks; ++i) shares.push_back(WorkShare(work, i));
    return shares;
  }

  bool is_first() const { return number_ == 0; }
  bool is_all() const { return work_->begun.size() == 1; }
  /// Whether it is settled that no other walk takes places.
  bool is_alone() const { return is_all() || work_->by_one; }
  /// Whether the walk has taken places, of any sequence.
  bool has_begun() const { return work_->begun[number_]; }
  /// Whether the work is there for other walks than the first.
  bool is_open() const { return work_->decided && !work_->by_one; }

  /// The next places of a sequence of `all`, `most` of them at most, as multiples of `unit` but for
  /// the last. The walk is done with those that it took before. Where several walks share the work,
  /// a walk gets a part of the rest that leaves the others enough to do until it is done [guided
  /// self-scheduling]; no fewer places than keep a device busy, unless it is shared always.
  Places take(std::uint32_t all, std::uint32_t most, std::uint32_t unit = 1,
              std::uint32_t busy = 1) {
    if (!work_->decided && has_begun()) decide(all);
    if (is_first() && !has_begun()) work_->since_begun = Stopwatch();
    work_->begun[number_] = true;
    Sequence& places = sequence();
    places.at_work[number_] = true;
    const std::uint32_t rest = all - places.next;
    std::uint32_t wanted = rest;
    if (!work_->by_one) {
      const auto walks = static_cast<std::uint32_t>(work_->begun.size());
      wanted = std::max(work_->decided ? rest / (kParts * walks) : 0, all / (kPieces * walks));
      if (!work_->sharing.always) wanted = std::max(wanted, busy);
    }
    wanted = std::min(std::max(wanted, unit), std::max(most, unit));
    const std::uint32_t count = std::min(rest, wanted - wanted % unit);
    const Places taken{places.next, places.next + count};
    places.next = taken.end;
    return taken;
  }

  /// Whether all places of the sequence are taken.
  bool is_taken(std::uint32_t all) const { return sequence().next >= all; }

  /// Whether the walk has taken places of the sequence, and has not left it since.
  bool is_at_work() const { return sequence().at_work[number_]; }
  /// The walk takes no more places of the sequence, and what it found is there for the others.
  void leave() { sequence().at_work[number_] = false; }
  /// Whether all that is to be found of the sequence is there.
  bool is_over(std::uint32_t all) const {
    const std::vector<bool>& at_work = sequence().at_work;
    return is_taken(all) && std::find(at_work.begin(), at_work.end(), true) == at_work.end();
  }
  /// The walk's share of the sequence that comes after this one.
  WorkShare following() const {
    WorkShare share = *this;
    if (++share.sequence_ == work_->sequences.size())
      work_->sequences.emplace_back(work_->begun.size());
    return share;
  }

 private:
  /// A walk takes such a part of its share of the rest, but no smaller pieces than so many of all:
  /// they would leave a device idle.
  static constexpr std::uint32_t kParts = 8, kPieces = 64;

  struct Sequence {
    explicit Sequence(std::size_t walks) : at_work(walks, false) {}

    std::uint32_t next = 0;
    std::vector<bool> at_work;  ///< by walk
  };

  struct Work {
    Work(std::uint32_t walks, const Sharing& how)
        : sharing(how), begun(walks, false), sequences(1, Sequence(walks)) {}

    Sharing sharing;
    std::vector<bool> begun;  ///< by walk
    std::vector<Sequence> sequences;
    bool decided = false;   ///< whether walks share it
    bool by_one = false;    ///< they do not
    Stopwatch since_begun;  ///< by the first walk
  };

  WorkShare(std::shared_ptr<Work> work, std::uint32_t number)
      : work_(std::move(work)), number_(number) {}

  Sequence& sequence() const { return work_->sequences[sequence_]; }

  void settle(bool by_one) {
    work_->decided = true;
    work_->by_one = by_one;
  }

  /// After the first walk's first places.
  void decide(std::uint32_t all) {
    const Sharing& sharing = work_->sharing;
    const double done = std::max(1u, sequence().next);
    const double rest_ms = work_->since_begun.milliseconds() * (all - done) / done;
    settle(!sharing.always && rest_ms < sharing.least_ms);
  }

  std::shared_ptr<Work> work_;
  std::uint32_t number_;
  std::size_t sequence_ = 0;
};

}  // namespace gpujoin
