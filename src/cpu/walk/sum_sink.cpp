#include "cpu/walk/sum_sink.h"

#include "cpu/scan/sum_scan.h"
#include "cpu/walk/batch_writer.h"

namespace gpujoin::cpu {
namespace {

/// Columns by row, in the order of the index.
template <class T>
Buffer<T> order_columns(MemoryBudget& budget, std::uint32_t columns, const T* const* by_row,
                        const GridIndex& index) {
  const std::uint64_t points = index.rows.size();
  Buffer<T> ordered(budget, columns * points + kTilePoints);
  for (std::uint32_t c = 0; c < columns; ++c)
    for (std::uint64_t position = 0; position < points; ++position)
      ordered[c * points + position] = by_row[c][index.rows[position]];
  return ordered;
}

// The folds of core/pair_value.h over many values, in registers.

void fold_integers(Fold fold, FoldWord* words, const std::int64_t* integers,
                   const std::uint32_t* right, std::uint32_t count) {
  FoldWord result = *words;
  if (fold == Fold::kSum)
    for (std::uint32_t i = 0; i < count; ++i)
      result.number += static_cast<std::uint64_t>(integers[right[i]]);
  else if (fold == Fold::kLeast)
    for (std::uint32_t i = 0; i < count; ++i)
      result.integer = lesser(result.integer, integers[right[i]]);
  else
    for (std::uint32_t i = 0; i < count; ++i)
      result.integer = greater(result.integer, integers[right[i]]);
  *words = result;
}

void fold_values(Fold fold, FoldWord* words, const double* values, std::uint32_t count) {
  if (fold != Fold::kSumOf) {
    for (std::uint32_t i = 0; i < count; ++i)
      if (values[i] == values[i]) fold_value(fold, words, values[i]);
    return;
  }
  DoubleSum sum{words[0].real, words[1].real};
  add_values(values, count, &sum);
  words[0].real = sum.high;
  words[1].real = sum.low;
}

}  // namespace

SumColumns::SumColumns(MemoryBudget& budget, const PairSums& asked, const GridIndex& left_index,
                       const GridIndex& right_index)
    : sums(asked),
      left_points(left_index.rows.size()),
      right_points(right_index.rows.size()),
      left(order_columns(budget, asked.left_columns, asked.left, left_index)),
      right(order_columns(budget, asked.right_columns, asked.right, right_index)),
      integers(order_columns(budget, asked.integer_columns, asked.integers, right_index)) {}

SumTable::SumTable(MemoryBudget& budget, const PairSums& sums, std::uint64_t left_points)
    : sums_(sums),
      width_(row_words(sums)),
      counts_(budget, left_points),
      words_(budget, left_points * width_) {
  std::fill(counts_.begin(), counts_.end(), 0);
  for (std::uint64_t left = 0; left < left_points; ++left)
    clear_row(sums, words_.data() + left * width_);
}

void SumTable::add(std::uint32_t left, std::uint64_t pairs, const FoldWord* words) {
  std::atomic_flag& lock = locks_[left % kLocks];
  while (lock.test_and_set(std::memory_order_acquire)) {
  }
  counts_[left] += pairs;
  merge_rows(sums_, words_.data() + std::uint64_t{left} * width_, words);
  lock.clear(std::memory_order_release);
}

SumAccount::SumAccount(const SumColumns& columns, SumTable& table)
    : columns_(columns), table_(table) {
  const PairSums& sums = columns.sums;
  clear_row(sums, words_);
  if (!takes_spread(sums)) return;
  const auto add = [&](std::uint32_t program, const double* column) {
    plain_of_[program] = static_cast<std::uint32_t>(plain_.size());
    plain_.push_back({column, no_sum(), 0});
  };
  for (std::uint32_t p = 0; p < sums.programs; ++p) {
    if (sums.program[p].steps[0] != ValueStep::kDistance) continue;
    plain_of_[p] = 0;
    if (plain_.empty()) add(p, nullptr);
  }
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    if (sums.program[p].steps[0] == ValueStep::kRight)
      add(p, columns.right_numbers(sums.program[p].columns[0]));
}

void SumAccount::flush() {
  if (pairs_ == 0) return;
  table_.add(left_, pairs_, words_);
  pairs_ = 0;
  clear_row(columns_.sums, words_);
}

void SumAccount::turn_to(std::uint32_t left) {
  if (left != left_) flush();
  left_ = left;
}

void SumAccount::take(const PairRun& run) {
  turn_to(run.left);
  pairs_ += run.count;
  for (std::uint64_t at = 0; at < run.count; at += kChunk)
    take_chunk(run.right + at, run.distances != nullptr ? run.distances + at : nullptr,
               static_cast<std::uint32_t>(std::min<std::uint64_t>(kChunk, run.count - at)));
}

void SumAccount::take(std::uint32_t left, std::uint64_t number, const SpreadPairs& pairs,
                      bool squared) {
  turn_to(left);
  pairs_ += number;
  const PairSums& sums = columns_.sums;
  for (PlainSum& plain : plain_) plain = {plain.column, no_sum(), 0};
  add_up(pairs, squared, plain_.data(), plain_.size());
  FoldWord* words = words_ + 1;
  for (std::uint32_t m = 0; m < sums.measures; words += words_of(sums.measure[m++].fold)) {
    const auto [fold, operand] = sums.measure[m];
    if (fold == Fold::kSum) {
      words->number += sum_integers(pairs, columns_.integers_of(operand));
      continue;
    }
    const PlainSum& plain = plain_[plain_of_[operand]];
    FoldWord found[2];
    if (fold == Fold::kCountOf) {
      found[0].number = plain.column == nullptr ? number : plain.numbers;
    } else {
      found[0].real = plain.sum.high;
      found[1].real = plain.sum.low;
    }
    merge_fold(fold, words, found);
  }
}

/// The program's values, NaN where they are NULL or out of range. Counts the ones out of range.
const double* SumAccount::compute(const ValueProgram& program, const std::uint32_t* right,
                                  const double* distances, std::uint32_t count) {
  std::uint32_t depth = 0;
  if (program.count == 1 && program.steps[0] == ValueStep::kDistance) return distances;
  for (std::uint32_t step = 0; step < program.count; ++step) {
    const ValueStep kind = program.steps[step];
    const std::uint32_t column = program.columns[step];
    if (kind == ValueStep::kDistance) {
      std::copy_n(distances, count, stack_[depth++]);
    } else if (kind == ValueStep::kLeft) {
      std::fill_n(stack_[depth++], count, columns_.left_number(column, left_));
    } else if (kind == ValueStep::kRight) {
      const double* const numbers = columns_.right_numbers(column);
      double* const to = stack_[depth++];
      for (std::uint32_t i = 0; i < count; ++i) to[i] = numbers[right[i]];
    } else {
      if (takes_two(kind)) --depth;
      double* const a = stack_[depth - 1];
      const double* const b = takes_two(kind) ? stack_[depth] : a;
      for (std::uint32_t i = 0; i < count; ++i) {
        bool leaves;
        a[i] = operate(kind, a[i], b[i], &leaves);
        if (!leaves) continue;
        ++words_[0].number;
        a[i] = NAN;
      }
    }
  }
  return stack_[0];
}

void SumAccount::take_chunk(const std::uint32_t* right, const double* distances,
                            std::uint32_t count) {
  const PairSums& sums = columns_.sums;
  FoldWord* words = words_ + 1;
  std::uint32_t computed = sums.programs;  // none
  const double* values = nullptr;
  for (std::uint32_t m = 0; m < sums.measures; words += words_of(sums.measure[m++].fold)) {
    const auto [fold, number] = sums.measure[m];
    if (!computes(fold)) {
      fold_integers(fold, words, columns_.integers_of(number), right, count);
      continue;
    }
    if (number != computed) values = compute(sums.program[number], right, distances, count);
    computed = number;
    fold_values(fold, words, values, count);
  }
}

bool takes_spread(const PairSums& sums) {
  return std::all_of(sums.measure, sums.measure + sums.measures, [&](const Measure& measure) {
    if (!computes(measure.fold)) return measure.fold == Fold::kSum;
    const ValueProgram& program = sums.program[measure.number];
    return (measure.fold == Fold::kSumOf || measure.fold == Fold::kCountOf) && program.count == 1 &&
           program.steps[0] != ValueStep::kLeft;
  });
}

void write_sums(const JoinPlan& plan, const WalkTools& tools, const SumTable& table) {
  WalkProgress progress(tools.tally);
  BatchWriter writer(tools.queue, progress, plan.batch_entries);
  for (std::uint64_t position = 0; position < plan.left->rows.size(); ++position)
    writer.add_sums(static_cast<std::uint32_t>(position), table.pairs(position),
                    table.words(position), table.width());
  writer.flush();
}

}  // namespace gpujoin::cpu
