// The rows of a dataset on their way to several devices: each device copies some pieces from the
// host over its own bus, and gives them to the other ones [GPU-Join, section 4.6].
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/device_context.h"
#include "cuda/device/memory.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// Rows first .. first + count - 1.
struct RowPiece {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Whether each of the devices can copy to all the others; from now on it may. Throws CudaError.
bool can_exchange(const std::vector<DeviceContext*>& devices);

/// Calls come from one thread. All members are there before one of them takes a piece.
class RowExchange {
 public:
  /// Of so many rows of so many bytes.
  RowExchange(std::uint64_t rows, std::size_t row_bytes) : rows_(rows), row_bytes_(row_bytes) {}
  RowExchange(const RowExchange&) = delete;
  RowExchange& operator=(const RowExchange&) = delete;

  /// Whether a member has taken a piece.
  bool has_begun() const { return next_ > 0; }

  /// A device's part in the exchange. Methods are asynchronous, and throw CudaError. The device is
  /// current.
  class Member {
   public:
    /// `rows` is device memory for all rows, [rows][row_bytes], allocated in the order of the
    /// stream, and freed so after the member has gone.
    Member(std::shared_ptr<RowExchange> exchange, const DeviceContext& context, unsigned char* rows,
           cudaStream_t stream);
    /// What is put into the stream from now on finds that nobody reads or writes the rows.
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    /// The next rows that this device is to copy; none: all are taken.
    RowPiece take();
    /// Gives the others the rows of a piece, which are there in the order of the stream.
    void give(const RowPiece& piece);
    /// After all are taken: what is put into the stream from now on finds all rows, and what is put
    /// into the others' streams finds the rows that this device has given.
    void settle() const;

   private:
    friend class RowExchange;

    std::shared_ptr<RowExchange> exchange_;
    const int device_;
    unsigned char* rows_;
    cudaStream_t stream_;
    Stream giving_;
    Event there_;  ///< the memory, and then the piece that is given next
    Event given_;  ///< all that this member has given
  };

 private:
  std::uint64_t rows_;
  std::size_t row_bytes_;
  std::uint64_t next_ = 0;
  std::vector<Member*> members_;
};

/// The rows of both sides of a join; of a self-join there are left ones alone.
struct SideExchange {
  explicit SideExchange(const JoinRequest& request)
      : left(exchange_of(request.left())),
        right(request.self_join() ? nullptr : exchange_of(request.right())) {}
  SideExchange() = default;

  static std::shared_ptr<RowExchange> exchange_of(const Dataset& data) {
    return std::make_shared<RowExchange>(data.rows, point_bytes(data));
  }

  std::shared_ptr<RowExchange> left, right;
};

}  // namespace gpujoin::cuda
