#include <algorithm>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/device_sums.h"

namespace gpujoin::cuda {
namespace {

__global__ void clear_rows_kernel(const SumsView* sums, std::uint64_t rows) {
  const std::uint64_t row = global_thread();
  if (row < rows) clear_row(sums->asked, sums->words + row * sums->width);
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
      words_(device, left.rows * width_, stream),
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
  clear_rows_kernel<<<blocks_for(left.rows), kBlockThreads, 0, stream>>>(view_.data(), left.rows);
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

const FoldWord* DeviceSums::words(std::uint64_t first, std::uint64_t rows, HostBudget& host) {
  if (host_rows_ < rows) host_words_ = PinnedBlock(host, rows * width_ * sizeof(FoldWord));
  host_rows_ = std::max(host_rows_, rows);
  copy_to_host(host_words_.as<FoldWord>(), words_.data() + first * width_, rows * width_, stream_);
  check(cudaStreamSynchronize(stream_), "copying sums");
  return host_words_.as<FoldWord>();
}

}  // namespace gpujoin::cuda
