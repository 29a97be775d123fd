#include "pg/executor/divided_rows.h"

#include "pg/store/huge_array.h"

extern "C" {
#include "miscadmin.h"
}

namespace gpujoin {
namespace {

/// Where a group's first row is.
std::uint64_t begin_of(const GroupEnds& groups, std::uint64_t group) {
  return group == 0 ? 0 : groups.ends[group - 1];
}

void forget_groups(DividedRows* rows) {
  forget_points(&rows->some);
  if (rows->keys != nullptr) pfree(rows->keys);
  rows->keys = nullptr;
}

/// Adds rows of all, from the chunks of the file where they are, or from memory.
void add_rows(DividedRows* rows, PointBuffer* buffer, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t bytes = point_bytes(rows->all);
  for (std::uint64_t row = begin; row < end;) {
    CHECK_FOR_INTERRUPTS();
    const bool in_memory = rows->all.file == nullptr;
    const std::uint64_t number = in_memory ? 0 : row >> rows->all.chunk_bits;
    const std::uint64_t first = number << rows->all.chunk_bits;
    const Dataset& chunk = in_memory ? rows->all : load_points(buffer, number);
    for (; row < end && row - first < chunk.rows; ++row) {
      std::memcpy(add_point(&rows->some, chunk.ids[row - first]), point(chunk, row - first), bytes);
      if (chunk.scores != nullptr) set_score(&rows->some, chunk.scores[row - first]);
    }
  }
}

}  // namespace

void rewind_groups(DividedRows* rows) {
  forget_groups(rows);
  rows->next = 0;
  rows->before = {};
}

std::uint64_t held_bytes(const DividedRows& rows) {
  return rows.groups.room * sizeof(std::uint32_t) + held_bytes(rows.some) +
         (rows.keys != nullptr ? rows.some.rows * sizeof(double) : 0);
}

Dataset next_groups(DividedRows* rows, PointBuffer* buffer, std::uint64_t limit) {
  const GroupEnds& groups = rows->groups;
  forget_groups(rows);
  if (rows->next == groups.count) return {};
  const bool scored = has_scores(rows->all);
  const std::uint64_t row_bytes = point_bytes(rows->all) + sizeof(std::int64_t) +
                                  (scored ? 2 : 1) * sizeof(double);  // a key, and a score
  const std::uint64_t first = rows->next++, begin = begin_of(groups, first);
  while (rows->next < groups.count && (groups.ends[rows->next] - begin) * row_bytes <= limit)
    ++rows->next;
  PointBuffer& some = rows->some;
  some.context = buffer->context;
  some.source = buffer->source;
  some.limit = limit;
  some.scalar = rows->all.scalar;
  some.scored = scored;
  some.dims = rows->all.dims;
  some.spill = buffer->spill;
  some.spill->end = rows->end;
  add_rows(rows, buffer, begin, begin_of(groups, rows->next));
  Dataset data = finish_points(&some);
  if (rows->next - first == 1) return data;
  resize_array(some.context, &rows->keys, data.rows);
  for (std::uint64_t group = first; group < rows->next; ++group)
    std::fill(rows->keys + (begin_of(groups, group) - begin),
              rows->keys + (groups.ends[group] - begin), static_cast<double>(group - first));
  data.keys = rows->keys;
  data.key_columns = 1;
  return data;
}

}  // namespace gpujoin
