// gpujoin's CPU engine, asked for each kind of output.
#include <cstdio>
#include <cstdlib>

#include "contenders.h"
#include "engine/engine.h"
#include "engine/request/pair_cursor.h"

namespace gpujoin::bench {
namespace {

void stop_unless(bool good, const Status& status) {
  if (good) return;
  std::fprintf(stderr, "gpujoin_bench: %s\n", status.message);
  std::exit(1);
}

void ignore(const ResultBatch&) {}

/// Pulls every batch and shows it to `consume`.
template <class Consume>
Outcome run(const Dataset& points, double eps, unsigned threads, const Output& output,
            Consume consume) {
  const EngineTable& engine = *cpu_engine();
  JoinRequest request(Sides::one(points, PairSelection::kAll), PointsWithin{Metric::kL2, eps},
                      output);
  request.resources.threads = threads;

  Join* join = nullptr;
  Status status = engine.open(&request, &join);
  stop_unless(status.ok(), status);
  Outcome outcome;
  ResultBatch batch;
  while ((status = engine.next_batch(join, &batch)).ok()) {
    outcome.pairs += batch.pair_count;
    consume(batch);
  }
  stop_unless(status.code == StatusCode::kEnd, status);
  JoinStats stats;
  engine.stats(join, &stats);
  engine.close(join);
  outcome.index_ms = stats.index_ms;
  outcome.detail = stats.instruction_set;
  return outcome;
}

}  // namespace

Outcome gpujoin_total(const Dataset& points, double eps, unsigned threads) {
  return run(points, eps, threads, Output::total(), ignore);
}

Outcome gpujoin_counts(const Dataset& points, double eps, unsigned threads) {
  return run(points, eps, threads, Output::count_per_row(), ignore);
}

Outcome gpujoin_pairs(const Dataset& points, double eps, unsigned threads) {
  return run(points, eps, threads, Output::pairs(), ignore);
}

Outcome gpujoin_distances(const Dataset& points, double eps, unsigned threads) {
  return run(points, eps, threads, Output::pairs_with_distances(), ignore);
}

Outcome gpujoin_id_pairs(const Dataset& points, double eps, unsigned threads) {
  std::uint64_t count = 0;
  volatile std::int64_t sum = 0;
  Outcome outcome = run(points, eps, threads, Output::pairs(), [&](const ResultBatch& batch) {
    PairCursor cursor;
    cursor.start(batch, false);  // all pairs, each in both orders
    std::int64_t own = 0;
    for (IdPair pair{}; cursor.next(&pair); ++count) own += pair.id1 ^ pair.id2;
    sum = sum + own;
  });
  outcome.pairs = count;
  return outcome;
}

}  // namespace gpujoin::bench
