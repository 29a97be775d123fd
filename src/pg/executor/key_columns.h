// A key of one side's rows, computed from their values and written to where the engine finds it.
#pragma once

#include <cmath>
#include <cstdint>

#include "pg/executor/join_inputs.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_rows.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {

/// Columns of the scan tuple that the expressions use are shown as far as they are kept.
class KeyValues {
 public:
  KeyValues(JoinNode* node, const Side& side, int column, ExprState* state)
      : node_(node), side_(side), state_(state) {
    for (const Columns* const columns : {&side.shown, &side.tested})
      for (int i = 0; i < columns->count; ++i)
        if (columns->targets[i] == column) {
          columns_ = columns;
          at_ = i;
        }
  }

  /// The value of a row, which is there until the next call.
  Datum of(std::uint64_t row, bool* is_null) const {
    if (columns_ != nullptr) {
      const bool* nulls;
      const Datum* const values = fetch_row(columns_->rows, row, &nulls);
      *is_null = nulls[at_];
      return values[at_];
    }
    TupleTableSlot* const slot = node_->css.ss.ss_ScanTupleSlot;
    show(slot, side_.shown, row);
    show_tested(node_, const_cast<Side*>(&side_), row);
    ExprContext* const expressions = node_->css.ss.ps.ps_ExprContext;
    ResetExprContext(expressions);
    expressions->ecxt_scantuple = ExecStoreVirtualTuple(ExecClearTuple(slot));
    return ExecEvalExprSwitchContext(state_, expressions, is_null);
  }

  /// The key that key_of(value, is_null) makes of a row's value.
  template <class KeyOf>
  double key(std::uint64_t row, const KeyOf& key_of) const {
    bool is_null;
    const Datum value = of(row, &is_null);
    const MemoryContext caller = MemoryContextSwitchTo(node_->asked);
    const double key = key_of(value, is_null);
    MemoryContextSwitchTo(caller);
    return key;
  }

 private:
  JoinNode* node_;
  const Side& side_;
  ExprState* state_;
  const Columns* columns_ = nullptr;
  int at_ = 0;
};

/// A key of one side's points, on its way to where the engine finds it.
class KeyColumn {
 public:
  KeyColumn(JoinNode* node, int side, std::uint32_t number)
      : node_(node), work_(*node->pairs.keys), side_(side), number_(number) {
    Side& of = side == 0 ? node->left : node->right;
    points_ = &of.points;
    buffer_ = &of.buffer;
  }

  /// Sets the key of each point to key_of(row).
  template <class KeyOf>
  void fill(const KeyOf& key_of) {
    if (points_->file == nullptr) {
      double* const to = work_.columns[side_] + number_;
      const auto step = static_cast<std::uint32_t>(work_.column_count);
      for (std::uint64_t i = 0; i < points_->rows; ++i)
        to[i * step] = take(points_->ids[i], key_of);
      return;
    }
    const std::uint64_t chunks = chunk_count(*points_);
    double* keys = nullptr;
    resize_array(work_.context, &keys, rows_of_chunk(*points_, 0));
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const Dataset& loaded = load_points(buffer_, chunk);
      const std::uint64_t first = chunk << points_->chunk_bits;
      for (std::uint64_t i = 0; i < loaded.rows; ++i) {
        keys[i] = take(loaded.ids[i], key_of);
        sample(first + i, keys[i]);
      }
      work_.places[side_][number_ * chunks + chunk] =
          write_spill(&node_->pairs.run->spill, keys, loaded.rows * sizeof(double));
    }
    pfree(keys);
  }

 private:
  template <class KeyOf>
  double take(std::int64_t row, const KeyOf& key_of) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(node_->asked);  // types' functions leave copies of values there
    return key_of(static_cast<std::uint64_t>(row));
  }

  /// The sample of a file has every so many a point.
  void sample(std::uint64_t point, double key) {
    const Dataset& sample = work_.samples[side_];
    const std::uint64_t step = buffer_->sample.step, at = point / step;
    if (point % step == 0 && at < sample.rows)
      const_cast<double*>(sample.keys)[at * sample.key_columns + number_] = key;
  }

  JoinNode* node_;
  KeyWork& work_;
  int side_;
  std::uint32_t number_;
  const Dataset* points_;
  PointBuffer* buffer_;
};

/// Sets a key of one side's points to key_of(value, is_null).
template <class KeyOf>
void fill_column(JoinNode* node, const JoinKey& key, int side, std::uint32_t number,
                 const KeyOf& key_of) {
  const Side& of = side == 0 ? node->left : node->right;
  const KeyValues values(node, of, key.columns[side], key.values[side]);
  KeyColumn(node, side, number).fill([&](std::uint64_t row) { return values.key(row, key_of); });
  node->output.left_shown = kNoRow;
}

}  // namespace gpujoin
