// The part that a join in parts wants next, on its way into memory while the parts before it are
// joined. It calls no engine: a device's turns and streams are not concerned.
#pragma once

#include <cstddef>
#include <thread>

#include "engine/joins/divided_side.h"

namespace gpujoin {

/// For one thread. Between begin() and take() or drop() nobody else calls load() of a side with the
/// same pool.
class PartAhead {
 public:
  PartAhead() = default;
  PartAhead(const PartAhead&) = delete;
  PartAhead& operator=(const PartAhead&) = delete;
  /// Waits, not for long where the pool is stopped.
  ~PartAhead() { drop(); }

  /// Begins to load a part of rows in memory in a thread of its own; nothing where it has begun
  /// already. Throws nothing: what goes wrong shows in take().
  void begin(const DividedSide& side, std::size_t number);

  /// Waits for the part that was begun, and sets *rows if it is this one. False: it is another one,
  /// which is dropped, or there was no memory, and the part is to be loaded as ever.
  bool take(const DividedSide& side, std::size_t number, RowCopy* rows);

  /// Waits, and forgets the part. False: there was none.
  bool drop();

 private:
  bool is_of(const DividedSide& side, std::size_t number) const {
    return side_ == &side && number_ == number;
  }

  const DividedSide* side_ = nullptr;  ///< null: none was begun
  std::size_t number_ = 0;
  bool loaded_ = false;
  RowCopy rows_;
  std::thread thread_;
};

}  // namespace gpujoin
