// Who waits for whom: turns on the device, places on the CPU, and memory.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "service/admission.h"
#include "service/turns.h"

namespace gpujoin::test {
namespace {

using namespace service;
using namespace std::chrono_literals;

/// A join without end gives way to each of many small ones, and goes on in between.
TEST(ServiceTurns, the_one_at_work_is_asked_to_yield) {
  Turns turns;
  std::atomic<bool> ends{false};
  std::atomic<int> slices{0};
  std::thread large([&] {
    Interrupt interrupt;
    DeviceUse use(interrupt);
    while (!ends) {
      EXPECT_TRUE(turns.take(use));
      ++slices;
      while (!interrupt.is_to_yield() && !ends) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(ends || *interrupt.flag() != 0);
      turns.give_back(use);
    }
  });
  while (slices == 0) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    Interrupt interrupt;
    DeviceUse use(interrupt);
    ASSERT_TRUE(turns.take(use));
    EXPECT_EQ(*interrupt.flag(), 0);
    const int before = slices;
    turns.give_back(use);
    while (slices == before) std::this_thread::yield();
  }
  ends = true;
  large.join();
  EXPECT_GE(slices, 10);
}

TEST(ServiceTurns, who_is_cancelled_waits_no_longer) {
  Turns turns;
  Interrupt holds, waits;
  DeviceUse first(holds), second(waits);
  ASSERT_TRUE(turns.take(first));
  std::thread waiting([&] { EXPECT_FALSE(turns.take(second)); });
  std::this_thread::sleep_for(5ms);
  waits.cancel();
  waiting.join();
  turns.give_back(first);
  turns.take_to_close(second);
  EXPECT_NE(*waits.flag(), 0) << "a cancel outlasts the turn";
  turns.give_back(second);
  EXPECT_TRUE(turns.take(first));
  turns.give_back(first);
}

TEST(ServiceAdmission, classes_do_not_wait_for_each_other) {
  EXPECT_EQ(size_class_of(0), 0);
  EXPECT_EQ(size_class_of(17), 1);
  EXPECT_EQ(size_class_of(1e12), kSizeClasses - 1);
  Admission admission;
  admission.configure(2, 0);
  Interrupt interrupt;
  const JoinSize large = {5, 1}, small = {0, 1};
  ASSERT_TRUE(admission.take_place(large, interrupt));
  ASSERT_TRUE(admission.take_place(large, interrupt));
  ASSERT_TRUE(admission.take_place(small, interrupt));
  std::atomic<bool> entered{false};
  std::thread third([&] {
    EXPECT_TRUE(admission.take_place(large, interrupt));
    entered = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(entered);
  admission.give_place(large);
  third.join();
  Interrupt gone;
  gone.cancel();
  EXPECT_FALSE(admission.take_place(large, gone));
}

TEST(ServiceAdmission, memory_is_waited_for_but_by_the_first_and_the_small) {
  Admission admission;
  admission.configure(2, 1000);
  Interrupt interrupt, gone;
  gone.cancel();
  const JoinSize huge = {0, 5000}, half = {0, 500}, little = {0, 10};
  ASSERT_TRUE(admission.take_memory(huge, interrupt));
  ASSERT_TRUE(admission.take_memory(little, interrupt));
  EXPECT_FALSE(admission.take_memory(half, gone));
  std::thread waiting([&] { EXPECT_TRUE(admission.take_memory(half, interrupt)); });
  admission.give_memory(huge);
  waiting.join();
  EXPECT_FALSE(admission.take_memory(huge, gone));
}

}  // namespace
}  // namespace gpujoin::test
