#include "allocation_hooks.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace gpujoin::test {
namespace {

constinit std::atomic<std::int64_t> live{0};
constinit std::atomic<bool> armed{false};
constinit std::atomic<bool> all_later{false};
constinit std::atomic<bool> has_failed{false};
constinit std::atomic<Throwing> thrown{Throwing::kBadAlloc};
constinit std::atomic<std::int64_t> until_failure{0};
constinit thread_local int exempt = 0;

bool fails_now() {
  if (!armed || exempt > 0) return false;
  const std::int64_t left = until_failure.fetch_sub(1);
  if (left > 0 || (left < 0 && !all_later)) return false;
  has_failed = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(size > 0 ? size : 1);
  } else if (posix_memalign(&memory, alignment, size > 0 ? size : 1) != 0) {
    memory = nullptr;
  }
  if (memory != nullptr) ++live;
  return memory;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment = 0) {
  void* const memory = allocate(size, alignment);
  if (memory == nullptr && thrown == Throwing::kLengthError) throw std::length_error("a test");
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) --live;
  std::free(memory);
}

}  // namespace

AllocationFailure::AllocationFailure(std::uint64_t nth, Failing failing, Throwing throwing) {
  thrown = throwing;
  until_failure = static_cast<std::int64_t>(nth);
  all_later = failing == Failing::kThisAndAllLater;
  has_failed = false;
  armed = true;
}

AllocationFailure::~AllocationFailure() { armed = false; }

bool AllocationFailure::happened() const { return has_failed; }

NoAllocationFailure::NoAllocationFailure() { ++exempt; }
NoAllocationFailure::~NoAllocationFailure() { --exempt; }

std::int64_t live_allocations() { return live; }

}  // namespace gpujoin::test

using gpujoin::test::allocate;
using gpujoin::test::allocate_or_throw;
using gpujoin::test::release;
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void* operator new(size_t size) { return allocate_or_throw(size); }
void* operator new[](size_t size) { return allocate_or_throw(size); }
void* operator new(size_t size, align_val_t at) { return allocate_or_throw(size, size_t(at)); }
void* operator new[](size_t size, align_val_t at) { return allocate_or_throw(size, size_t(at)); }
void* operator new(size_t size, const nothrow_t&) noexcept { return allocate(size, 0); }
void* operator new[](size_t size, const nothrow_t&) noexcept { return allocate(size, 0); }
void* operator new(size_t size, align_val_t at, const nothrow_t&) noexcept {
  return allocate(size, size_t(at));
}
void* operator new[](size_t size, align_val_t at, const nothrow_t&) noexcept {
  return allocate(size, size_t(at));
}

void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, align_val_t, const nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, align_val_t, const nothrow_t&) noexcept { release(memory); }
