#include "cpu/index/index_columns.h"

#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {

IndexColumns make_index_columns(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                                const ReferencePoints& references) {
  IndexColumns columns{&data, references.count, {}};
  columns.distances = Buffer<double>(budget, references.count * data.rows);
  if (references.count == 0) return columns;
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    reference_distances(references, data, first, end, columns.distances.data() + first, data.rows);
  });
  return columns;
}

}  // namespace gpujoin::cpu
