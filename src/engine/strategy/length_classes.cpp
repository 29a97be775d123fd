#include "engine/strategy/length_classes.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "engine/strategy/sample.h"

namespace gpujoin {
namespace {

constexpr std::size_t kMostClasses = 4;
constexpr double kClassRatio = 4;
constexpr double kShortShare = 0.5;  // of rows: fewer make no class that is worth its index
constexpr int kNumbers = 256;        // of lengths, each a quarter as long as the one before
constexpr double kCopyNs = 40;       // a row, into a class
constexpr double kWorthShare = 0.9;  // of the time of one class: estimates are of samples

double length_of(const Dataset& data, std::uint64_t row, std::uint32_t column) {
  return key_of(data, row, column + 1) - key_of(data, row, column);
}

int exponent_of(double length) { return length >= DBL_MIN ? std::ilogb(length) : -1023; }

/// How often a length can be multiplied with kClassRatio to be as long as the longest. NaN is near
/// nothing.
int number_of(double length, int longest) {
  return std::clamp((longest - exponent_of(length)) / 2, 0, kNumbers - 1);
}

/// Where the lengths of a number begin.
double least_of(int number, int longest) { return std::ldexp(1.0, longest - 2 * number - 1); }

/// The share of the rows whose intervals are a quarter as long as the longest or less.
double short_share(const Dataset& data, std::uint32_t column, double longest) {
  const std::vector<std::uint64_t> rows = sample_rows(data.rows);
  const auto count = std::count_if(rows.begin(), rows.end(), [&](std::uint64_t row) {
    return !(length_of(data, row, column) > longest / kClassRatio);
  });
  return static_cast<double>(count) / static_cast<double>(rows.size());
}

struct LengthCounts {
  std::uint64_t rows[kNumbers] = {};
  double longest[kNumbers] = {};

  void add(const Dataset& data, std::uint32_t column, int longest_exponent) {
    for (std::uint64_t row = 0; row < data.rows; ++row) {
      const double length = length_of(data, row, column);
      const int number = number_of(length, longest_exponent);
      ++rows[number];
      if (length > longest[number]) longest[number] = length;
    }
  }
};

/// A class of both sides, the longest first.
struct Class {
  double longest = 0;
  double rows[2] = {};  ///< of the left side and of the right one
  double bound = 0;
};

/// Ends a class where no fewer rows than it has are left, whose intervals are much shorter.
std::vector<Class> divide(const LengthCounts (&counts)[2], double rows, int longest) {
  std::vector<Class> classes(1);
  double in_class = 0;
  for (int number = 0; number < kNumbers; ++number) {
    const std::uint64_t left = counts[0].rows[number], right = counts[1].rows[number];
    if (left + right == 0) continue;
    const double most = std::max(counts[0].longest[number], counts[1].longest[number]);
    const bool much_shorter = most <= classes.back().longest / kClassRatio;
    if (in_class > 0 && rows >= in_class && much_shorter && classes.size() < kMostClasses) {
      classes.emplace_back();
      in_class = 0;
    }
    Class& last = classes.back();
    last.longest = std::max(last.longest, most);
    last.rows[0] += static_cast<double>(left);
    last.rows[1] += static_cast<double>(right);
    last.bound = least_of(number, longest);
    in_class += static_cast<double>(left + right);
    rows -= static_cast<double>(left + right);
  }
  return classes;
}

/// What walking the indexes of all pairs of classes takes: a pair of rows is met by the index of
/// the longer one's class.
double walk_ms(const JoinRequest& request, std::uint32_t column, const std::vector<Class>& classes,
               const WalkCosts& costs) {
  double left = static_cast<double>(request.left().rows),
         right = static_cast<double>(request.right().rows), ms = 0;
  const double all = left * right;
  for (const Class& one : classes) {
    JoinRequest by = request;
    by.keys = keys_of_class(request.keys, column, one.longest);
    const double shorter = (left - one.rows[0]) * (right - one.rows[1]);
    ms += choose_strategy(by, costs).estimate().ms * (left * right - shorter) / all;
    left -= one.rows[0];
    right -= one.rows[1];
  }
  return ms;
}

/// What one core takes to index each class of one side for each of the other.
double index_ms(const JoinRequest& request, double left_classes, double right_classes) {
  const double rows = static_cast<double>(request.left().rows) * right_classes +
                      static_cast<double>(request.right().rows) * left_classes;
  return kCoreIndexNs / 1e6 * (request.self_join() ? rows / 2 : rows);
}

double index_ms(const JoinRequest& request, const std::vector<Class>& classes) {
  double count[2] = {};
  for (const Class& one : classes)
    for (int side = 0; side < 2; ++side) count[side] += one.rows[side] > 0 ? 1 : 0;
  return index_ms(request, count[0], count[1]);
}

}  // namespace

PairKeys keys_of_class(PairKeys keys, std::uint32_t column, double longest) {
  keys.reach[column] = keys.reach[column + 1] = std::max(longest, DBL_MIN);  // 0 is for ranks
  return keys;
}

LengthClasses choose_length_classes(const JoinRequest& request, const WalkCosts& costs) {
  LengthClasses best{};
  const Dataset &left = request.left(), &right = request.right();
  if (request.keys.intervals == 0 || request.sides.in_file() || left.rows == 0 || right.rows == 0)
    return best;
  const auto rows = static_cast<double>(left.rows + right.rows);
  const double copy_ms = kCopyNs / 1e6 * rows;
  double whole_ms = -1;
  for (std::uint32_t column = 0; column < request.keys.count; ++column) {
    if (!request.keys.is_interval(column)) continue;
    const double longest = request.keys.reach[column];
    if (short_share(left, column, longest) < kShortShare ||
        short_share(right, column, longest) < kShortShare)
      continue;
    LengthCounts counts[2];
    counts[0].add(left, column, exponent_of(longest));
    counts[1].add(right, column, exponent_of(longest));
    const std::vector<Class> classes = divide(counts, rows, exponent_of(longest));
    if (classes.size() < 2) continue;
    if (whole_ms < 0) whole_ms = choose_strategy(request, costs).estimate().ms;
    const double ms = walk_ms(request, column, classes, costs);
    if (ms + index_ms(request, classes) + copy_ms >
        kWorthShare * (whole_ms + index_ms(request, 1, 1)))
      continue;
    if (!best.bounds.empty() && best.ms <= ms) continue;
    best = {column, {}, ms};
    for (auto one = classes.rbegin() + 1; one != classes.rend(); ++one)
      best.bounds.push_back(one->bound);
  }
  return best;
}

}  // namespace gpujoin
