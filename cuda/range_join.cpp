#include "cuda/range_join.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>
#include <utility>

#include "core/cosine.h"
#include "cuda/clusters/cluster_tiles.h"
#include "cuda/clusters/cluster_walk.h"
#include "cuda/device/tuning.h"
#include "cuda/grid/grid_walk.h"
#include "cuda/tiles/tensor_check.h"
#include "cuda/tiles/tile_walk.h"
#include "cuda/top/top_walk.h"

namespace gpujoin::cuda {
namespace {

constexpr IndexForm kForm{
    .value_bits = kSortValueBits, .single_distances = true, .wide_cluster_cells = false};

WalkSide walk_side(const PreparedSide& side) { return {&side.index(), side.ids()}; }

TileWalkSide tile_side(const PreparedSide& side) {
  return {&side.points(), &side.originals(), &side.index(), side.ids()};
}

/// Clusters have cells of unsorted points: fewer bits are sorted.
IndexForm form_of(const JoinRequest& request) {
  IndexForm form = kForm;
  if (request.output() == Output::kClusters) form.value_bits = 0;
  return form;
}

/// Clusters by cells, see cluster_cells_request(); else by tiles.
bool has_cluster_cells(const JoinRequest& request) {
  return request.knobs.index == IndexMethod::kGrid;
}

constexpr const char* kInexactTiles =
    "the tensor cores of the device are less exact than such joins need";

/// Directions only screen, and the walk of a grid has no screen; tiles know no scores, and add
/// nothing up.
IndexMethod index_of(const JoinRequest& request) {
  const IndexMethod asked = request.knobs.index;
  if (request.metric() == Metric::kCosine) return IndexMethod::kTiles;
  const bool by_grid = request.output() == Output::kTopPairs || request.output() == Output::kSums;
  if (!by_grid || asked == IndexMethod::kReferencePoints) return asked;
  return IndexMethod::kGrid;
}

/// Chooses in a thread of its own while rows are copied.
Strategy choose_meanwhile(const JoinRequest& request, const EarlyUpload& upload) {
  const auto choose = [&request] { return choose_strategy(request, kWalkCosts); };
  if (upload.bytes_left() < kFewestUploadBytes) return choose();
  std::future<Strategy> chosen;
  try {
    chosen = std::async(std::launch::async, choose);
  } catch (const std::system_error&) {
    return choose();  // there are no threads left
  }
  while (!upload.copy_piece() &&
         chosen.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
  }
  return chosen.get();
}

}  // namespace

EarlyUpload::EarlyUpload(const JoinRequest& request,
                         const std::shared_ptr<JoinResources>& resources,
                         const std::shared_ptr<SideSlot>& left_rows,
                         const std::shared_ptr<SideSlot>& right_rows)
    : uploader(std::make_shared<Uploader>(resources->host, request.resources.threads)),
      left(std::make_shared<ArrivingRows>(request.left(), resources, left_rows)),
      right(request.self_join() || (left_rows && left_rows == right_rows)
                ? left
                : std::make_shared<ArrivingRows>(request.right(), resources, right_rows)) {}

std::uint64_t EarlyUpload::bytes_left() const {
  if (!left) return 0;
  return left->bytes_left() + (right == left ? 0 : right->bytes_left());
}

std::shared_ptr<const RangePlan> plan_range_join(const JoinRequest& asked, JoinResources& resources,
                                                 const EarlyUpload& upload) {
  if (asked.output() == Output::kSums && asked.metric() == Metric::kCosine)
    throw Unable{"the device adds up no pairs by cosine distance"};
  JoinRequest request = asked;
  request.knobs.index = index_of(asked);
  Strategy strategy = choose_meanwhile(request, upload);
  const bool unsafe = strategy.index == IndexMethod::kTiles &&
                      !tensor_sums_are_close(resources.context, resources.stream);
  if (unsafe) {
    WalkCosts without_tiles = kWalkCosts;
    without_tiles.tile_pair = 0;
    strategy = choose_strategy(request, without_tiles);
  }
  const bool tiles = strategy.index == IndexMethod::kTiles;
  const bool only_tiles = request.metric() == Metric::kCosine ||
                          (request.output() == Output::kClusters && !has_cluster_cells(request));
  if (only_tiles && !tiles)
    throw Unable{unsafe ? kInexactTiles : "the device cannot join so many rows by tiles"};
  const auto rows = static_cast<double>(request.left().rows);
  RangePlan plan{.index = plan_index(request, strategy, form_of(request)),
                 .frame = {},
                 .candidates = std::max(1.0, strategy.estimate().candidates / rows),
                 .pairs = strategy.estimated_pairs / rows};
  if (tiles) plan.frame = choose_screen_frame(in_memory(request), strategy.reorder_dimensions);
  return std::make_shared<const RangePlan>(std::move(plan));
}

/// Makes room for the points, so that a lack of memory shows at once.
RangeJoin::RangeJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
                     RangeShares shares)
    : SlicedJoin(request, std::move(resources)),
      shares_(std::move(shares)),
      uploader_(shares_.upload.uploader
                    ? shares_.upload.uploader
                    : std::make_shared<Uploader>(resources_->host, request.resources.threads)),
      plan_(shares_.plan) {
  if (request.output() == Output::kTopPairs) {
    stats_.topk_method = method_of(request.knobs.topk_method);
    stats_.topk_rounds = 1;
  }
  if (stats_.left_rows == 0 || stats_.right_rows == 0) {
    if (wants_counts(request.output())) left_ids_ = ids_of_rows(request.left(), left_numbers_);
    start_without_pairs();
    return;
  }
  const Strategy& strategy = plan_->index.strategy;
  if (strategy.index == IndexMethod::kTiles &&
      !tensor_sums_are_close(resources_->context, stream_))  // it may be another device's plan
    throw Unable{kInexactTiles};
  stats_.strategy = strategy;
  stats_.strategy.access_pattern = pattern_of(request_, strategy.index);
  stop_.emplace(*resources_, stream_);
  queue_ = DeviceBuffer<unsigned>(resources_->device, 1, stream_);
  const bool copies = shares_.first && !shares_.work.is_first();
  const FirstSides first = copies ? *shares_.first : FirstSides{};
  left_ = find_side(shares_.left.get(), first.left);
  if (!left_) left_ = make_side(request_.left(), shares_.upload.left, shares_.left_rows);
  const bool same = request_.self_join() || (shares_.left && shares_.left == shares_.right);
  right_ = same ? left_ : find_side(shares_.right.get(), first.right);
  if (!right_) right_ = make_side(request_.right(), shares_.upload.right, shares_.right_rows);
  shares_.upload = {};  // the sides have the rows
  stats_.indexed_sides = static_cast<std::uint32_t>(own_sides_.size());
  stats_.reused_sides = (left_ == right_ ? 1 : 2) - stats_.indexed_sides;
}

/// The side as the plan has it, from its slot, or a copy of the first share's; or null.
std::shared_ptr<PreparedSide> RangeJoin::find_side(SideSlot* slot,
                                                   const std::weak_ptr<const PreparedSide>& first) {
  if (slot != nullptr) {
    if (auto side = slot->find(plan_.get()))
      return std::static_pointer_cast<PreparedSide>(std::move(side));
    slot->put(nullptr);  // memory for two there may not be
  }
  const auto made = first.lock();
  return made ? std::make_shared<PreparedSide>(*made, resources_) : nullptr;
}

/// One that has room for the points, some of which may have been copied already: then `rows` is not
/// null.
std::shared_ptr<PreparedSide> RangeJoin::make_side(const Dataset& data,
                                                   std::shared_ptr<ArrivingRows> rows,
                                                   const std::shared_ptr<SideSlot>& slot) {
  own_sides_.reserve(2);
  if (!rows) rows = std::make_shared<ArrivingRows>(data, resources_, slot);
  auto side = std::make_shared<PreparedSide>(std::move(rows), plan_, resources_);
  own_sides_.push_back({side.get(), &data});
  return side;
}

void RangeJoin::prepare() {
  if (indexed_ < own_sides_.size()) return upload_piece();
  stats_.index_ms = since_open_.milliseconds();
  finish_sides();
  start(make_source(),
        is_mirrored(pattern_of(request_, plan_->index.strategy.index), request_.pairs()));
}

/// A side is indexed as soon as it is there.
void RangeJoin::upload_piece() {
  const auto [side, data] = own_sides_[indexed_];
  if (!side->copy_piece(*uploader_)) return;
  side->index_points();
  if (request_.output() == Output::kTopPairs) side->order_scores(*data, *uploader_);
  if (++indexed_ == own_sides_.size()) step_.record(stream_);
}

/// Puts the ids of a side in order where they are wanted and are not; on the host, too, where they
/// name the batches.
void RangeJoin::name_points(PreparedSide& side, const Dataset& data) {
  const bool on_host = shares_.work.is_first();
  if (request_.output() == Output::kTotal || side.is_named(on_host)) return;
  side.name(data, *uploader_, on_host);
  side.finish();
}

/// After the indexes are there. What follows on the stream may use the sides, in this join and in
/// the ones that borrow them.
void RangeJoin::finish_sides() {
  for (const OwnSide& own : own_sides_) {
    own.side->finish_index();
    own.side->finish();
  }
  name_points(*left_, request_.left());
  if (right_ != left_) name_points(*right_, request_.right());
  left_->hold(stream_);
  right_->hold(stream_);
  left_ids_ = left_->host_ids();
  right_ids_ = right_->host_ids();
  if (shares_.left) shares_.left->put(left_);
  if (shares_.right) shares_.right->put(right_);
  if (shares_.first && shares_.work.is_first()) *shares_.first = {left_, right_};
}

/// Nothing else depends on extreme directions: tiles are sorted alike for every radius.
TileRadii RangeJoin::tile_radii() const {
  if (left_->extreme() || right_->extreme()) return {kAnyDirection, -1};
  return {plan_->index.eps, plan_->index.sure_eps};
}

std::unique_ptr<SliceSource> RangeJoin::make_source() {
  const unsigned* const stop = stop_->get();
  const DeviceContext& device = resources_->context;
  const bool tiles = plan_->index.strategy.index == IndexMethod::kTiles;
  if (tiles && request_.output() == Output::kClusters)
    return std::make_unique<ClusterTiles>(request_, *plan_, tile_radii(), tile_side(*left_),
                                          ClusterSharing{shares_.work, shares_.exchange},
                                          *resources_, stop);
  if (tiles)
    return std::make_unique<TileWalk>(request_, *plan_, tile_radii(), tile_side(*left_),
                                      tile_side(*right_), shares_.work, resources_->device,
                                      resources_->host, device.properties().multiProcessorCount,
                                      stop, stream_);
  const WalkSide left = walk_side(*left_), right = walk_side(*right_);
  if (request_.output() == Output::kClusters)
    return std::make_unique<ClusterWalk>(request_, *plan_, left, *resources_, stop);
  if (request_.output() == Output::kTopPairs)
    return std::make_unique<TopWalk>(
        request_, *plan_, make_join_view(request_, plan_->index, left, right, stop),
        left_->scores(), right_->scores(), shares_.work, *resources_, stream_);
  std::unique_ptr<DeviceSums> sums;
  if (request_.output() == Output::kSums)
    sums = std::make_unique<DeviceSums>(*request_.sums(), *left.index, *right.index,
                                        resources_->device, *uploader_, stream_);
  return std::make_unique<GridWalk>(request_, *plan_, left, right, shares_.work, resources_->device,
                                    resources_->host, device.resident_blocks(), stop, queue_.data(),
                                    stream_, std::move(sums));
}

void RangeJoin::stats(JoinStats* stats) const {
  SlicedJoin::stats(stats);
  stats->threads = uploader_->threads();
}

}  // namespace gpujoin::cuda
