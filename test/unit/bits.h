// Rows of bits for the tests, and the same as points of zeros and ones, whose L1 distance is the
// Hamming distance: what brute force compares.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {

class Bits {
 public:
  /// `words` is row-major, its rows of so many bits.
  Bits(std::uint32_t bits, std::vector<std::uint64_t> words)
      : words_of_row_((bits + 63) / 64),
        words_(std::move(words)),
        points_(bits, unpack(bits), ScalarType::kFloat32) {}

  Bits& with_ids(std::vector<std::int64_t> ids) {
    points_.with_ids(std::move(ids));
    return *this;
  }
  Bits& with_scores(std::vector<double> scores) {
    points_.with_scores(std::move(scores));
    return *this;
  }

  const Points& points() const { return points_; }

  Dataset view() const {
    Dataset data = points_.view();
    data.first_chunk = words_.data();
    data.dims = words_of_row_;
    data.scalar = ScalarType::kBits;
    return data;
  }

 private:
  std::vector<double> unpack(std::uint32_t bits) const {
    std::vector<double> values;
    for (std::size_t row = 0; row < words_.size() / words_of_row_; ++row)
      for (std::uint32_t bit = 0; bit < bits; ++bit)
        values.push_back(
            static_cast<double>(words_[row * words_of_row_ + bit / 64] >> bit % 64 & 1));
    return values;
  }

  std::uint32_t words_of_row_;
  std::vector<std::uint64_t> words_;
  Points points_;
};

/// Rows around a few centres, from which up to `noise` bits of each differ, and others anywhere.
/// The last bits of the last word are 0.
inline Bits random_bits(Random& random, std::uint32_t bits, std::uint64_t rows,
                        std::uint32_t noise) {
  const std::uint32_t words = (bits + 63) / 64;
  std::vector<std::uint64_t> centres, all;
  const auto anywhere = [&](std::vector<std::uint64_t>* to) {
    for (std::uint32_t w = 0; w < words; ++w) {
      const std::uint32_t left = bits - w * 64;
      to->push_back(random.bits() & (left < 64 ? (std::uint64_t{1} << left) - 1 : ~0ull));
    }
  };
  for (int i = 0; i < 20; ++i) anywhere(&centres);
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (random.index(4) == 0) {
      anywhere(&all);
      continue;
    }
    const std::uint64_t centre = random.index(20) * words;
    for (std::uint32_t w = 0; w < words; ++w) all.push_back(centres[centre + w]);
    for (std::uint64_t flips = random.index(noise + 1); flips > 0; --flips) {
      const std::uint64_t bit = random.index(bits);
      all[row * words + bit / 64] ^= std::uint64_t{1} << bit % 64;
    }
  }
  return Bits(bits, all);
}

/// `right` null: a self-join.
inline Oracle oracle_of(const Bits& left, const Bits* right, double eps) {
  return Oracle(left.points(), right == nullptr ? nullptr : &right->points(), Metric::kL1, eps);
}

using DistanceOfRows = double (*)(const double* a, const double* b, std::uint32_t bits);

inline double hamming_of_ones(const double* a, const double* b, std::uint32_t bits) {
  return definition_of_distance(Metric::kL1, a, b, bits);
}

/// That of sets whose members are the ones.
inline double jaccard_of_ones(const double* a, const double* b, std::uint32_t bits) {
  double both = 0, any = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) {
    both += a[bit] * b[bit];
    any += a[bit] + b[bit] > 0;
  }
  return both == 0 ? 1 : 1 - both / any;
}

inline Oracle jaccard_oracle_of(const Bits& left, const Bits* right, double eps) {
  return Oracle(left.points(), right == nullptr ? nullptr : &right->points(), eps, jaccard_of_ones);
}

inline JoinRequest make_request(const Bits& left, const Bits* right, double eps,
                                Metric metric = Metric::kHamming) {
  const Sides sides = right == nullptr ? Sides::one(left.view(), PairSelection::kAll)
                                       : Sides::two(left.view(), right->view());
  JoinRequest request(sides, PointsWithin{metric, eps}, Output::pairs());
  request.resources.threads = 2;
  return request;
}

}  // namespace gpujoin::test
