// Why a block's kept rows are the ones that every snapshot sees, where its all-visible bit is set
// in the map and the map page's LSN is the one that was kept.
//
// Setting a bit of a map page gives the page the LSN of a new record, under the page's exclusive
// lock (while RelationNeedsWAL()); clearing one does not. LSN and bits are read here under its
// share lock. So with the same LSN no bit has been set since the LSN was read that is kept, and a
// bit that is set now was set then and at all times between. A block's bit is cleared under the
// block's exclusive lock with whatever makes a tuple of it not visible to all, or any change but
// that of freezing what is all-visible (which leaves the rows as they are) and of row locks. So the
// block's tuples are the same since the map was read then, and visible to every snapshot
// (heap_blocks.cpp, 2.). The order makes rows of it: the map was read before the blocks were read,
// or found to be proven by their own LSNs, whose rows are kept with that LSN; so kept rows are
// those of the time in question, and as all tuples were visible to all, they are all the rows. A
// visit that comes after a change finds it, and the change cleared the bit after the map was read.
//
// Changes that are not seen here. The bit is read without the block's lock: a transaction may be
// changing the block now, its bit still set. It is not over for the snapshot at hand: what is over
// for it has cleared the bits before the snapshot was taken, which the locks of the list of running
// transactions make visible to this process. It is not the current transaction either, which does
// one thing after the other. So what it changes does not count.
// Truncation clears bits, or removes the page; blocks that come back have their bits set with a new
// LSN. A map that was removed by hand has no bits. LSN 0 proves nothing (see heap_blocks.cpp).
// A serializable transaction has to find a change that is under way: it visits all blocks.
// A version that gets blocks of two readings must not get the later map LSN of the two for blocks
// of the earlier one: then both are kept as 0.
#include "pg/reading/block_proof.h"

extern "C" {
#include "access/visibilitymap.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr std::uint64_t kWordBlocks = 64 / BITS_PER_HEAPBLOCK;
/// As visibilitymap.c lays out its pages.
constexpr std::uint64_t kMapBytes = BLCKSZ - MAXALIGN(SizeOfPageHeaderData);
constexpr std::uint64_t kPageBlocks = kMapBytes * 8 / BITS_PER_HEAPBLOCK;
constexpr std::uint64_t kPageWords = kMapBytes / sizeof(std::uint64_t);
static_assert(kMapBytes % sizeof(std::uint64_t) == 0);
#ifdef WORDS_BIGENDIAN
#error "blocks of a word of the visibility map are taken to go from its low bits up"
#endif
static_assert(BITS_PER_HEAPBLOCK == 2 && VISIBILITYMAP_ALL_VISIBLE == 1);
constexpr std::uint64_t kAllVisibleBits = 0x5555555555555555;

}  // namespace

MapReading read_map(const HeapBlocks& heap, const KeptBlocks& kept) {
  MapReading map = {};
  map.pages = (heap.count + kPageBlocks - 1) / kPageBlocks;
  map.known = std::min<std::uint64_t>(heap.count, kept.count);
  map.lsns = static_cast<std::uint64_t*>(palloc0(sizeof(std::uint64_t) * (map.pages + 1)));
  const std::uint64_t words = (map.known + kWordBlocks - 1) / kWordBlocks;
  map.word_count = words + 1;
  map.words = static_cast<std::uint64_t*>(
      MemoryContextAllocExtended(CurrentMemoryContext, sizeof(std::uint64_t) * map.word_count,
                                 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  Buffer buffer = InvalidBuffer;
  for (std::uint64_t page = 0; page < map.pages; ++page) {
    CHECK_FOR_INTERRUPTS();
    // Pins the page where there is one, and does not add it to the map as visibilitymap_pin() does.
    visibilitymap_get_status(heap.relation, static_cast<BlockNumber>(page * kPageBlocks), &buffer);
    if (!BufferIsValid(buffer)) break;
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    map.lsns[page] = BufferGetLSNAtomic(buffer);
    const std::uint64_t first = page * kPageWords;
    if (!heap.checks_conflicts && first < words && page < kept.map_pages &&
        map.lsns[page] != InvalidXLogRecPtr && map.lsns[page] == kept.map_lsns[page])
      std::memcpy(map.words + first, PageGetContents(BufferGetPage(buffer)),
                  sizeof(std::uint64_t) * std::min(kPageWords, words - first));
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
  }
  if (BufferIsValid(buffer)) ReleaseBuffer(buffer);
  return map;
}

BlockNumber next_unproven(const MapReading& map, BlockNumber block, BlockNumber end) {
  const std::uint64_t known = std::min<std::uint64_t>(map.known, end);
  std::uint64_t at = block;
  while (at < known) {
    const std::uint64_t shift = at % kWordBlocks * BITS_PER_HEAPBLOCK;
    const std::uint64_t unproven = (~map.words[at / kWordBlocks] & kAllVisibleBits) >> shift;
    if (unproven != 0) {
      at += static_cast<std::uint64_t>(__builtin_ctzll(unproven)) / BITS_PER_HEAPBLOCK;
      break;
    }
    at = (at / kWordBlocks + 1) * kWordBlocks;
  }
  // The last word may go beyond the blocks that are kept, and its bits there prove nothing.
  if (at >= known) at = std::max<std::uint64_t>(block, known);
  return static_cast<BlockNumber>(std::min<std::uint64_t>(at, end));
}

}  // namespace gpujoin
