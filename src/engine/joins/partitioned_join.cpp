#include "engine/joins/partitioned_join.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/box.h"
#include "core/threshold.h"
#include "engine/strategy/box_strategy.h"

namespace gpujoin {
namespace {

/// What dividing sides that lie in a file may take of the memory.
constexpr double kDividingShare = 0.5;

constexpr std::size_t kNoPart = ~std::size_t{0};

/// Below so many rows a piece is not halved again.
constexpr std::uint64_t kFewestRows = 64;

/// Moves a number, if it is there, before all others; the others keep their order.
void move_to_front(std::vector<std::size_t>& numbers, std::size_t number) {
  const auto at = std::find(numbers.begin(), numbers.end(), number);
  if (at != numbers.end()) std::rotate(numbers.begin(), at, at + 1);
}

void move_to_back(std::vector<std::size_t>& numbers, std::size_t number) {
  const auto at = std::find(numbers.begin(), numbers.end(), number);
  if (at != numbers.end()) std::rotate(at, at + 1, numbers.end());
}

/// The columns of the request's sums that a side has, in the order in which its parts carry them:
/// of a self-join its one side has all of them.
SumColumnsOfSide carried(const JoinRequest& request, bool left) {
  SumColumnsOfSide carried;
  if (request.output() != Output::kSums) return carried;
  const PairSums& sums = *request.sums();
  const bool right = !left || request.self_join();
  carried.count =
      (left ? sums.left_columns : 0) + (right ? sums.right_columns + sums.integer_columns : 0);
  if ((left ? request.left() : request.right()).file != nullptr) return carried;
  const auto add = [&](const auto* columns, std::uint32_t count) {
    carried.columns.insert(carried.columns.end(), columns, columns + count);
  };
  if (left) add(sums.left, sums.left_columns);
  if (right) add(sums.right, sums.right_columns);
  if (right) add(sums.integers, sums.integer_columns);
  return carried;
}

/// A pair whose numbers are added up.
struct SummedPair {
  const PairSums& sums;
  std::uint64_t left, right;
  double distance;

  double number(ValueStep step, std::uint32_t column) const {
    if (step == ValueStep::kDistance) return distance;
    return step == ValueStep::kLeft ? sums.left[column][left] : sums.right[column][right];
  }
  std::int64_t integer(std::uint32_t number) const { return sums.integers[number][right]; }
};

/// The dimension that separates boxes best.
Cut choose_box_cut(const JoinRequest& request) {
  const std::uint32_t d = choose_box_strategy(request).dimension;
  return {{d, request.left().dims / 2 + d}, make_box_test(request.metric(), request.eps()).reach};
}

}  // namespace

Cut choose_cut(const JoinRequest& request, const Strategy& strategy, const WalkCosts& costs) {
  if (is_of_bits(request.metric())) return {{0, 0}, std::numeric_limits<double>::max()};
  if (strategy.reference_points > 0) {
    JoinRequest by_columns = request;
    by_columns.knobs.index = IndexMethod::kGrid;
    return choose_cut(request, choose_strategy(by_columns, costs), costs);
  }
  const std::uint32_t column = strategy.sort_column != kNoColumn
                                   ? static_cast<std::uint32_t>(strategy.sort_column)
                                   : strategy.grid_columns[0];
  const std::uint32_t key = column - request.left().dims;
  if (column >= request.left().dims) return {{column, column}, request.keys.reach[key]};
  return {{column, column}, make_threshold(request.metric(), request.eps()).reach};
}

Cut cut_by_length(const JoinRequest& request, const LengthClasses& classes) {
  const std::uint32_t column = request.left().dims + classes.column;
  return {{column, column + 1, classes.bounds}, std::numeric_limits<double>::max()};
}

unsigned dividing_threads(const JoinRequest& request) {
  constexpr std::uint64_t kRowsOfThread = std::uint64_t{1} << 17;
  std::uint64_t rows = 0;  // of a side in memory
  for (const Dataset* const side : {&request.left(), &request.right()})
    if (side->file == nullptr) rows = std::max<std::uint64_t>(rows, side->rows);
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>(rows / kRowsOfThread, 1, std::max(request.resources.threads, 1u)));
}

JoinRequest request_of_step(const JoinRequest& request, const Output& output, const Sides& sides,
                            std::uint64_t memory_limit) {
  JoinRequest step = request.asking(output);
  step.sides = sides;
  step.knobs.batch_pairs = 0;
  step.resources.scratch = nullptr;
  step.resources.memory_limit = memory_limit;
  return step;
}

std::uint64_t sum_row_bytes(const JoinRequest& request) {
  if (request.output() != Output::kSums) return 0;
  const PairSums& sums = *request.sums();
  const std::uint64_t columns = sums.left_columns + sums.right_columns + sums.integer_columns,
                      found = 1 + row_words(sums);
  return sizeof(FoldWord) * (2 * (request.self_join() ? 2 : 1) * columns + 2 * found);
}

std::uint64_t part_row_bytes(const JoinRequest& request) {
  return std::max(row_bytes(request.left(), carried(request, true).count),
                  row_bytes(request.right(), carried(request, false).count));
}

PartitionedJoin::PartitionedJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget,
                                 std::unique_ptr<PartJoins> parts)
    : request_(request), budget_(std::move(budget)), parts_(std::move(parts)) {
  if (request.output() == Output::kSums) sum_width_ = row_words(*request.sums());
  done_.left_rows = request.left().rows;
  done_.right_rows = request.right().rows;
}

/// Whatever is on its way into memory stops.
PartitionedJoin::~PartitionedJoin() {
  if (dividers_) dividers_->stop();
}

void PartitionedJoin::begin() {
  if (request_.output() == Output::kTopPairs)
    top_.emplace(*budget_, request_, TopkMethod::kThreshold);
  std::uint64_t rows = kMaxRows;
  if (request_.left().rows > 0) {
    cut_ = request_.shape() == Shape::kBoxes ? choose_box_cut(request_) : parts_->cut();
    rows = parts_->part_rows();
    loads_ahead_ = parts_->loads_ahead();
  }
  const std::uint64_t memory =
      request_.resources.memory_limit == 0
          ? std::uint64_t{1} << 30
          : static_cast<std::uint64_t>(kDividingShare *
                                       static_cast<double>(request_.resources.memory_limit)) /
                (request_.self_join() ? 1 : 2);
  dividers_.emplace(dividing_threads(request_));
  const bool named = request_.output() != Output::kTotal;
  left_side_.emplace(*budget_, request_.left(), cut_.column, rows, memory,
                     request_.resources.scratch, *dividers_, carried(request_, true), named);
  if (!request_.self_join())
    right_side_.emplace(*budget_, request_.right(), cut_.column, rows, memory,
                        request_.resources.scratch, *dividers_, carried(request_, false), named);
}

/// Divides some more rows; true when all are divided.
bool PartitionedJoin::divide() {
  if (divided_) return true;
  if (!left_side_) begin();
  if (left_side_->divide() || (right_side_ && right_side_->divide())) return false;
  list_steps();
  return divided_ = true;
}

/// Whether each order of a pair of parts of a self-join is a step of its own, since counts belong
/// to the left row.
bool PartitionedJoin::both_orders() const {
  return request_.output() == Output::kCountPerRow || request_.output() == Output::kSums;
}

/// The pairs of parts that may hold pairs of rows: the cut values of such two rows differ by at
/// most `reach`, and so do some values of their parts. Every pair of rows lies in just one pair of
/// parts. A left part meets first the right part that is in memory by then, and of a self-join last
/// the part that is the next left one: where parts meet only those beside them, each is read once.
void PartitionedJoin::list_steps() {
  const DividedSide& left = *left_side_;
  const DividedSide& right = right_side();
  const bool self_join = request_.self_join();
  std::size_t in_memory = kNoPart;
  for (std::size_t i = 0; i < left.parts(); ++i) {
    std::vector<std::size_t> partners;
    for (std::size_t j = self_join && !both_orders() ? i : 0; j < right.parts(); ++j)
      if (are_within_reach(left.extent(i), right.extent(j), cut_.reach)) partners.push_back(j);
    move_to_front(partners, in_memory);
    if (self_join) move_to_back(partners, i + 1);
    for (const std::size_t j : partners)
      steps_.push_back({i, j, self_join && i == j, {0, left.rows(i)}, {0, right.rows(j)}});
    // Rows that meet no others are counted all the same.
    if (partners.empty() && both_orders())
      steps_.push_back({i, i, false, {0, left.rows(i)}, {0, 0}});
    if (self_join)
      in_memory = i;  // as the left part of the steps before
    else if (!partners.empty())
      in_memory = partners.back();
  }
  std::reverse(steps_.begin(), steps_.end());
  for (const Step& step : steps_) steps_work_ += work_of(step);
  if (both_orders()) make_room_for_counts();
}

// ---- Steps

/// The pairs of rows that a step compares at most. Halves of it have as many together.
std::uint64_t PartitionedJoin::work_of(const Step& step) const {
  const std::uint64_t pairs = step.left_range.rows * step.right_range.rows;
  return step.self && !both_orders() ? pairs / 2 : pairs;
}

/// Whether both sides of the step are pieces of one part.
bool PartitionedJoin::is_one_part(const Step& step) const {
  return request_.self_join() && step.left == step.right;
}

const DividedSide& PartitionedJoin::right_side() const {
  return request_.self_join() ? *left_side_ : *right_side_;
}

void PartitionedJoin::load(LoadedPart& part, const DividedSide& side, std::size_t number) {
  if (part.number == number) return;
  part = {};
  if (!ahead_.take(side, number, &part.rows)) part.rows = side.load(number);
  part.slot = std::make_shared<SideSlot>();
  part.number = number;
}

/// A part of a self-join may be in memory where the other one of the step is wanted.
void PartitionedJoin::load_parts(const Step& step) {
  if (request_.self_join() && (left_.number != step.left || right_.number == step.right) &&
      right_.number == step.left)
    std::swap(left_, right_);
  load(left_, *left_side_, step.left);
  if (meets_right(step)) load(right_, right_side(), step.right);
}

/// Whether the step wants a part of the right side besides the left one.
bool PartitionedJoin::meets_right(const Step& step) const {
  return !is_one_part(step) && step.right_range.rows > 0;
}

bool PartitionedJoin::is_loaded(const DividedSide& side, std::size_t number) const {
  return (&side == &*left_side_ && left_.number == number) ||
         (&side == &right_side() && right_.number == number);
}

/// Begins to load what the steps after the current one want first of what is not in memory.
void PartitionedJoin::load_ahead() {
  constexpr std::size_t kSteps = 4;  // halves of parts may be many steps
  for (std::size_t next = 1; loads_ahead_ && next <= kSteps && next < steps_.size(); ++next) {
    const Step& step = steps_[steps_.size() - 1 - next];
    if (!is_loaded(*left_side_, step.left)) return ahead_.begin(*left_side_, step.left);
    if (meets_right(step) && !is_loaded(right_side(), step.right))
      return ahead_.begin(right_side(), step.right);
  }
}

JoinRequest PartitionedJoin::part_request(const Step& step) {
  JoinRequest part = request_;
  const LoadedPart& right_part = is_one_part(step) ? left_ : right_;
  Dataset left = piece_of(left_.rows.view, step.left_range.first, step.left_range.rows);
  Dataset right = piece_of(right_part.rows.view, step.right_range.first, step.right_range.rows);
  if (both_orders()) {  // rows go by their places in the piece
    left = unnamed(left);
    right = unnamed(right);
    if (request_.output() == Output::kSums) {
      ask_sums(step, &part);
    } else if (request_.pairs() == PairSelection::kUnordered) {
      part = part.asking(Output::pairs());
    }
  } else if (top_) {
    Top top = request_.top();
    top.least_key = top_->least_key();
    top.parts_of_one = request_.orders_pairs();
    part = part.asking(Output::top_pairs(top));
  }
  part.sides = step.self ? Sides::one(left, request_.pairs()) : Sides::two(left, right);
  if (!cut_.column.lengths.empty() && step.right_range.rows > 0)
    part.keys = keys_of_class(
        request_.keys, cut_.column.low - request_.left().dims,
        std::max(left_side_->extent(step.left).high, right_side().extent(step.right).high));
  part.resources.scratch = nullptr;
  return part;
}

/// Points the sums at the columns of the step's pieces. Which of two rows of different parts comes
/// first no engine knows: there pairs are asked for, and added up here.
void PartitionedJoin::ask_sums(const Step& step, JoinRequest* part) {
  const RowCopy& right = is_one_part(step) ? left_.rows : right_.rows;
  step_sums_ = *request_.sums();
  const auto place = [](const RowCopy& rows, const Range& range, std::uint32_t from,
                        std::uint32_t count, auto* columns) {
    using Column = typename std::decay_t<decltype(*columns)>::value_type;
    columns->clear();
    for (std::uint32_t c = 0; c < count; ++c)
      columns->push_back(rows.column_count == 0
                             ? nullptr
                             : static_cast<Column>(rows.column(from + c)) + range.first);
    return columns->data();
  };
  const std::uint32_t first = request_.self_join() ? step_sums_.left_columns : 0;
  step_sums_.left = place(left_.rows, step.left_range, 0, step_sums_.left_columns, &left_columns_);
  step_sums_.right =
      place(right, step.right_range, first, step_sums_.right_columns, &right_columns_);
  step_sums_.integers = place(right, step.right_range, first + step_sums_.right_columns,
                              step_sums_.integer_columns, &integer_columns_);
  const bool ordered = request_.pairs() == PairSelection::kUnordered;
  *part = part->asking(!ordered                     ? Output::sums(&step_sums_)
                       : wants_distance(step_sums_) ? Output::pairs_with_distances()
                                                    : Output::pairs());
}

void PartitionedJoin::open_step() {
  const Step& step = steps_.back();
  step_delivered_ = false;
  load_parts(step);
  load_ahead();
  ++ids_generation_;
  LoadedPart& right = is_one_part(step) ? left_ : right_;
  const bool whole = step.right_range.rows > 0 &&
                     step.left_range.rows == left_side_->rows(step.left) &&
                     step.right_range.rows == right_side().rows(step.right);
  join_ =
      parts_->open(part_request(step), whole ? left_.slot : nullptr, whole ? right.slot : nullptr);
}

void PartitionedJoin::end_step() {
  done_ = stats_with(done_, join_.get());
  ++done_.parts;
  join_.reset();
  steps_.pop_back();
  parts_->enforce_limits(true);
}

/// Puts steps with halves of the current one's rows in its place.
void PartitionedJoin::split_step() {
  const Step step = steps_.back();
  steps_.pop_back();
  const auto first_half = [](const Range& range) { return Range{range.first, range.rows / 2}; };
  const auto second_half = [](const Range& range) {
    return Range{range.first + range.rows / 2, range.rows - range.rows / 2};
  };
  const auto add = [&](const Range& left, const Range& right, bool self) {
    if (left.rows > 0 && right.rows > 0)
      steps_.push_back({step.left, step.right, self, left, right});
  };
  const Range left_one = first_half(step.left_range), left_two = second_half(step.left_range);
  const Range right_one = first_half(step.right_range), right_two = second_half(step.right_range);
  add(left_one, right_one, step.self);
  add(left_two, right_two, step.self);
  add(left_one, right_two, false);
  if (!step.self || both_orders()) add(left_two, right_one, false);
}

/// The next batch of the current step; kEnd also where the step was split, or is to be begun again.
Status PartitionedJoin::next_of_step(ResultBatch* batch) {
  const Step& step = steps_.back();
  try {
    if (!join_) open_step();
    const Status status = join_->next_batch(batch);
    step_delivered_ = step_delivered_ || status.ok();
    if (status.code == StatusCode::kEnd) end_step();
    return status;
  } catch (const MemoryLimitExceeded&) {
    const bool few = std::max(step.left_range.rows, step.right_range.rows) < kFewestRows;
    loads_ahead_ = false;
    const bool had_more = ahead_.drop();
    if (step_delivered_ || (few && !had_more && !(delivered_ && request_.resources.soft_limits)))
      throw;
    join_.reset();
    for (const LoadedPart* const part : {&left_, &right_})
      if (part->slot) part->slot->put(nullptr);
    if (had_more) return {StatusCode::kEnd};
    if (few)
      parts_->enforce_limits(false);
    else
      split_step();
  }
  return {StatusCode::kEnd};
}

// ---- Results

/// Whether the steps' answers are put together before they are delivered.
bool PartitionedJoin::gathers() const {
  return request_.output() != Output::kPairs && request_.output() != Output::kPairsWithDistances;
}

/// Whether each pair of a step stands for both of its orders.
bool PartitionedJoin::mirrors(const Step& step) const {
  return request_.self_join() && !step.self && !both_orders() && !top_ &&
         request_.pairs() != PairSelection::kUnordered;
}

void PartitionedJoin::take(const ResultBatch& batch) {
  if (top_)
    top_->add(request_, batch);
  else if (both_orders())
    take_counts(batch);
  else
    total_ += batch.pair_count * (mirrors(steps_.back()) ? 2 : 1);
}

/// Adds the counts of a step to the ones of its left part.
void PartitionedJoin::take_counts(const ResultBatch& batch) {
  const Step& step = steps_.back();
  const RowCopy& right = is_one_part(step) ? left_.rows : right_.rows;
  const auto place = [](const Range& range, std::int64_t id) {
    return range.first + static_cast<std::uint64_t>(id);
  };
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const std::uint64_t a = place(step.left_range, batch.left_ids[batch.rows[i]]);
    if (batch.counts != nullptr) {
      counts_[a] += batch.counts[i];
      if (sum_width_ > 0)
        merge_rows(*request_.sums(), sums_.data() + a * sum_width_, batch.sums + i * sum_width_);
      continue;
    }
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      const std::uint64_t b = place(step.right_range, batch.right_ids[batch.neighbors[at]]);
      const bool ties = left_.rows.ids[a] == right.ids[b];
      const bool is_first = ties ? std::pair(step.left, a) < std::pair(step.right, b)
                                 : left_.rows.ids[a] < right.ids[b];
      if (!is_first && !step.self) continue;
      const std::uint64_t row = is_first ? a : b;
      ++counts_[row];
      if (sum_width_ == 0) continue;
      const std::uint64_t p = a - step.left_range.first, q = b - step.right_range.first;
      const SummedPair pair{step_sums_, is_first ? p : q, is_first ? q : p,
                            batch.distances != nullptr ? batch.distances[at] : NAN};
      fold_pair(step_sums_, pair, sums_.data() + row * sum_width_);
    }
  }
}

/// For the rows of any left part.
void PartitionedJoin::make_room_for_counts() {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < left_side_->parts(); ++i)
    most = std::max<std::uint64_t>(most, left_side_->rows(i));
  counts_ = Buffer<std::uint64_t>(*budget_, most);
  positions_ = Buffer<std::uint32_t>(*budget_, most);
  sums_ = Buffer<FoldWord>(*budget_, most * sum_width_);
  std::iota(positions_.begin(), positions_.end(), 0u);
}

/// Before the steps of a left part: no pairs yet.
void PartitionedJoin::start_counts() {
  counting_ = true;
  counted_rows_ = left_side_->rows(steps_.back().left);
  std::fill_n(counts_.begin(), counted_rows_, 0);
  for (std::uint64_t row = 0; sum_width_ > 0 && row < counted_rows_; ++row)
    clear_row(*request_.sums(), sums_.data() + row * sum_width_);
}

/// After the steps of the left part that is in memory.
ResultBatch PartitionedJoin::end_counts() {
  counting_ = false;
  ResultBatch batch{};
  batch.pair_count =
      std::accumulate(counts_.begin(), counts_.begin() + counted_rows_, std::uint64_t{0});
  batch.row_count = counted_rows_;
  batch.rows = positions_.data();
  batch.counts = counts_.data();
  if (sum_width_ > 0) batch.sums = sums_.data();
  batch.set_ids(left_.rows.ids.data(), counted_rows_, left_.rows.ids.data(), counted_rows_);
  batch.ids_generation = ++ids_generation_;
  return batch;
}

/// What is delivered after all steps.
Status PartitionedJoin::finish(ResultBatch* batch) {
  if (top_) {
    if (!top_batches_) {
      top_->finish();
      top_batches_.emplace(*budget_, request_, *top_);
    }
    return {top_batches_->next(batch) ? StatusCode::kOk : StatusCode::kEnd};
  }
  if (request_.output() != Output::kTotal || total_delivered_) return {StatusCode::kEnd};
  total_delivered_ = true;
  *batch = {};
  batch->pair_count = total_;
  return {};
}

Status PartitionedJoin::next_of_steps(ResultBatch* batch) {
  while (!divide())
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  while (!steps_.empty()) {
    if (both_orders() && !counting_) start_counts();
    const std::size_t left = steps_.back().left;
    const bool mirrored = mirrors(steps_.back());
    const Status status = next_of_step(batch);
    if (status.code == StatusCode::kEnd) {
      if (counting_ && (steps_.empty() || steps_.back().left != left)) {
        *batch = end_counts();
        return {};
      }
      if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
      continue;
    }
    if (!status.ok()) return status;
    if (!gathers()) {
      batch->mirrored = batch->mirrored || mirrored;
      if (mirrored) batch->pair_count *= 2;
      batch->ids_generation = ids_generation_;
      return {};
    }
    take(*batch);
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  }
  return finish(batch);
}

Status PartitionedJoin::next_batch(ResultBatch* batch) {
  try {
    const Status status = next_of_steps(batch);
    if (status.ok()) {
      delivered_ = true;
      ++done_.batches;
      done_.pairs += batch->pair_count;
    }
    return status;
  } catch (const RowFileFailed& failed) {
    return failed.status;
  }
}

/// The work of all steps, in pairs of rows, and of these how many there are before the current one
/// and in the part of it that is done.
void PartitionedJoin::stats(JoinStats* stats) const {
  *stats = stats_with(done_, join_.get());
  if (steps_work_ == 0) return;
  std::uint64_t left = 0;
  for (const Step& step : steps_) left += work_of(step);
  double done = static_cast<double>(steps_work_ - std::min(steps_work_, left));
  if (!steps_.empty() && join_ && stats->work > 0)
    done += static_cast<double>(work_of(steps_.back())) * static_cast<double>(stats->work_done) /
            static_cast<double>(stats->work);
  stats->work = steps_work_;
  stats->work_done = std::min(steps_work_, static_cast<std::uint64_t>(done));
}

}  // namespace gpujoin
