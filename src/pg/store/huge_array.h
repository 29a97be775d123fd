// Arrays of plain values in a memory context, without palloc's limit of 1 GB.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {

/// Gives the array, or null, room for so many values. What it held stays.
template <class T>
void resize_array(MemoryContext context, T** array, std::uint64_t count) {
  const Size bytes = (count > 0 ? count : 1) * sizeof(T);
  *array = static_cast<T*>(*array == nullptr ? MemoryContextAllocHuge(context, bytes)
                                             : repalloc_huge(*array, bytes));
}

/// Makes sure that the array has room for one value more than `count`, by doubling.
template <class T>
void reserve_next(MemoryContext context, T** array, std::uint64_t count, std::uint64_t* room) {
  constexpr std::uint64_t kFirstRoom = 64;
  if (count < *room) return;
  *room = *room == 0 ? kFirstRoom : 2 * *room;
  resize_array(context, array, *room);
}

}  // namespace gpujoin
