#include "engine/strategy/sample.h"

#include <algorithm>

#include "core/threshold.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kSampleRows = 512;
constexpr std::uint64_t kComparedCoordinates = 1 << 21;

/// A well-mixed function of the position: the finalizer of [MurmurHash3].
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

template <class T>
std::uint64_t count_matches(const JoinRequest& request, const Sample& sample) {
  const Dataset& right = request.right();
  const std::uint32_t dims = request.left().dims;
  const double threshold = make_threshold(request.metric(), request.eps()).raw;
  // In many dimensions a distance is long: compare every n-th pair.
  const std::size_t step = 1 + sample.pairs.size() * std::uint64_t{dims} / kComparedCoordinates;
  const auto are_near = [&](SamplePair pair) {
    for (std::uint32_t k = 0; k < request.keys.count; ++k)
      if (!request.keys.are_near(k, key_of(request.left(), sample.left[pair.left], k),
                                 key_of(right, sample.right[pair.right], k)))
        return false;
    return true;
  };
  std::uint64_t matches = 0;
  for (std::size_t i = 0; i < sample.pairs.size(); i += step) {
    const SamplePair pair = sample.pairs[i];
    matches += are_near(pair) &&
               raw_distance(request.metric(), point<T>(request.left(), sample.left[pair.left]),
                            point<T>(right, sample.right[pair.right]), dims) <= threshold;
  }
  return matches * step;
}

}  // namespace

std::vector<std::uint64_t> sample_rows(std::uint64_t rows) {
  const std::uint64_t count = std::min(rows, kSampleRows);
  std::vector<std::uint64_t> sample(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = rows * i / count;
    const std::uint64_t next = rows * (i + 1) / count;
    sample[i] = first + scramble(i + 1) % (next - first);
  }
  return sample;
}

Sample take_sample(const JoinRequest& request) {
  Sample sample;
  sample.left = sample_rows(request.left().rows);
  sample.right = request.self_join() ? sample.left : sample_rows(request.right().rows);
  sample.pairs.reserve(sample.left.size() * sample.right.size());
  for (std::size_t i = 0; i < sample.left.size(); ++i)
    for (std::size_t j = request.self_join() ? i + 1 : 0; j < sample.right.size(); ++j)
      sample.pairs.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(j)});
  return sample;
}

std::uint64_t count_matches(const JoinRequest& request, const Sample& sample) {
  return request.left().scalar == ScalarType::kFloat32 ? count_matches<float>(request, sample)
                                                       : count_matches<double>(request, sample);
}

}  // namespace gpujoin
