// What an engine makes of the rows of one side before it joins them: points where the engine wants
// them, and their index. Joins borrow it, one after the other.
#pragma once

#include <memory>

namespace gpujoin {

/// Each engine has its own.
struct PreparedSide {
  virtual ~PreparedSide() = default;
};

/// Where a join of certain rows leaves what it has prepared, and where the next join of the same
/// rows, by the same plan, finds it.
using SideSlot = std::shared_ptr<PreparedSide>;

}  // namespace gpujoin
