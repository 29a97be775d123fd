// Failing and counting of memory allocations: allocation_hooks.cpp replaces the global operators
// new and delete of the test program by ones that obey what stands here.
#pragma once

#include <cstdint>

namespace gpujoin::test {

/// Which allocations fail, counted over all threads from the construction of an AllocationFailure.
enum class Failing { kOnlyThis, kThisAndAllLater };

/// What fails: memory is out, or something that nobody expects is thrown.
enum class Throwing { kBadAlloc, kLengthError };

/// While one lives, allocation number `nth` (from 0) fails, on whatever thread it is. One at a
/// time.
class AllocationFailure {
 public:
  AllocationFailure(std::uint64_t nth, Failing failing, Throwing throwing = Throwing::kBadAlloc);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  /// Whether an allocation was made to fail.
  bool happened() const;
};

/// While one lives, allocations of this thread neither fail nor count.
class NoAllocationFailure {
 public:
  NoAllocationFailure();
  ~NoAllocationFailure();
  NoAllocationFailure(const NoAllocationFailure&) = delete;
  NoAllocationFailure& operator=(const NoAllocationFailure&) = delete;
};

/// Allocations made and not yet freed, in the whole program.
std::int64_t live_allocations();

}  // namespace gpujoin::test
