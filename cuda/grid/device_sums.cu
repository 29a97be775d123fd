#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/device_sums.h"

namespace gpujoin::cuda {
namespace {

__global__ void clear_rows_kernel(const SumsView* sums, std::uint32_t points) {
  const std::uint64_t point = global_thread();
  if (point < points) clear_row(sums->asked, sums->words + point * sums->width);
}

/// Uploads columns by row, and puts them in the order of the index by gather(from, to).
template <class T, class Gather>
DeviceBuffer<T> order_columns(MemoryBudget& budget, std::uint32_t columns, const T* const* by_row,
                              std::uint64_t rows, Uploader& uploader, cudaStream_t stream,
                              const Gather& gather) {
  DeviceBuffer<T> ordered(budget, columns * rows, stream);
  for (std::uint32_t c = 0; c < columns; ++c) {
    DeviceBuffer<T> source(budget, rows, stream);
    uploader.copy(source.data(), by_row[c], source.bytes(), stream);
    gather(source.data(), ordered.data() + c * rows);
  }
  return ordered;
}

}  // namespace

DeviceSums::DeviceSums(const PairSums& asked, const DeviceIndex& left, const DeviceIndex& right,
                       MemoryBudget& device, Uploader& uploader, cudaStream_t stream)
    : width_(row_words(asked)),
      stream_(stream),
      words_(device, std::uint64_t{left.points} * width_, stream),
      view_(device, 1, stream) {
  const auto reals = [&](const DeviceIndex& index) {
    return [&index, stream](const double* from, double* to) {
      gather_scores(index, from, to, stream);
    };
  };
  left_ = order_columns(device, asked.left_columns, asked.left, left.rows, uploader, stream,
                        reals(left));
  right_ = order_columns(device, asked.right_columns, asked.right, right.rows, uploader, stream,
                         reals(right));
  integers_ = order_columns(
      device, asked.integer_columns, asked.integers, right.rows, uploader, stream,
      [&](const std::int64_t* from, std::int64_t* to) { gather_ids(right, from, to, stream); });
  const SumsView view{asked,        width_,        left.rows,        right.rows,
                      left_.data(), right_.data(), integers_.data(), words_.data()};
  uploader.copy(view_.data(), &view, sizeof view, stream);
  clear_rows_kernel<<<blocks_for(left.points), kBlockThreads, 0, stream>>>(view_.data(),
                                                                           left.points);
  check_launch("clearing sums");
  few_ = few_sums(asked, right.rows);
}

FewSums DeviceSums::few_sums(const PairSums& asked, std::uint64_t right_rows) const {
  FewSums few{};
  if (asked.measures > FewSums::kMost) return few;
  for (std::uint32_t m = 0; m < asked.measures; ++m) {
    const auto [fold, number] = asked.measure[m];
    if (fold == Fold::kSum) {
      few.is_integer[m] = true;
      few.integers[m] = integers_.data() + number * right_rows;
      continue;
    }
    const bool of_one = fold == Fold::kSumOf && asked.program[number].count == 1;
    const ValueStep step = of_one ? asked.program[number].steps[0] : ValueStep::kLeft;
    if (step == ValueStep::kRight)
      few.reals[m] = right_.data() + asked.program[number].columns[0] * right_rows;
    else if (step != ValueStep::kDistance)
      return few;
  }
  few.count = asked.measures;
  return few;
}

Buffer<FoldWord> DeviceSums::words(MemoryBudget& host) const {
  Buffer<FoldWord> copy(host, words_.size());
  copy_to_host(copy.data(), words_.data(), copy.size(), stream_);
  check(cudaStreamSynchronize(stream_), "copying sums");
  return copy;
}

}  // namespace gpujoin::cuda
