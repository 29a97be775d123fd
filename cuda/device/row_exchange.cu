#include <algorithm>
#include <utility>

#include "cuda/device/device_context.h"
#include "cuda/device/row_exchange.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

constexpr const char* kAction = "copying rows from device to device";

}  // namespace

bool can_exchange(const std::vector<DeviceContext*>& devices) {
  for (DeviceContext* const context : devices)
    for (const DeviceContext* const peer : devices)
      if (!context->let_in(*peer)) return false;
  return true;
}

RowExchange::Member::Member(std::shared_ptr<RowExchange> exchange, const DeviceContext& context,
                            unsigned char* rows, cudaStream_t stream)
    : exchange_(std::move(exchange)), device_(context.number()), rows_(rows), stream_(stream) {
  there_.record(stream_);
  for (Member* const other : exchange_->members_) {
    there_.hold(other->giving_);
    other->there_.hold(giving_);
  }
  exchange_->members_.push_back(this);
}

/// Also where a device cannot be reached any more.
RowExchange::Member::~Member() {
  std::vector<Member*>& members = exchange_->members_;
  for (const Member* const member : members) cudaStreamWaitEvent(stream_, member->given_, 0);
  members.erase(std::find(members.begin(), members.end(), this));
}

RowPiece RowExchange::Member::take() {
  RowExchange& all = *exchange_;
  const std::uint64_t most = std::max<std::uint64_t>(1, kExchangedBytes / all.row_bytes_);
  const RowPiece piece{all.next_, std::min(all.rows_ - all.next_, most)};
  all.next_ += piece.count;
  return piece;
}

void RowExchange::Member::give(const RowPiece& piece) {
  there_.record(stream_);
  there_.hold(giving_);
  const std::size_t begin = piece.first * exchange_->row_bytes_;
  for (const Member* const other : exchange_->members_) {
    if (other == this) continue;
    check(cudaMemcpyPeerAsync(other->rows_ + begin, other->device_, rows_ + begin, device_,
                              piece.count * exchange_->row_bytes_, giving_),
          kAction);
  }
  given_.record(giving_);
}

void RowExchange::Member::settle() const {
  for (const Member* const member : exchange_->members_) {
    member->given_.hold(stream_);
    given_.hold(member->stream_);
  }
}

}  // namespace gpujoin::cuda
