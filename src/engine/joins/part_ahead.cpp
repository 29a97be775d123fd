#include "engine/joins/part_ahead.h"

#include <exception>
#include <utility>

namespace gpujoin {

void PartAhead::begin(const DividedSide& side, std::size_t number) {
  if (is_of(side, number)) return;
  drop();
  try {
    thread_ = start_thread([this, &side, number] {
      try {
        rows_ = side.load(number);
        loaded_ = true;
      } catch (...) {  // whoever wants the part meets it again
      }
    });
    side_ = &side;
    number_ = number;
  } catch (const std::exception&) {  // no thread: the part is loaded in its turn
  }
}

bool PartAhead::take(const DividedSide& side, std::size_t number, RowCopy* rows) {
  if (!is_of(side, number)) {
    drop();
    return false;
  }
  thread_.join();
  side_ = nullptr;
  if (!std::exchange(loaded_, false)) return false;
  *rows = std::exchange(rows_, {});
  return true;
}

bool PartAhead::drop() {
  RowCopy dropped;
  if (side_ == nullptr) return false;
  take(*side_, number_, &dropped);
  return true;
}

}  // namespace gpujoin
