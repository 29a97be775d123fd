#include "engine_harness.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

#include "allocation_hooks.h"
#include "chosen_devices.h"
#include "engine/load_engine.h"
#include "engine/strategy/box_strategy.h"

namespace gpujoin::test {
namespace {

const char* name_of(PairSelection pairs) {
  return pairs == PairSelection::kAll        ? "all"
         : pairs == PairSelection::kDistinct ? "distinct"
                                             : "unordered";
}

const char* name_of(Output::Kind output) {
  switch (output) {
    case Output::kPairs:
      return "pairs";
    case Output::kPairsWithDistances:
      return "distances";
    case Output::kCountPerRow:
      return "counts";
    case Output::kTopPairs:
      return "top pairs";
    case Output::kNearest:
      return "nearest";
    case Output::kClusters:
      return "clusters";
    case Output::kDuplicates:
      return "duplicates";
    case Output::kSpanningTree:
      return "spanning tree";
    case Output::kStableClusters:
      return "stable clusters";
    default:
      return "total";
  }
}

const char* name_of(WorkOrder order) {
  return order == WorkOrder::kAuto     ? "auto"
         : order == WorkOrder::kNone   ? "none"
         : order == WorkOrder::kSorted ? "sorted"
                                       : "queue";
}

const char* name_of(Switch value) {
  return value == Switch::kAuto ? "auto" : value == Switch::kOn ? "on" : "off";
}

/// Counts by id: which of several rows with one id a count belongs to is not told by ids alone.
std::map<std::int64_t, std::uint64_t> by_id(const std::vector<RowCount>& counts) {
  std::map<std::int64_t, std::uint64_t> sums;
  for (const RowCount& row : counts) sums[row.id] += row.count;
  return sums;
}

testing::AssertionResult same_pairs(const std::vector<FoundPair>& got,
                                    const std::vector<FoundPair>& expected) {
  if (got == expected) return testing::AssertionSuccess();
  testing::AssertionResult failure = testing::AssertionFailure();
  failure << got.size() << " pairs where the oracle has " << expected.size();
  const auto [g, e] = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
  if (g != got.end())
    failure << "; got (" << g->id1 << ", " << g->id2 << ", " << g->distance << ")";
  if (e != expected.end())
    failure << "; expected (" << e->id1 << ", " << e->id2 << ", " << e->distance << ")";
  return failure;
}

/// Up to a hundred ids of each array, spread over it.
std::vector<std::int64_t> some_ids(const IdsSeen& ids) {
  std::vector<std::int64_t> some;
  for (int side = 0; side < 2; ++side)
    for (std::uint64_t i = 0; i < ids.counts[side]; i += 1 + ids.counts[side] / 100)
      some.push_back(ids.arrays[side][i]);
  return some;
}

/// That positions are below the counts of ids, and that a generation's ids stay as they are.
void check_ids(const ResultBatch& batch, IdsSeen* before) {
  IdsSeen ids{batch.ids_generation,
              {batch.left_ids, batch.right_ids},
              {batch.left_id_count, batch.right_id_count},
              {}};
  ids.some = some_ids(ids);
  ASSERT_GT(ids.generation, 0u);
  const std::uint64_t rows = ids.counts[batch.transposed], others = ids.counts[!batch.transposed];
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    ASSERT_LT(batch.rows[i], rows);
    if (batch.counts != nullptr) continue;
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at)
      ASSERT_LT(batch.neighbors[at], others);
  }
  if (ids.generation == before->generation) {
    for (int side = 0; side < 2; ++side) {
      ASSERT_EQ(ids.arrays[side], before->arrays[side]);
      ASSERT_EQ(ids.counts[side], before->counts[side]);
    }
    ASSERT_EQ(ids.some, before->some);
  }
  *before = std::move(ids);
}

/// That a row's neighbours come by (distance, id).
void check_order(const ResultBatch& batch) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    for (std::uint64_t at = batch.entry(i) + 1; at < batch.entry(i + 1); ++at) {
      const auto rank = [&](std::uint64_t entry) {
        return std::pair(batch.distances[entry], batch.right_ids[batch.neighbors[entry]]);
      };
      ASSERT_LE(rank(at - 1), rank(at));
    }
}

void collect_pairs(const JoinRequest& request, const ResultBatch& batch, RunResult* result) {
  const bool top = request.output() == Output::kTopPairs;
  for (std::uint64_t i = 0; i < batch.row_count; ++i)
    ASSERT_LE(batch.offsets[i], batch.offsets[i + 1]);
  ASSERT_EQ(batch.distances != nullptr || batch.pair_count == 0,
            wants_distances(request.output()) || batch.pair_count == 0);
  if (top) {
    ASSERT_EQ(batch.row_count, batch.pair_count);
    ASSERT_FALSE(batch.mirrored);
  }
  if (request.output() == Output::kNearest) {
    ASSERT_FALSE(batch.mirrored || batch.transposed);
    check_order(batch);
  }
  PairCursor cursor;
  cursor.start(batch, request.orders_pairs());
  const std::size_t before = result->pairs.size();
  IdPair pair{};
  while (cursor.next(&pair)) {
    if (batch.distances == nullptr) pair.distance = 0;
    result->pairs.push_back({pair.id1, pair.id2, pair.distance});
  }
  ASSERT_EQ(result->pairs.size() - before, batch.pair_count);
}

/// The same engine, whose joins are on the devices of the environment.
const EngineTable* with_chosen_devices(const EngineTable* engine) {
  static const EngineTable* const on = engine;
  static EngineTable table = *engine;
  table.open = [](const JoinRequest* request, Join** join) {
    const JoinRequest chosen = on_chosen_devices(*request);
    return on->open(&chosen, join);
  };
  return &table;
}

const EngineTable* cuda_engine() {
  const char* const path = std::getenv("GPUJOIN_CUDA_ENGINE");
  if (path == nullptr) return nullptr;
  const EngineTable* engine = nullptr;
  Status status = load_engine(path, "cuda", &engine);
  if (!status.ok()) throw std::runtime_error(status.message);
  DeviceInfo device;
  std::uint32_t devices = 0;
  status = engine->probe(&device, 1, &devices);
  if (!status.ok()) throw std::runtime_error(status.message);
  return with_chosen_devices(engine);
}

Output output_of(Output::Kind kind) {
  switch (kind) {
    case Output::kPairs:
      return Output::pairs();
    case Output::kPairsWithDistances:
      return Output::pairs_with_distances();
    case Output::kCountPerRow:
      return Output::count_per_row();
    case Output::kTotal:
      return Output::total();
    default:
      throw std::logic_error("top pairs are asked for by a Top");
  }
}

BoxOutput box_output_of(Output::Kind kind) {
  if (kind != Output::kPairs && kind != Output::kTotal)
    throw std::logic_error("boxes have no such output");
  return kind == Output::kTotal ? BoxOutput::kTotal : BoxOutput::kPairs;
}

}  // namespace

void ask(JoinRequest& request, Output::Kind output) {
  if (request.shape() == gpujoin::Shape::kPoints) {
    request = request.asking(output_of(output));
    return;
  }
  JoinRequest boxes(request.sides, BoxesWithin{request.metric(), request.eps()},
                    box_output_of(output));
  boxes.resources = request.resources;
  boxes.knobs = request.knobs;
  request = boxes;
}

void select(JoinRequest& request, PairSelection pairs) {
  if (request.self_join())
    request.sides = Sides::one(request.left(), pairs);
  else if (pairs != PairSelection::kAll)
    throw std::logic_error("joins of two datasets know all pairs only");
}

void expect_no_leak(const EngineTable& engine, std::int64_t before) {
  if (!is_device(engine)) {
    EXPECT_EQ(live_allocations(), before);
  }
}

std::vector<const EngineTable*> engines() {
  static const EngineTable* const cuda = cuda_engine();
  std::vector<const EngineTable*> list{cpu_engine()};
  if (cuda != nullptr) list.push_back(cuda);
  return list;
}

std::vector<const EngineTable*> devices() {
  std::vector<const EngineTable*> list = engines();
  std::erase_if(list, [](const EngineTable* engine) { return !is_device(*engine); });
  if (list.empty()) list.push_back(nullptr);
  return list;
}

void collect(const JoinRequest& request, const ResultBatch& batch, RunResult* result) {
  ++result->batches;
  result->total += batch.pair_count;
  result->largest_batch = std::max(result->largest_batch, batch.pair_count);
  if (request.output() == Output::kTotal) return;
  check_ids(batch, &result->ids);  // ASSERT_NO_FATAL_FAILURE would keep memory of its own
  if (testing::Test::HasFatalFailure()) return;
  if (!wants_counts(request.output())) {
    collect_pairs(request, batch, result);
    return;
  }
  std::uint64_t sum = 0;
  const std::uint32_t width = request.sums() != nullptr ? row_words(*request.sums()) : 0;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    std::vector<std::uint64_t>& words = result->sums[batch.left_ids[batch.rows[i]]];
    for (std::uint32_t w = 0; w < width; ++w) words.push_back(batch.sums[i * width + w].number);
    result->counts.push_back({batch.left_ids[batch.rows[i]], batch.counts[i]});
    sum += batch.counts[i];
  }
  ASSERT_EQ(request.output() == Output::kClusters ? 0 : sum, batch.pair_count);
}

RunResult run_join(const EngineTable& engine, const JoinRequest& request, volatile int* interrupt) {
  RunResult result;
  Join* join = nullptr;
  result.status = engine.open(&request, &join);
  if (!result.status.ok()) {
    EXPECT_EQ(join, nullptr) << "a failed open left a join behind";
    return result;
  }
  for (;;) {
    ResultBatch batch{};
    result.status = engine.next_batch(join, &batch);
    if (result.status.code == StatusCode::kInterrupted && interrupt != nullptr) {
      ++result.interruptions;
      *interrupt = 0;
      continue;
    }
    if (!result.status.ok()) break;
    collect(request, batch, &result);
    if (testing::Test::HasFatalFailure()) break;
  }
  engine.stats(join, &result.stats);
  engine.close(join);
  sort_result(request, &result);
  return result;
}

void sort_result(const JoinRequest& request, RunResult* result) {
  if (request.output() != Output::kTopPairs && request.output() != Output::kSpanningTree)
    std::sort(result->pairs.begin(), result->pairs.end());
  std::sort(result->counts.begin(), result->counts.end());
}

testing::AssertionResult matches_oracle(const RunResult& result, const JoinRequest& request,
                                        const Oracle& oracle) {
  if (result.status.code != StatusCode::kEnd)
    return testing::AssertionFailure() << "status " << static_cast<int>(result.status.code) << ": "
                                       << result.status.message << "\n  " << describe(request);
  testing::AssertionResult same = testing::AssertionSuccess();
  if (request.one_suffices()) {
    const auto matched = [](const std::vector<RowCount>& counts) {
      auto sums = by_id(counts);
      for (auto& [id, count] : sums) count = std::min<std::uint64_t>(count, 1);
      return sums;
    };
    if (matched(result.counts) == matched(oracle.counts(request.pairs()))) return same;
    return testing::AssertionFailure() << "other rows have pairs\n  " << describe(request);
  }
  if (request.output() == Output::kClusters) {
    if (result.counts == oracle.clusters(request.min_points(), request.borders())) return same;
    return testing::AssertionFailure() << "other clusters\n  " << describe(request);
  }
  const bool top = request.output() == Output::kTopPairs;
  const bool nearest = request.output() == Output::kNearest;
  const std::vector<FoundPair> best = top ? oracle.top(request.top())
                                      : nearest
                                          ? oracle.nearest(request.neighbors(), request.pairs())
                                          : std::vector<FoundPair>{};
  const std::uint64_t total = top || nearest ? best.size() : oracle.total(request.pairs());
  if (result.total != total) {
    same = testing::AssertionFailure()
           << "total " << result.total << ", the oracle has " << total << "; ";
  }
  if (top || nearest) {
    const testing::AssertionResult pairs = same_pairs(result.pairs, best);
    if (!pairs) same = testing::AssertionFailure() << pairs.message();
  }
  if (request.output() == Output::kPairs || request.output() == Output::kPairsWithDistances) {
    const testing::AssertionResult pairs =
        same_pairs(result.pairs,
                   oracle.pairs(request.pairs(), request.output() == Output::kPairsWithDistances));
    if (!pairs) same = testing::AssertionFailure() << pairs.message();
  } else if (request.output() == Output::kCountPerRow) {
    const std::vector<RowCount> expected = oracle.counts(request.pairs());
    const bool equal =
        request.pairs() == PairSelection::kUnordered
            ? result.counts.size() == expected.size() && by_id(result.counts) == by_id(expected)
            : result.counts == expected;
    if (!equal) same = testing::AssertionFailure() << "counts differ; total " << result.total;
  }
  if (result.stats.pairs != result.total)
    same = testing::AssertionFailure()
           << "stats say " << result.stats.pairs << " pairs, batches " << result.total;
  return same ? same : testing::AssertionFailure() << same.message() << "\n  " << describe(request);
}

testing::AssertionResult every_output_matches(const EngineTable& engine, JoinRequest request,
                                              const Oracle& oracle,
                                              std::optional<std::size_t> third) {
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
    for (const PairSelection pairs :
         {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}) {
      if (!request.self_join() && pairs != PairSelection::kAll) continue;
      const auto place = static_cast<std::size_t>(output) + static_cast<std::size_t>(pairs);
      if (third && (*third + place) % 3 != 0) continue;
      ask(request, output);
      select(request, pairs);
      testing::AssertionResult same = matches_oracle(run_join(engine, request), request, oracle);
      if (same && output == Output::kCountPerRow) {
        request = request.asking(Output::matched_rows());
        same = matches_oracle(run_join(engine, request), request, oracle);
      }
      if (!same) return same;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult every_plan_matches(const EngineTable& engine, const Points& left,
                                            const Points* right, Metric metric, double eps) {
  const Oracle oracle(left, right, metric, eps);
  JoinRequest request = make_request(left, right, metric, eps);
  std::vector<Knobs> plans(14);
  for (std::size_t i = 1; i < plans.size(); ++i) plans[i].batch_pairs = 100;
  plans[1].index = IndexMethod::kNone;
  plans[2].index = IndexMethod::kGrid;
  plans[2].indexed_dimensions = 1;
  plans[3].index = IndexMethod::kGrid;
  plans[3].indexed_dimensions = 5;
  plans[3].access_pattern = AccessPattern::kUnicomp;
  plans[3].cell_order = CellOrder::kHilbert;
  plans[4].index = IndexMethod::kGrid;
  plans[4].indexed_dimensions = 2;
  plans[4].sort_unindexed = Switch::kOff;
  plans[4].access_pattern = AccessPattern::kFull;
  plans[4].cell_order = CellOrder::kZOrder;
  plans[5].index = IndexMethod::kGrid;
  plans[5].short_circuit = Switch::kOn;
  plans[6].index = IndexMethod::kGrid;
  plans[6].short_circuit = Switch::kOn;
  plans[6].reorder_dimensions = Switch::kOff;
  plans[6].batch_pairs = 3;
  // Metrics that tiles do not know fall back to a grid.
  plans[7].index = IndexMethod::kTiles;
  plans[8].index = IndexMethod::kTiles;
  plans[8].indexed_dimensions = 2;
  plans[8].cell_order = CellOrder::kZOrder;
  plans[8].reorder_dimensions = Switch::kOff;
  plans[8].batch_pairs = 3;
  plans[9].index = IndexMethod::kTiles;
  plans[9].short_circuit = Switch::kOn;
  plans[9].access_pattern = AccessPattern::kFull;
  for (std::size_t i = 10; i < plans.size(); ++i) plans[i].index = IndexMethod::kReferencePoints;
  plans[11].reference_points = 1;
  plans[11].reference_placement = ReferencePlacement::kInner;
  plans[11].access_pattern = AccessPattern::kUnicomp;
  plans[12].reference_points = kMaxReferencePoints;
  plans[12].reference_placement = ReferencePlacement::kInner;
  plans[12].indexed_dimensions = 3;
  plans[12].cell_order = CellOrder::kHilbert;
  plans[13].reference_points = 2;
  plans[13].indexed_dimensions = 2;
  plans[13].sort_unindexed = Switch::kOff;
  plans[13].access_pattern = AccessPattern::kFull;
  plans[13].short_circuit = Switch::kOn;
  // A sanitizer looks at what is done, not at the pairs: in each call it sees another third of
  // them.
  static std::size_t calls = 0;
  ++calls;
  std::optional<std::size_t> third;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    request.knobs = plans[i];
    request.resources.threads = 1 + i % 2;
    if (kSanitized && request.self_join()) third = calls + i;
    const testing::AssertionResult same = every_output_matches(engine, request, oracle, third);
    if (!same) return same;
  }
  return testing::AssertionSuccess();
}

std::string describe(const JoinRequest& request) {
  const Knobs& knobs = request.knobs;
  std::ostringstream text;
  text.precision(17);
  text << (request.self_join() ? "self-join of " : "join of ") << request.left().rows;
  if (!request.self_join()) text << " with " << request.right().rows;
  text << " points, dims " << request.left().dims
       << (request.left().scalar == ScalarType::kFloat32 ? " float32" : " float64") << ", metric "
       << to_string(request.metric()) << ", eps " << request.eps() << ", pairs "
       << name_of(request.pairs()) << ", output " << name_of(request.output()) << ", threads "
       << request.resources.threads << ", memory limit " << request.resources.memory_limit
       << ", index " << to_string(knobs.index) << ", indexed dimensions "
       << knobs.indexed_dimensions << ", reference points " << knobs.reference_points
       << ", placement " << to_string(knobs.reference_placement) << ", reorder "
       << name_of(knobs.reorder_dimensions) << ", sort " << name_of(knobs.sort_unindexed)
       << ", short circuit " << name_of(knobs.short_circuit) << ", pattern "
       << to_string(knobs.access_pattern) << ", cell order " << to_string(knobs.cell_order)
       << ", work order " << name_of(knobs.work_order) << ", threads per point "
       << knobs.threads_per_point << ", streams " << knobs.streams << ", batch pairs "
       << knobs.batch_pairs;
  if (request.shape() == gpujoin::Shape::kBoxes)
    text << ", box method " << to_string(knobs.box_method);
  const Top& top = request.top();
  if (request.output() == Output::kTopPairs)
    text << ", top " << top.k << " by " << to_string(top.scoring.function)
         << (top.scoring.lowest_first ? ", lowest first" : ", highest first") << ", weights "
         << top.scoring.weights[0] << " and " << top.scoring.weights[1] << ", least key "
         << top.least_key << ", method " << to_string(knobs.topk_method);
  return text.str();
}

}  // namespace gpujoin::test
