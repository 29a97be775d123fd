// An engine that joins in parts of a few rows each, whatever memory there is.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "engine/engine.h"
#include "engine/joins/partitioned_join.h"

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

/// Parts of a few rows each. `rows_that_fit`: two pieces with more rows in all have no memory.
class SmallParts final : public PartJoins {
 public:
  static inline std::uint64_t rows = 100, rows_that_fit = ~std::uint64_t{0};

  explicit SmallParts(const JoinRequest& request) : request_(request) {}

  Cut cut() override {
    return request_.shape() == gpujoin::Shape::kBoxes
               ? choose_box_cut(request_)
               : choose_cut(request_, choose_strategy(request_), kCoreWalkCosts);
  }
  std::uint64_t part_rows() override { return rows; }
  std::unique_ptr<Join> open(const JoinRequest& part, SideSlot*, SideSlot*) override {
    if (part.left().rows + part.right().rows > rows_that_fit) throw MemoryLimitExceeded{2, 1};
    return std::make_unique<TableJoin>(*cpu_engine(), part);
  }

 private:
  const JoinRequest request_;
};

/// An engine that joins everything in such parts.
inline const EngineTable& engine_of_parts() {
  static EngineTable table = *cpu_engine();
  table.open = [](const JoinRequest* request, Join** join) -> Status {
    *join = new PartitionedJoin(*request, std::make_shared<MemoryBudget>(0),
                                std::make_unique<SmallParts>(*request));
    return {};
  };
  table.next_batch = [](Join* join, ResultBatch* batch) { return join->next_batch(batch); };
  table.stats = [](const Join* join, JoinStats* stats) { join->stats(stats); };
  table.close = [](Join* join) { delete join; };
  return table;
}

}  // namespace gpujoin::test
