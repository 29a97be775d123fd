// An engine that joins in parts of a few rows each, whatever memory there is.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/joins/partitioned_nearest.h"

namespace gpujoin::test {

/// A join of an engine's table.
class TableJoin final : public Join {
 public:
  TableJoin(const EngineTable& engine, const JoinRequest& request) : engine_(engine) {
    const Status status = engine.open(&request, &join_);
    EXPECT_TRUE(status.ok()) << status.message;
  }
  ~TableJoin() override { engine_.close(join_); }
  Status next_batch(ResultBatch* batch) override { return engine_.next_batch(join_, batch); }
  void stats(JoinStats* stats) const override { engine_.stats(join_, stats); }

 private:
  const EngineTable& engine_;
  Join* join_ = nullptr;
};

/// Parts of a few rows each. Two pieces with more than `rows_that_fit` rows in all have no memory;
/// after `steps_that_fit` joins of parts, none have. With `lengths` parts are classes of them,
/// where a key is an interval.
class SmallParts final : public PartJoins {
 public:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static inline std::uint64_t rows = 100, rows_that_fit = kAll, steps_that_fit = kAll;
  static inline bool ahead = false;  ///< whether the next part is loaded meanwhile
  static inline std::vector<double> lengths;

  explicit SmallParts(const JoinRequest& request) : request_(request) {}

  Cut cut() override {
    if (request_.output() == Output::kNearest) return choose_nearest_cut(request_);
    const std::uint32_t intervals = request_.keys.intervals;
    if (!lengths.empty() && intervals != 0)
      return cut_by_length(request_,
                           {static_cast<std::uint32_t>(std::countr_zero(intervals)), lengths, 0});
    return choose_cut(request_, choose_strategy(request_), kCoreWalkCosts);
  }
  std::uint64_t part_rows() override { return rows; }
  bool loads_ahead() const override { return ahead && !request_.sides.in_file(); }
  std::unique_ptr<Join> open(const JoinRequest& part, std::shared_ptr<SideSlot>,
                             std::shared_ptr<SideSlot>) override {
    const bool fits =
        part.left().rows + part.right().rows <= rows_that_fit && steps_ < steps_that_fit;
    if (!fits && enforced_) throw MemoryLimitExceeded{2, 1};
    ++steps_;
    return std::make_unique<TableJoin>(*cpu_engine(), part);
  }
  void enforce_limits(bool enforced) override { enforced_ = enforced; }

 private:
  const JoinRequest request_;
  std::uint64_t steps_ = 0;
  bool enforced_ = true;
};

/// An engine that joins everything in such parts.
inline const EngineTable& engine_of_parts() {
  static EngineTable table = *cpu_engine();
  table.open = [](const JoinRequest* request, Join** join) -> Status {
    auto budget = std::make_shared<MemoryBudget>(0);
    auto parts = std::make_unique<SmallParts>(*request);
    if (request->output() == Output::kNearest)
      *join = new PartitionedNearest(*request, std::move(budget), std::move(parts));
    else
      *join = new PartitionedJoin(*request, std::move(budget), std::move(parts));
    return {};
  };
  table.next_batch = [](Join* join, ResultBatch* batch) -> Status {
    try {
      return join->next_batch(batch);
    } catch (const MemoryLimitExceeded&) {
      return {StatusCode::kMemoryLimit};
    }
  };
  table.stats = [](const Join* join, JoinStats* stats) { join->stats(stats); };
  table.close = [](Join* join) { delete join; };
  return table;
}

}  // namespace gpujoin::test
