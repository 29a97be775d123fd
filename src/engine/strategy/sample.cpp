#include "engine/strategy/sample.h"

#include <algorithm>

#include "core/threshold.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kComparedCoordinates = 1 << 21;

/// A well-mixed function of the position: the finalizer of [MurmurHash3].
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

/// Sampled rows one after the other, widened.
std::vector<double> coordinates_of(const Dataset& data, const std::vector<std::uint64_t>& rows) {
  std::vector<double> values;
  values.reserve(rows.size() * data.dims);
  for (const std::uint64_t row : rows)
    for (std::uint32_t d = 0; d < data.dims; ++d) values.push_back(coordinate(data, row, d));
  return values;
}

/// How many of kAtOnce pairs are within the threshold. Sums of one pair wait for each other, those
/// of several do not. A sum never becomes smaller, and a NaN stays one, so that a pair beyond the
/// threshold stays beyond it.
constexpr std::uint32_t kAtOnce = 4;

template <Metric M>
std::uint32_t count_within(const double* const (&left)[kAtOnce],
                           const double* const (&right)[kAtOnce], std::uint32_t dims,
                           double threshold) {
  constexpr std::uint32_t kColumnsBetweenChecks = 4;
  double raw[kAtOnce] = {};
  for (std::uint32_t d = 0; d < dims;) {
    const std::uint32_t end = std::min(dims, d + kColumnsBetweenChecks);
    for (; d < end; ++d)
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        raw[i] = add_coordinate<M>(raw[i], left[i][d], right[i][d]);
    if (raw[0] > threshold && raw[1] > threshold && raw[2] > threshold && raw[3] > threshold)
      return 0;
  }
  std::uint32_t count = 0;
  for (const double x : raw) count += x <= threshold;
  return count;
}

/// In many dimensions a distance is long: one pair of so many is compared.
std::size_t step_among(std::size_t pairs, std::uint32_t dims) {
  return 1 + pairs * dims / kComparedCoordinates;
}

/// How many pairs match; visit(compare) calls compare(position in left, position in right) for each
/// of those that are to be compared.
template <Metric M, class Visit>
std::uint64_t count_matches(const JoinRequest& request, const Sample& sample, const Visit& visit) {
  const Dataset& right = request.right();
  const std::uint32_t dims = request.left().dims;
  const double threshold = make_threshold(M, request.eps()).raw;
  const std::vector<double> left_rows = coordinates_of(request.left(), sample.left),
                            other_rows = request.self_join() ? std::vector<double>()
                                                             : coordinates_of(right, sample.right);
  const std::vector<double>& right_rows = request.self_join() ? left_rows : other_rows;
  constexpr std::uint32_t kShort = 8;
  const bool alone = M == Metric::kCosine || dims <= kShort;
  std::uint64_t matches = 0;
  const double *lefts[kAtOnce], *rights[kAtOnce];
  std::uint32_t waiting = 0;
  visit([&](std::size_t i, std::size_t j) {
    if (!are_keys_near(request.keys, request.left(), sample.left[i], right, sample.right[j]))
      return;
    lefts[waiting] = left_rows.data() + i * dims;
    rights[waiting] = right_rows.data() + j * dims;
    if (alone) {
      matches += raw_distance<M>(lefts[0], rights[0], dims) <= threshold;
      return;
    }
    if constexpr (M != Metric::kCosine) {
      if (++waiting < kAtOnce) return;
      matches += count_within<M>(lefts, rights, dims, threshold);
      waiting = 0;
    }
  });
  for (std::uint32_t i = 0; i < waiting; ++i)
    matches += raw_distance<M>(lefts[i], rights[i], dims) <= threshold;
  return matches;
}

template <class Visit>
std::uint64_t count_by_metric(const JoinRequest& request, const Sample& sample,
                              const Visit& visit) {
  switch (request.metric()) {
    case Metric::kL1:
      return count_matches<Metric::kL1>(request, sample, visit);
    case Metric::kLInf:
      return count_matches<Metric::kLInf>(request, sample, visit);
    case Metric::kCosine:
      return count_matches<Metric::kCosine>(request, sample, visit);
    default:
      return count_matches<Metric::kL2>(request, sample, visit);
  }
}

}  // namespace

std::vector<std::uint64_t> sample_rows(std::uint64_t rows, std::uint64_t most) {
  const std::uint64_t count = std::min(rows, most);
  std::vector<std::uint64_t> sample(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = rows * i / count;
    const std::uint64_t next = rows * (i + 1) / count;
    sample[i] = first + scramble(i + 1) % (next - first);
  }
  return sample;
}

Sample take_sample(const JoinRequest& request, std::uint64_t most_rows) {
  Sample sample{sample_rows(request.left().rows, most_rows), {}, request.self_join()};
  sample.right = request.self_join() ? sample.left : sample_rows(request.right().rows, most_rows);
  return sample;
}

std::uint64_t count_matches(const JoinRequest& request, const Sample& sample) {
  const std::size_t step = step_among(sample.pair_count(), request.left().dims);
  return step * count_by_metric(request, sample,
                                [&](const auto& compare) { visit_pairs(sample, step, compare); });
}

std::uint64_t count_matches(const JoinRequest& request, const Sample& sample,
                            const std::vector<SampledPair>& pairs) {
  const std::size_t step = step_among(pairs.size(), request.left().dims);
  return step * count_by_metric(request, sample, [&](const auto& compare) {
           for (std::size_t i = 0; i < pairs.size(); i += step)
             compare(pairs[i].left, pairs[i].right);
         });
}

}  // namespace gpujoin
