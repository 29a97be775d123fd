// What conversations are made of: packets with descriptors, and memory that two processes share.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "points.h"
#include "service/failure.h"
#include "service/protocol/channel.h"
#include "service/region.h"
#include "service_client.h"

namespace gpujoin::test {
namespace {

using namespace service;

class ServiceChannel : public testing::Test {
 protected:
  ServiceChannel() { socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }
  ~ServiceChannel() override {
    close(ends[0]);
    close(ends[1]);
  }
  ChannelState receive() { return receive_message(ends[1], buffer, sizeof buffer, &files); }

  int ends[2];
  alignas(64) unsigned char buffer[kMostMessageBytes];
  Descriptors files;
};

TEST_F(ServiceChannel, messages_arrive_whole_with_their_descriptors) {
  EXPECT_EQ(receive(), ChannelState::kWait);
  EvictTables message;
  start_message(&message);
  message.relation = 42;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(send_message(ends[0], message, pipe_ends, 2), ChannelState::kDone);
  for (const int end : pipe_ends) close(end);
  ASSERT_EQ(receive(), ChannelState::kDone);
  ASSERT_NE(message_as<EvictTables>(buffer), nullptr);
  EXPECT_EQ(message_as<EvictTables>(buffer)->relation, 42u);
  EXPECT_EQ(message_as<Next>(buffer), nullptr);
  const int reading = files.take(), writing = files.take();
  EXPECT_EQ(files.take(), -1);
  EXPECT_EQ(write(writing, "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(reading, &byte, 1), 1);
  EXPECT_NE(fcntl(reading, F_GETFD) & FD_CLOEXEC, 0);
  close(reading);
  close(writing);
}

TEST_F(ServiceChannel, packets_of_wrong_sizes_close_it) {
  Next message;
  start_message(&message);
  send(ends[0], &message, sizeof message - 1, 0);
  EXPECT_EQ(receive(), ChannelState::kClosed);
  message.header.bytes = 4000;
  send(ends[0], &message, sizeof message, 0);
  EXPECT_EQ(receive(), ChannelState::kClosed);
  send(ends[0], &message, 3, 0);
  EXPECT_EQ(receive(), ChannelState::kClosed);
  std::vector<unsigned char> large(kMostMessageBytes + 1);
  message.header.bytes = static_cast<std::uint32_t>(large.size());
  std::memcpy(large.data(), &message, sizeof message);
  send(ends[0], large.data(), large.size(), 0);
  EXPECT_EQ(receive(), ChannelState::kClosed);
}

TEST_F(ServiceChannel, an_end_that_is_gone_closes_it) {
  Next message;
  start_message(&message);
  close(ends[0]);
  EXPECT_EQ(receive(), ChannelState::kClosed);
  EXPECT_EQ(send_message(ends[1], message), ChannelState::kClosed);
  ends[0] = dup(ends[1]);
}

TEST_F(ServiceChannel, the_user_at_the_other_end_is_known) {
  EXPECT_TRUE(is_same_user(ends[0]) && is_same_user(ends[1]));
  close(ends[0]);
  EXPECT_TRUE(is_same_user(ends[1])) << "who has connected, though he is gone";
  ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(is_same_user(ends[0])) << "no socket";
}

TEST(ServiceChannelUser, another_one_at_the_other_end_is_noticed) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  int others[2];
  as_another_user([&] { ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, others), 0); });
  for (const int end : others) {
    EXPECT_FALSE(is_same_user(end));
    close(end);
  }
}

TEST_F(ServiceChannel, more_messages_than_the_socket_has_room_for_wait) {
  Batch message;
  start_message(&message);
  int sent = 0;
  while (sent < 100000 && send_message(ends[0], message) == ChannelState::kDone) ++sent;
  EXPECT_GT(sent, 2);
  EXPECT_EQ(send_message(ends[0], message), ChannelState::kWait);
  for (; sent > 0; --sent) ASSERT_EQ(receive(), ChannelState::kDone);
  EXPECT_EQ(receive(), ChannelState::kWait);
}

TEST(ServiceChannelBuild, another_build_is_noticed) {
  Hello hello;
  fill_hello(&hello, 7, "/", 8);
  EXPECT_TRUE(is_same_build(hello));
  ++hello.sizes.strategy;
  EXPECT_FALSE(is_same_build(hello));
}

TEST(ServiceRegion, memory_grows_and_is_the_same_for_both) {
  SharedRegion region;
  ASSERT_TRUE(create_region("test", 1 << 20, &region).ok());
  ASSERT_TRUE(grow_region(&region, 10).ok());
  region.base[9] = 42;
  unsigned char* const before = region.base;
  ASSERT_TRUE(grow_region(&region, 1 << 19).ok());
  EXPECT_EQ(region.base, before);
  EXPECT_EQ(region.base[(1 << 19) - 1], 0);
  SharedRegion other;
  ASSERT_TRUE(map_region(dup(region.file), 1 << 19, &other).ok());
  EXPECT_EQ(other.base[9], 42);
  region.base[10] = 43;
  EXPECT_EQ(other.base[10], 43);
  close_region(&other);
  EXPECT_EQ(grow_region(&region, 2 << 20).code, StatusCode::kOutOfMemory);
  EXPECT_EQ(region.base[9], 42);
  close_region(&region);
  close_region(&region);
}

TEST(ServiceRegion, what_is_too_small_or_might_shrink_is_refused) {
  SharedRegion region, other;
  ASSERT_TRUE(create_region("test", 1 << 20, &region).ok());
  ASSERT_TRUE(grow_region(&region, 4096).ok());
  EXPECT_EQ(map_region(dup(region.file), 4097, &other).code, StatusCode::kInvalidArgument);
  EXPECT_NE(ftruncate(region.file, 0), 0);
  const int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, 4096), 0);
  EXPECT_EQ(map_region(unsealed, 4096, &other).code, StatusCode::kInvalidArgument);
  const int no_memory = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(map_region(no_memory, 0, &other).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(map_region(-1, 0, &other).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(other.file, -1);
  close_region(&region);
}

TEST(ServiceRegion, nobody_writes_what_is_sealed) {
  SharedRegion region, other;
  ASSERT_TRUE(create_region("test", 1 << 20, &region).ok());
  ASSERT_TRUE(grow_region(&region, 8192).ok());
  region.base[5000] = 1;
  EXPECT_EQ(map_sealed_region(dup(region.file), 8192, &other).code, StatusCode::kInvalidArgument);
  // Another process that still maps it for writing, as a parallel worker might.
  SharedRegion writer;
  ASSERT_TRUE(open_region(getpid(), region.file, 8192, true, &writer).ok());
  EXPECT_FALSE(seal_region(&region));
  EXPECT_EQ(region.base[5000], 1);
  close_region(&writer);
  unsigned char* const before = region.base;
  ASSERT_TRUE(seal_region(&region) && seal_region(&region));
  EXPECT_EQ(region.base, before);
  EXPECT_EQ(region.base[5000], 1);
  ASSERT_TRUE(map_sealed_region(dup(region.file), 8192, &other).ok());
  region.base[5000] = 2;  // which only this mapping shows
  EXPECT_EQ(other.base[5000], 1);
  EXPECT_EQ(pwrite(region.file, "x", 1, 5000), -1);
  EXPECT_EQ(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, region.file, 0), MAP_FAILED);
  EXPECT_FALSE(open_region(getpid(), region.file, 8192, true, &writer).ok());
  EXPECT_FALSE(grow_region(&region, 1 << 20).ok());
  EXPECT_EQ(other.base[5000], 1);
  close_region(&other);
  close_region(&region);
}

TEST(ServiceRegion, an_owned_one_grows_beyond_its_reserve) {
  Region region("test", 0);
  std::uint64_t written = 0;
  for (const std::uint64_t bytes : {100u, 5000u, 1u << 20}) {
    region.grow(bytes);
    EXPECT_GE(region.bytes(), bytes);
    for (std::uint64_t i = 0; i < written; ++i)
      ASSERT_EQ(region.data()[i], static_cast<unsigned char>(i * 7));
    for (; written < bytes; ++written)
      region.data()[written] = static_cast<unsigned char>(written * 7);
  }
  SharedRegion reading;
  ASSERT_TRUE(map_region(region.open_for_reading(), 1 << 20, &reading).ok());
  EXPECT_EQ(reading.base[4999], region.data()[4999]);
  EXPECT_EQ(mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, reading.file, 0), MAP_FAILED);
  close_region(&reading);
  EXPECT_THROW(Region(region.open_for_reading(), 1 << 20), Failure) << "it is not sealed";
}

}  // namespace
}  // namespace gpujoin::test
