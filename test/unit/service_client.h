// A client of the service for the tests: it says what a backend would, and waits where a backend
// would wait by its latch. And a server in this process to talk to.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine_harness.h"
#include "service/protocol/channel.h"
#include "service/protocol/shared_region.h"
#include "service/server.h"

namespace gpujoin::test {

/// A server on a socket of its own, served by a thread.
class TestServer {
 public:
  /// Without a device, or with one that is found so.
  explicit TestServer(service::FindEngine find_device = no_device);
  ~TestServer();

  const std::string& path() const { return path_; }
  /// Whether it takes no new clients, and whether it has none left and would end.
  bool is_closed() const { return closed_; }
  bool is_replaced() const { return replaced_; }
  /// Descriptors that this process has open, but for those that a thread's start takes for a
  /// moment.
  static int open_descriptors();

 private:
  static Status no_device(const EngineTable** engine);

  std::string path_;
  std::unique_ptr<service::Server> server_;
  std::atomic<bool> ending_{false}, closed_{false}, replaced_{false};
  std::thread accepting_;
};

/// Runs work() in a thread that has another effective user, as only root can: credentials are the
/// thread's own for the kernel, which glibc hides.
template <class Work>
void as_another_user(const Work& work) {
  constexpr uid_t kNobody = 65534;
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_setresuid, -1, kNobody, -1), 0);
    work();
  }).join();
  prctl(PR_SET_DUMPABLE, 1);  // which that took from the process
}

/// Shared memory of the test.
class TestRegion {
 public:
  TestRegion(const void* from, std::uint64_t bytes);
  TestRegion(TestRegion&& other) : region(std::exchange(other.region, {})) {}
  ~TestRegion() { service::close_region(&region); }

  service::SharedRegion region;
};

class Client {
 public:
  /// Connects, without a word. Fails the test where that cannot be.
  explicit Client(const std::string& path);
  ~Client() { hang_up(); }
  Client(const Client&) = delete;

  void hang_up();
  int socket() const { return socket_; }

  template <class Message>
  bool say(const Message& message, const std::vector<int>& files = {}) {
    return say_bytes(&message, sizeof message, files);
  }
  bool say_bytes(const void* message, std::size_t bytes, const std::vector<int>& files = {});
  /// Waits for a message of this kind; null: another one came, or the service has hung up.
  template <class Message>
  const Message* hear() {
    return hear_anything() ? service::message_as<Message>(message_) : nullptr;
  }
  /// False: the service has hung up.
  bool hear_anything(int wait_ms = 20000);
  /// The next descriptor of the last message.
  int take_file() { return files_.take(); }

  /// Says Hello and hears Welcome.
  bool greet(std::uint32_t database = 1);
  /// Sends a join of the request's own rows, sides of no table.
  bool open(const JoinRequest& request, service::WantedEngine engine = service::WantedEngine::kCpu);
  /// Sends a join whose left rows, named by position, are wanted by groups: `count` of them, and
  /// the group of each row.
  bool open_grouped(const JoinRequest& request, const std::vector<std::uint32_t>& group_of_row,
                    std::uint64_t count);
  /// Hears batches of groups to the end: the pairs and words of each; a group may come several
  /// times.
  Status collect_groups(
      const JoinRequest& request,
      std::map<std::uint32_t, std::pair<std::uint64_t, std::vector<FoldWord>>>* groups);
  /// Hears batches to the end. Where `most` is given, hangs up after so many.
  RunResult collect_batches(const JoinRequest& request, std::uint64_t most = ~std::uint64_t{0});
  /// greet(), open() and collect_batches().
  RunResult run(const JoinRequest& request,
                service::WantedEngine engine = service::WantedEngine::kCpu);

  std::string engine, fallback;  ///< of the last batch
  int named_batches = 0;         ///< that came with the ids of their pairs
  int id_regions = 0;            ///< times that the ids of all rows came

 private:
  void take_regions(const service::Batch& message);

  int socket_ = -1;
  service::Descriptors files_;
  service::SharedRegion results_, left_ids_, right_ids_;
  alignas(64) unsigned char message_[service::kMostMessageBytes];
};

/// What OpenJoin says of a request; the rows come with it.
service::OpenJoin message_of(const JoinRequest& request, service::WantedEngine engine);
/// Adds the rows of a side to a message's regions.
void add_rows(const Dataset& data, service::SideMessage* side, std::vector<TestRegion>* regions,
              bool are_named = true);
std::vector<int> files_of(const std::vector<TestRegion>& regions);

}  // namespace gpujoin::test
