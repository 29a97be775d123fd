#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>

#include "cuda/boxes/box_walk.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/scratch.h"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Rows and counts of the chosen places; counts of 0 for the items after these.
__global__ void chosen_kernel(const std::uint32_t* order, const std::uint32_t* counts,
                              const std::uint32_t* chosen, const std::uint32_t* chosen_places,
                              std::uint32_t items, std::uint32_t* rows,
                              std::uint32_t* chosen_counts) {
  const std::uint64_t i = global_thread();
  if (i >= items) return;
  const bool is_chosen = i < *chosen;
  chosen_counts[i] = is_chosen ? counts[chosen_places[i]] : 0;
  if (is_chosen) rows[i] = order[chosen_places[i]];
}

/// How many of `rows` rows fit at a time. Throws MemoryLimitExceeded where next to none do.
std::uint64_t rows_that_fit(std::uint64_t bytes, std::uint64_t row_bytes, std::uint64_t rows) {
  constexpr std::uint64_t kFewest = 64;
  const std::uint64_t fit = bytes / row_bytes;
  if (fit < std::min(rows, kFewest)) throw MemoryLimitExceeded{kFewest * row_bytes, bytes};
  return std::min(rows, fit);
}

std::uint64_t quotient_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

BoxWalk::BoxWalk(const JoinRequest& request, const BoxStrategy& strategy, const WorkShare& share,
                 JoinResources& resources, const unsigned* stop, cudaStream_t stream)
    : request_(request),
      strategy_(strategy),
      share_(share),
      indexed_data_(strategy.indexed(request)),
      probing_data_(strategy.left_indexed ? request.right() : request.left()),
      resources_(resources),
      uploader_(resources.host, request.resources.threads),
      stream_(stream),
      row_bytes_(point_bytes(request.left())) {
  view_.method = strategy.method;
  view_.scalar = request.left().scalar;
  view_.dims = request.left().dims / 2;
  view_.test = make_box_test(request.metric(), request.eps());
  view_.self_join = request.self_join();
  view_.with_itself = request.pairs() == PairSelection::kAll;
  view_.mirrored = request.self_join() && request.pairs() != PairSelection::kUnordered;
  view_.dimension = strategy.dimension;
  view_.stop = stop;
  if (strategy.method == BoxMethod::kSortSweep && !request.self_join()) walks_ = 2;
  plan_memory();
  make_room();
  next_ = next_meeting();
}

BoxWalk::~BoxWalk() { cudaStreamSynchronize(upload_stream_); }

/// The expected number of candidates of a probing box in a chunk; in a self-join as if each pair
/// were met twice.
double BoxWalk::candidates_per_box() const {
  const double all = strategy_.candidates * (request_.self_join() ? 2 : 1);
  return std::max(1.0,
                  all / static_cast<double>(chunks_) / static_cast<double>(probing_data_.rows));
}

/// Cuts the sides into chunks and slices. A chunk gets three eighths of the memory, a slice five
/// sixteenths, the table of the layered grid one; batches take up to an eighth, and the rest is for
/// what sorting and adding up need besides.
void BoxWalk::plan_memory() {
  const std::uint64_t available =
      resources_.context.available_bytes(request_.resources.device_memory_limit);
  most_chunk_rows_ =
      rows_that_fit(available / 8 * 3, ordering_bytes(row_bytes_), indexed_data_.rows);
  chunks_ = quotient_up(indexed_data_.rows, most_chunk_rows_);
  most_chunk_rows_ = quotient_up(indexed_data_.rows, chunks_);

  constexpr std::uint64_t kPlaceBytes =
      sizeof(PositionRange) + 4 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  most_slice_rows_ =
      rows_that_fit(available / 16 * 5, ordering_bytes(row_bytes_) + row_bytes_ + kPlaceBytes,
                    probing_data_.rows);
  const auto wanted = static_cast<std::uint64_t>(
      std::clamp(kBoxCandidatesPerSlice / candidates_per_box(),
                 static_cast<double>(kFewestSliceBoxes), static_cast<double>(kMostSliceBoxes)));
  most_slice_rows_ = std::min(most_slice_rows_, wanted);
  if (!share_.is_all())
    share_memory(
        std::min(wanted, std::max(probing_data_.rows / kSharedBoxSlices, kFewestSliceBoxes)));
  slices_ = quotient_up(probing_data_.rows, most_slice_rows_);
  most_slice_rows_ = quotient_up(probing_data_.rows, slices_);

  order_.method = strategy_.method;
  order_.dimension = strategy_.dimension;
  if (strategy_.method != BoxMethod::kLayeredGrid) return;
  order_.grid = make_layered_grid(
      most_chunk_rows_, view_.dims, strategy_.spreads, view_.test.reach,
      std::min(kMostTableWords, available / 16 / sizeof(unsigned long long)), kPartBoxes);
  view_.grid = order_.grid;
}

/// Devices that share the slices have the same ones, and all of the indexed side, whatever memory
/// they have.
void BoxWalk::share_memory(std::uint64_t slice_rows) {
  const std::uint64_t wanted = std::min(slice_rows, probing_data_.rows);
  if (chunks_ > 1 || most_slice_rows_ < wanted)
    throw MemoryLimitExceeded{indexed_data_.rows * ordering_bytes(row_bytes_),
                              most_chunk_rows_ * ordering_bytes(row_bytes_)};
  most_slice_rows_ = wanted;
}

void BoxWalk::make_room() {
  report_ = DeviceBuffer<Report>(resources_.device, 1, stream_);
  host_report_ = PinnedBlock(resources_.host, sizeof(Report));
  *host_report_.as<Report>() = Report{};
  check(cudaMemsetAsync(report_.data(), 0, report_.bytes(), stream_), "clearing totals");
  if (strategy_.method == BoxMethod::kSortSweep)
    ranges_ = DeviceBuffer<PositionRange>(resources_.device, most_slice_rows_, stream_);
  if (!wants_pairs(request_.output())) return;
  counts_ = DeviceBuffer<std::uint32_t>(resources_.device, most_slice_rows_, stream_);
  chosen_ = DeviceBuffer<std::uint32_t>(resources_.device, most_slice_rows_, stream_);
  chosen_rows_ = DeviceBuffer<std::uint32_t>(resources_.device, most_slice_rows_, stream_);
  chosen_counts_ = DeviceBuffer<std::uint32_t>(resources_.device, most_slice_rows_ + 1, stream_);
  offsets_ = DeviceBuffer<std::uint64_t>(resources_.device, most_slice_rows_ + 1, stream_);
  host_rows_ = PinnedBlock(resources_.host, chosen_rows_.bytes());
  host_offsets_ = PinnedBlock(resources_.host, offsets_.bytes());
  host_offsets_.as<std::uint64_t>()[0] = 0;
}

std::uint32_t BoxWalk::chunk_rows(std::uint64_t chunk) const {
  return static_cast<std::uint32_t>(
      std::min(most_chunk_rows_, indexed_data_.rows - chunk * most_chunk_rows_));
}

std::uint32_t BoxWalk::slice_rows(std::uint64_t slice) const {
  return static_cast<std::uint32_t>(
      std::min(most_slice_rows_, probing_data_.rows - slice * most_slice_rows_));
}

std::uint32_t BoxWalk::places_of(const Turn& turn) const {
  const std::uint32_t rows = turn.walk == 0 ? slice_rows(turn.slice) : chunk_rows(turn.chunk);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most_slice_rows_, rows - turn.first));
}

/// The first turn of a chunk and a slice; number chunks_ after the last.
BoxWalk::Turn BoxWalk::next_meeting() {
  const auto meetings = static_cast<std::uint32_t>(chunks_ * slices_);
  const Places taken = share_.take(meetings, 1);
  return {taken.first / slices_, taken.first % slices_, 0, 0};
}

/// The turn after one.
BoxWalk::Turn BoxWalk::after(Turn turn) {
  turn.first += places_of(turn);
  if (turn.first < (turn.walk == 0 ? slice_rows(turn.slice) : chunk_rows(turn.chunk))) return turn;
  turn.first = 0;
  if (++turn.walk < walks_) return turn;
  return next_meeting();
}

/// Returns when the rows have left pageable memory. Nothing reads the staging any more.
void BoxWalk::upload(Staging& staging, std::uint64_t slice) {
  if (staging.numbers.size() == 0)
    staging.numbers = DeviceBuffer<unsigned char>(resources_.device, most_slice_rows_ * row_bytes_,
                                                  upload_stream_);
  uploader_.copy_rows(staging.numbers.data(), probing_data_, slice * most_slice_rows_,
                      slice_rows(slice), upload_stream_);
  staging.arrived.record(upload_stream_);
  staging.slice = slice;
}

void BoxWalk::index_chunk() {
  indexed_ = {};
  table_ = {};
  const std::uint64_t first = turn_.chunk * most_chunk_rows_;
  const std::uint32_t rows = chunk_rows(turn_.chunk);
  index_begins_.record(stream_);
  DeviceBuffer<unsigned char> numbers(resources_.device, rows * row_bytes_, stream_);
  uploader_.copy_rows(numbers.data(), indexed_data_, first, rows, stream_);
  indexed_ = order_boxes(
      resources_.device,
      {numbers.data(), static_cast<std::uint32_t>(first), rows, view_.dims, view_.scalar}, order_,
      stream_);
  if (strategy_.method == BoxMethod::kLayeredGrid)
    table_ = build_layered_table(resources_.device, indexed_, view_.dims, view_.scalar, order_.grid,
                                 stream_);
  index_ends_.record(stream_);
  indexes_ = true;
  indexed_chunk_ = turn_.chunk;
}

/// Puts the slice in order, so that boxes that follow each other have the same candidates.
void BoxWalk::order_slice() {
  probing_ = {};
  Staging& staging = staging_[staged_];
  if (staging.slice != turn_.slice) upload(staging, turn_.slice);
  check(cudaStreamWaitEvent(stream_, staging.arrived, 0), "waiting for boxes");
  probing_ = order_boxes(
      resources_.device,
      {staging.numbers.data(), static_cast<std::uint32_t>(turn_.slice * most_slice_rows_),
       slice_rows(turn_.slice), view_.dims, view_.scalar},
      order_, stream_);
  ordered_slice_ = turn_.slice;
  staged_ ^= 1;
}

/// Uploads the next slice while kernels are at work on this one. The other staging belongs to the
/// turn before, which has ended.
void BoxWalk::upload_ahead() {
  if (!finished() && next_.slice != ordered_slice_ && staging_[staged_].slice != next_.slice)
    upload(staging_[staged_], next_.slice);
}

/// Where other devices have taken all there is, nothing is counted.
void BoxWalk::start_slice() {
  if (finished()) return;
  turn_ = next_;
  next_ = after(turn_);
  if (turn_.chunk != indexed_chunk_) index_chunk();
  if (turn_.slice != ordered_slice_) order_slice();
  count();
  if (wants_pairs(request_.output())) choose_places();
  copy_to_host(host_report_.as<Report>(), report_.data(), 1, stream_);
  upload_ahead();
}

/// Counts the partners of the turn's boxes, which is all that totals need.
void BoxWalk::count() {
  view_.probing = turn_.walk == 0 ? probing_.view() : indexed_.view();
  view_.indexed = turn_.walk == 0 ? indexed_.view() : probing_.view();
  view_.first = turn_.first;
  view_.places = places_of(turn_);
  view_.table = table_.words.data();
  view_.blocks = table_.blocks.data();
  view_.ranges = ranges_.data();
  if (strategy_.method == BoxMethod::kSortSweep)
    launch_ranges(view_, turn_.walk == 0, ranges_.data(), stream_);
  launch_count_boxes(view_, counts_.data(), &report_.data()->totals, stream_);
}

/// Numbers the pairs of the places that have pairs; often most places have none.
void BoxWalk::choose_places() {
  unsigned* const chosen = &report_.data()->chosen;
  const auto places = static_cast<int>(view_.places);
  with_scratch(
      resources_.device, stream_, "choosing boxes", [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceSelect::Flagged(scratch, bytes,
                                          thrust::counting_iterator<std::uint32_t>(0),
                                          counts_.data(), chosen_.data(), chosen, places, stream_);
      });
  const std::uint32_t items = view_.places + 1;
  chosen_kernel<<<blocks_for(items), kBlockThreads, 0, stream_>>>(
      view_.probing.order + view_.first, counts_.data(), chosen, chosen_.data(), items,
      chosen_rows_.data(), chosen_counts_.data());
  check_launch("choosing boxes");
  add_up(resources_.device, chosen_counts_.data(), offsets_.data(), items, stream_);
}

/// Fetches the rows and offsets of the slice's chosen places.
bool BoxWalk::finish_slice() {
  if (indexes_) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, index_begins_, index_ends_), "timing the index");
    index_ms_ += ms;
    indexes_ = false;
  }
  compared_boxes_ += view_.places;
  if (!wants_pairs(request_.output()) || ordered_slice_ == kNone) return true;
  const std::uint32_t chosen = host_report_.as<Report>()->chosen;
  copy_to_host(host_rows_.as<std::uint32_t>(), chosen_rows_.data(), chosen, stream_);
  copy_to_host(host_offsets_.as<std::uint64_t>(), offsets_.data(), chosen + std::size_t{1},
               stream_);
  check(cudaStreamSynchronize(stream_), "copying numbers of pairs");
  return true;
}

CountedSlice BoxWalk::slice() const {
  const Themselves themselves = !request_.self_join() || !view_.with_itself ? Themselves::kNone
                                : chunks_ == 1                              ? Themselves::kEach
                                                                            : Themselves::kSome;
  return {0,
          host_report_.as<Report>()->chosen,
          host_offsets_.as<std::uint64_t>(),
          offsets_.data(),
          nullptr,
          nullptr,
          themselves,
          finished(),
          !request_.self_join() && strategy_.left_indexed == (turn_.walk == 0)};
}

void BoxWalk::fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) {
  launch_fill_boxes(view_, chosen_.data(), stretch, range, stream);
}

std::uint64_t BoxWalk::pairs() const { return host_report_.as<Report>()->totals.pairs; }

void BoxWalk::describe(JoinStats* stats) const {
  stats->candidates = host_report_.as<Report>()->totals.candidates;
  stats->threads = uploader_.threads();
  stats->threads_per_point = threads_of_box(strategy_.method);
  stats->index_ms = index_ms_;
  stats->work = chunks_ * probing_data_.rows;
  if (walks_ > 1) stats->work += slices_ * indexed_data_.rows;
  stats->work_done = compared_boxes_;
}

}  // namespace gpujoin::cuda
