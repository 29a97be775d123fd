// The join of boxes of the CUDA engine: its method, and the walk by it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device/sliced_join.h"
#include "engine/joins/work_share.h"
#include "engine/request/buffer.h"
#include "engine/strategy/box_strategy.h"

namespace gpujoin::cuda {

/// `request` is one for Shape::kBoxes; else as SlicedJoin.
class BoxJoin final : public SlicedJoin {
 public:
  BoxJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
          const WorkShare& work = {});
  ~BoxJoin() override { halt(); }

 private:
  void prepare() override;

  const WorkShare work_;
  BoxStrategy strategy_{};
  Buffer<std::int64_t> left_numbers_, right_numbers_;  ///< where rows have no ids
};

}  // namespace gpujoin::cuda
