// Who waits for whom: turns on the device, places on the CPU, and memory.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/request/request.h"
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
      EXPECT_TRUE(ends || is_raised(interrupt.flag()));
      turns.give_back(use);
    }
  });
  while (slices == 0) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    Interrupt interrupt;
    DeviceUse use(interrupt);
    ASSERT_TRUE(turns.take(use));
    EXPECT_FALSE(is_raised(interrupt.flag()));
    const int before = slices;
    turns.give_back(use);
    while (slices == before) std::this_thread::yield();
  }
  ends = true;
  large.join();
  EXPECT_GE(slices, 10);
}

/// Waits without a word to the system while the other thread is likely to be at work, too.
template <class Holds>
void spin_until(const Holds& holds) {
  for (int looks = 0; !holds(); ++looks)
    if (looks > 10000) std::this_thread::yield();
}

/// However a cancel and the beginning of a turn fall together, in as many rounds as there is time
/// for.
TEST(ServiceTurns, a_cancel_is_never_lost_to_who_goes_on) {
  constexpr int kRounds = 200000;
  const auto end = std::chrono::steady_clock::now() + 300ms;
  std::vector<Interrupt> interrupts(kRounds);
  std::atomic<int> cancelled{0}, going_on{0};
  std::thread client([&] {
    for (int i = 0; i < kRounds; ++i) {
      spin_until([&] { return going_on > i; });
      interrupts[static_cast<std::size_t>(i)].cancel();
      cancelled = i + 1;
    }
  });
  int lost = 0;
  for (int i = 0; i < kRounds; ++i) {
    Interrupt& interrupt = interrupts[static_cast<std::size_t>(i)];
    const bool has_time = std::chrono::steady_clock::now() < end;
    going_on = has_time ? i + 1 : kRounds;
    if (!has_time) break;
    for (int looks = i % 512; looks > 0; --looks) static_cast<void>(cancelled.load());
    interrupt.go_on();
    spin_until([&] { return cancelled > i; });
    lost += !is_raised(interrupt.flag());
  }
  client.join();
  EXPECT_EQ(lost, 0);
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
  EXPECT_TRUE(is_raised(waits.flag())) << "a cancel outlasts the turn";
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

TEST(ServiceAdmission, what_waiting_clients_keep_counts_but_stops_nobody) {
  Admission admission;
  admission.configure(2, 1000);
  Interrupt interrupt, gone;
  gone.cancel();
  const JoinSize first = {0, 500, 400}, half = {0, 500};
  ASSERT_TRUE(admission.take_memory(first, interrupt));
  admission.give_memory(first);  // 400 are still used
  ASSERT_TRUE(admission.take_memory(half, interrupt));
  EXPECT_FALSE(admission.take_memory(half, gone)) << "beside what is kept and what works";
  admission.retake_memory(first);
  admission.give_memory(first);
  admission.give_memory(half);
  ASSERT_TRUE(admission.take_memory({0, 900}, interrupt)) << "nobody works";
  admission.give_memory({0, 900});
  admission.give_kept(first);
  ASSERT_TRUE(admission.take_memory(half, interrupt));
  ASSERT_TRUE(admission.take_memory(half, interrupt)) << "nothing is kept any more";
}

}  // namespace
}  // namespace gpujoin::test
