#include "cuda/boxes/box_join.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cuda/boxes/box_walk.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

BoxJoin::BoxJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
                 const WorkShare& work)
    : SlicedJoin(request, std::move(resources)), work_(work) {
  stats_.threads = 1;  // until rows are copied
}

void BoxJoin::prepare() {
  if (stats_.left_rows == 0 || stats_.right_rows == 0) return start_without_pairs();
  strategy_ = choose_box_strategy(request_, kBoxCosts);
  stats_.box_method = strategy_.method;
  stats_.strategy.sort_column = kNoColumn;
  stats_.strategy.estimated_pairs = strategy_.pairs;
  std::copy_n(strategy_.reason, sizeof strategy_.reason, stats_.strategy.reason);
  stop_.emplace(*resources_, stream_);
  auto walk =
      std::make_unique<BoxWalk>(request_, strategy_, work_, *resources_, stop_->get(), stream_);
  if (wants_pairs(request_.output())) {
    left_ids_ = ids_of_rows(request_.left(), left_numbers_);
    right_ids_ = request_.self_join() ? left_ids_ : ids_of_rows(request_.right(), right_numbers_);
  }
  start(std::move(walk), request_.self_join() && request_.pairs() != PairSelection::kUnordered);
}

}  // namespace gpujoin::cuda
