#include "engine/request/pair_sums.h"

namespace gpujoin {
namespace {

bool is_well_formed(const PairSums& sums, const ValueProgram& program) {
  if (!is_well_formed(program)) return false;
  for (std::uint32_t i = 0; i < program.count; ++i) {
    const ValueStep step = program.steps[i];
    const std::uint32_t columns = step == ValueStep::kLeft    ? sums.left_columns
                                  : step == ValueStep::kRight ? sums.right_columns
                                                              : ~0u;
    if (program.columns[i] >= columns) return false;
  }
  return true;
}

}  // namespace

bool is_well_formed(const PairSums& sums) {
  if (sums.programs > kMostPrograms || sums.measures > kMostMeasures ||
      row_words(sums) > kMostSumWords)
    return false;
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    if (!is_well_formed(sums, sums.program[p])) return false;
  for (std::uint32_t i = 0; i < sums.measures; ++i) {
    const Measure& measure = sums.measure[i];
    if (measure.number >= (computes(measure.fold) ? sums.programs : sums.integer_columns))
      return false;
  }
  return true;
}

}  // namespace gpujoin
