#include "cuda/shared_join.h"

#include <algorithm>
#include <utility>

#include "cuda/device/device_guard.h"
#include "cuda/device/tuning.h"
#include "cuda/nearest_join.h"

namespace gpujoin::cuda {
namespace {

/// Those of a row, besides its coordinates: its code, and its place in the order.
constexpr std::uint64_t kIndexBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

bool is_worth(const JoinRequest& request, double join_ms) {
  const Switch asked = request.knobs.share_devices;
  return asked == Switch::kAuto ? join_ms > kSharingMs : asked == Switch::kOn;
}

/// Beyond what it takes to prepare the sides once more, which the host does for one device after
/// the other.
double preparing_ms(const JoinRequest& request) {
  const double bytes = static_cast<double>(request.sides.rows()) * point_bytes(request.left());
  return bytes / kPreparedBytesPerMs;
}

}  // namespace

bool may_be_worth_sharing(const JoinRequest& request, const RangePlan& plan) {
  const double candidates = plan.candidates * static_cast<double>(request.left().rows);
  return is_worth(request, candidates / kWalkedCandidatesPerMs);
}

bool is_worth_sharing(const JoinRequest& request) {
  if (!request.sides.has_pairs()) return false;
  const double ms = request.shape() == Shape::kBoxes ? choose_box_strategy(request, kBoxCosts).ms
                                                     : nearest_ms(request);
  return is_worth(request, ms - preparing_ms(request));
}

Sharing sharing_of(const JoinRequest& request, const std::vector<DeviceContext*>& devices) {
  const DeviceContext& first = *devices.front();
  const bool direct = std::all_of(devices.begin(), devices.end(), [&](const DeviceContext* other) {
    return first.is_within_reach_of(*other);
  });
  const double bytes = static_cast<double>(request.sides.rows()) *
                       static_cast<double>(point_bytes(request.left()) + kIndexBytes);
  return {.always = request.knobs.share_devices == Switch::kOn,
          .least_ms = kSharingMs + bytes / (direct ? kReadBytesPerMs : kCopiedBytesPerMs)};
}

SharedJoin::SharedJoin(const JoinRequest& request, std::vector<DeviceContext*> devices,
                       const Sharing& sharing, OpenShare open, std::shared_ptr<JoinResources> begun)
    : request_(request),
      devices_(std::move(devices)),
      sharing_(sharing),
      open_(std::move(open)),
      begun_(std::move(begun)),
      host_(begun_ ? std::shared_ptr<HostBudget>(begun_, &begun_->host)
                   : std::make_shared<HostBudget>(request.resources.memory_limit,
                                                  devices_.front()->pinned_pool())) {
  if (gathers() && wants_counts(request.output()))
    counts_ = Buffer<std::uint64_t>(*host_, request.left().rows);
  if (request.output() == Output::kSums)
    sums_ = Buffer<FoldWord>(*host_, request.left().rows * row_words(*request.sums()));
  open_first_share();
}

SharedJoin::~SharedJoin() { close_shares(); }

/// With the device of that number current. False: it is left out, and shares_ has changed.
template <class Call>
bool SharedJoin::call(std::size_t number, const Call& made) {
  try {
    const DeviceGuard guard(devices_[number]->number());
    made();
    return true;
  } catch (const CudaError&) {
    cudaGetLastError();  // which the next launch, on another device, would report
    leave_out_or_throw(number);
  } catch (const Unable&) {
    leave_out_or_throw(number);
  } catch (const MemoryLimitExceeded&) {
    leave_out_or_throw(number);
  } catch (const std::bad_alloc&) {
    leave_out_or_throw(number);
  }
  return false;
}

/// Called while an exception is handled, which goes on where nobody can take the part over. What a
/// device has taken is begun again by the others, from the first place on; where it has taken
/// nothing, they go on.
void SharedJoin::leave_out_or_throw(std::size_t number) {
  const bool is_open = number < shares_.size();
  const bool has_begun = is_open && shares_[number].work.has_begun();
  if (devices_.size() == 1 || (delivered_ && has_begun)) throw;
  const auto at = static_cast<std::ptrdiff_t>(number);
  devices_.erase(devices_.begin() + at);
  work_.erase(work_.begin() + at);
  if (number == 0 || has_begun) return close_shares();
  if (!is_open) return;
  close(shares_[number]);
  shares_.erase(shares_.begin() + at);
}

void SharedJoin::open_first_share() {
  while (shares_.empty()) {
    forget_results();
    work_ = WorkShare::among(static_cast<std::uint32_t>(devices_.size()), sharing_);
    open_share();
  }
}

/// That of the first device that has none.
void SharedJoin::open_share() {
  const std::size_t number = shares_.size();
  call(number, [&] {
    DeviceContext& device = *devices_[number];
    auto resources =
        begun_ ? std::move(begun_) : std::make_shared<JoinResources>(device, request_, host_);
    const WorkShare& work = work_[number];
    shares_.push_back({&device, work, open_(std::move(resources), work), false});
  });
}

/// Also where a device cannot be reached any more.
void SharedJoin::close(Share& share) {
  try {
    const DeviceGuard guard(share.device->number());
    share.join.reset();
    share.device->give_back_unused();
  } catch (const CudaError&) {
    share.join.reset();
  }
}

/// The one that began is closed last: it has what others may use.
void SharedJoin::close_shares() {
  for (; !shares_.empty(); shares_.pop_back()) close(shares_.back());
}

/// Before any share is opened: nothing was found.
void SharedJoin::forget_results() {
  total_ = 0;
  next_ = 0;
  std::fill(counts_.begin(), counts_.end(), 0);
  if (request_.output() == Output::kSums) {
    const std::uint32_t width = row_words(*request_.sums());
    for (FoldWord* row = sums_.begin(); row < sums_.end(); row += width)
      clear_row(*request_.sums(), row);
  }
  if (request_.output() == Output::kTopPairs)
    top_ = std::make_unique<TopPairs>(*host_, request_, TopkMethod::kThreshold);
}

/// Whether the answers of the shares are put together before they are delivered. Clusters are the
/// first share's answer, which has what all have found.
bool SharedJoin::gathers() const {
  const Output::Kind output = request_.output();
  return (wants_counts(output) && output != Output::kClusters) || output == Output::kTotal ||
         output == Output::kTopPairs;
}

void SharedJoin::gather(const ResultBatch& batch) {
  if (request_.output() == Output::kTotal) {
    total_ += batch.pair_count;
  } else if (top_) {
    top_->add(request_, batch);
  } else {
    const std::uint32_t width = sums_.size() > 0 ? row_words(*request_.sums()) : 0;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const std::uint64_t row = batch.rows[i];
      counts_[row] += batch.counts[i];
      if (width > 0)
        merge_rows(*request_.sums(), sums_.data() + row * width, batch.sums + i * width);
    }
  }
}

/// After all shares have ended: the next part of what they add up to.
bool SharedJoin::deliver(ResultBatch* batch) {
  if (top_) {
    if (!top_batches_) {
      top_->finish();
      top_batches_ = std::make_unique<TopBatches>(*host_, request_, *top_);
    }
    return top_batches_->next(batch);
  }
  if (request_.output() == Output::kTotal) {
    *batch = {};
    batch->pair_count = total_;
    return !delivered_;
  }
  if (!gathers()) return false;
  if (!rows_) {
    RowBatches::FindSums sums;
    if (request_.output() == Output::kSums)
      sums = [this, width = row_words(*request_.sums())](std::uint64_t first, std::uint64_t) {
        return sums_.data() + first * width;
      };
    rows_.emplace(*host_, request_, kMostBatchPairs, std::move(counts_), std::move(sums));
  }
  if (!rows_->next(batch)) return false;
  shares_.front().join->name(batch);
  return true;
}

/// Whether there is work for one more share, and memory of the host: the first one has most of what
/// a share needs once it has found something.
bool SharedJoin::may_open() const {
  if (shares_.front().has_ended || shares_.size() == devices_.size()) return false;
  const bool delivers_last = gathers() || request_.output() == Output::kClusters;
  const bool is_asked = sharing_.always && work_[0].has_begun() && (delivered_ || delivers_last);
  const std::uint64_t limit = request_.resources.memory_limit;
  const std::uint64_t needed = host_->used() + host_->used() / shares_.size();
  return (work_[0].is_open() || is_asked) && (limit == 0 || needed <= limit);
}

/// Where the work is shared in any case, nobody goes on before all of them have begun, as far as
/// there is something left for them.
bool SharedJoin::has_turn(const Share& share) const {
  if (share.has_ended || share.join->waits()) return false;
  if (!sharing_.always || !share.work.has_begun()) return true;
  return std::all_of(shares_.begin(), shares_.end(), [](const Share& other) {
    return other.has_ended || other.work.has_begun() || other.join->waits();
  });
}

/// Looks after the shares in turn, once each. kBatch: *batch is to be delivered.
Progress SharedJoin::advance(ResultBatch* batch) {
  if (shares_.empty()) open_first_share();
  if (may_open()) open_share();
  if (shares_.empty()) return Progress::kSome;
  Progress all = Progress::kEnd;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const std::size_t number = next_++ % shares_.size();
    Share& share = shares_[number];
    if (!share.has_ended && all == Progress::kEnd) all = Progress::kNone;
    if (!has_turn(share)) continue;
    Progress progress = Progress::kSome;
    if (!call(number, [&] { progress = share.join->advance(batch); })) return Progress::kSome;
    share.has_ended = progress == Progress::kEnd;
    if (progress == Progress::kBatch) {
      shares_.front().join->name(batch);
      if (!gathers()) return progress;
      gather(*batch);
    }
    if (progress != Progress::kNone) all = Progress::kSome;
  }
  if (all == Progress::kEnd && deliver(batch)) return Progress::kBatch;
  return all;
}

Status SharedJoin::next_batch(ResultBatch* batch) {
  const Stopwatch watch;
  const Status status =
      wait_for_batch(request_.resources.interrupt, [&] { return advance(batch); });
  if (status.code != StatusCode::kInterrupted) spent_ms_ += watch.milliseconds();
  if (!status.ok()) return status;
  delivered_ = true;
  ++batches_;
  pairs_ += batch->pair_count;
  return status;
}

/// What all devices did, which work at the same time.
void SharedJoin::stats(JoinStats* stats) const {
  JoinStats sum{};
  for (const Share& share : shares_) {
    JoinStats one;
    share.join->stats(&one);
    if (sum.devices == 0) {
      sum = one;
    } else {
      sum.candidates += one.candidates;
      sum.rechecked += one.rechecked;
      sum.work_done += one.work_done;
      sum.index_ms = std::max(sum.index_ms, one.index_ms);
      sum.device_memory_peak = std::max(sum.device_memory_peak, one.device_memory_peak);
    }
    if (sum.devices < kMostDevices)
      sum.shares[sum.devices++] = {share.device->number(), one.candidates};
  }
  sum.batches = batches_;
  sum.pairs = pairs_;
  sum.join_ms = std::max(0.0, spent_ms_ - sum.index_ms);
  sum.memory_peak = host_->peak();
  if (sum.devices == 1) sum.devices = 0;  // nobody shared it
  *stats = sum;
}

}  // namespace gpujoin::cuda
