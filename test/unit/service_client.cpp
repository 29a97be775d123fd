#include "service_client.h"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

namespace gpujoin::test {

using namespace service;

Status TestServer::no_device(const EngineTable**) {
  return make_status(StatusCode::kUnavailable, nullptr, "the test has no device");
}

TestServer::TestServer(FindEngine find_device) {
  static std::atomic<int> number = 0;
  path_ = testing::TempDir() + "gpujoin_test_" + std::to_string(getpid()) + "_" +
          std::to_string(number++);
  unlink(path_.c_str());
  server_ = std::make_unique<Server>(listen_at(path_.c_str()), std::move(find_device));
  Configure limits;
  start_message(&limits);
  limits.threads = 2;
  limits.host_memory = 64 << 20;
  server_->configure(limits);
  accepting_ = std::thread([this] {
    while (!ending_) {
      pollfd listener = {server_->listener(), POLLIN, 0};
      poll(&listener, 1, 20);
      replaced_ = server_->is_to_be_replaced();
      closed_ = server_->listener() < 0;
      if (!closed_) server_->accept_clients();
    }
  });
}

TestServer::~TestServer() {
  ending_ = true;
  accepting_.join();
  server_.reset();
  unlink(path_.c_str());
}

int TestServer::open_descriptors() {
  int least = std::numeric_limits<int>::max();
  for (int sample = 0; sample < 5; ++sample) {
    if (sample > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    DIR* const folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    least = std::min(least, count);
  }
  return least;
}

TestRegion::TestRegion(const void* from, std::uint64_t bytes) {
  EXPECT_TRUE(create_region("gpujoin test", bytes, &region).ok());
  EXPECT_TRUE(grow_region(&region, bytes).ok());
  if (bytes > 0) std::memcpy(region.base, from, bytes);
  EXPECT_TRUE(seal_region(&region));
}

Client::Client(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

void Client::hang_up() {
  close_descriptors(&files_);
  for (SharedRegion* const region : {&results_, &left_ids_, &right_ids_}) close_region(region);
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

bool Client::say_bytes(const void* message, std::size_t bytes, const std::vector<int>& files) {
  return send_message(socket_, message, bytes, files.data(), static_cast<int>(files.size())) ==
         ChannelState::kDone;
}

bool Client::hear_anything(int wait_ms) {
  close_descriptors(&files_);
  for (;;) {
    const ChannelState state = receive_message(socket_, message_, sizeof message_, &files_);
    if (state != ChannelState::kWait) return state == ChannelState::kDone;
    pollfd file = {socket_, POLLIN, 0};
    if (poll(&file, 1, wait_ms) == 0) {
      ADD_FAILURE() << "the service does not answer";
      return false;
    }
  }
}

bool Client::greet(std::uint32_t database) {
  Hello hello;
  fill_hello(&hello, database, "/", getpid());
  if (!say(hello)) return false;
  const Welcome* const welcome = hear<Welcome>();
  return welcome != nullptr && welcome->status.ok();
}

OpenJoin message_of(const JoinRequest& request, WantedEngine engine) {
  OpenJoin message;
  start_message(&message);
  message.engine = engine;
  std::memcpy(message.request, static_cast<const void*>(&request), sizeof request);
  return message;
}

void add_rows(const Dataset& data, SideMessage* side, std::vector<TestRegion>* regions,
              bool are_named) {
  side->rows = data.rows;
  side->dims = data.dims;
  side->scalar = data.scalar;
  if (data.rows == 0) return;
  side->has_rows = true;
  side->has_ids = are_named;
  std::vector<std::int64_t> ids(data.rows);
  for (std::uint64_t row = 0; row < data.rows; ++row) ids[row] = id_of(data, row);
  regions->emplace_back(data.first_chunk, data.rows * point_bytes(data));
  if (are_named) regions->emplace_back(ids.data(), ids.size() * sizeof ids[0]);
  side->has_scores = data.scores != nullptr;
  if (side->has_scores) regions->emplace_back(data.scores, data.rows * sizeof(double));
  side->key_columns = data.key_columns;
  if (data.key_columns > 0)
    regions->emplace_back(data.keys, data.rows * data.key_columns * sizeof(double));
}

std::vector<int> files_of(const std::vector<TestRegion>& regions) {
  std::vector<int> files;
  for (const TestRegion& region : regions) files.push_back(region.region.file);
  return files;
}

namespace {

/// The struct, and its columns: left, right, integers.
void add_sums(const JoinRequest& request, OpenJoin* message, std::vector<TestRegion>* regions) {
  const PairSums& sums = *request.sums();
  std::vector<unsigned char> bytes(sizeof sums);
  std::memcpy(bytes.data(), &sums, sizeof sums);
  const auto add = [&](const void* column, std::uint64_t rows) {
    const auto* const from = static_cast<const unsigned char*>(column);
    bytes.insert(bytes.end(), from, from + rows * sizeof(double));
  };
  for (std::uint32_t c = 0; c < sums.left_columns; ++c) add(sums.left[c], request.left().rows);
  for (std::uint32_t c = 0; c < sums.right_columns; ++c) add(sums.right[c], request.right().rows);
  for (std::uint32_t c = 0; c < sums.integer_columns; ++c)
    add(sums.integers[c], request.right().rows);
  message->sums_bytes = bytes.size();
  regions->emplace_back(bytes.data(), bytes.size());
}

}  // namespace

bool Client::open(const JoinRequest& request, WantedEngine engine) {
  OpenJoin message = message_of(request, engine);
  std::vector<TestRegion> regions;
  add_rows(request.left(), &message.sides[0], &regions);
  if (!request.self_join()) add_rows(request.right(), &message.sides[1], &regions);
  if (request.output() == Output::kSums) add_sums(request, &message, &regions);
  return say(message, files_of(regions));
}

bool Client::open_grouped(const JoinRequest& request,
                          const std::vector<std::uint32_t>& group_of_row, std::uint64_t count) {
  OpenJoin message = message_of(request, WantedEngine::kCpu);
  std::vector<TestRegion> regions;
  add_rows(request.left(), &message.sides[0], &regions, false);
  if (!request.self_join()) add_rows(request.right(), &message.sides[1], &regions, false);
  if (request.output() == Output::kSums) add_sums(request, &message, &regions);
  message.groups = count;
  if (count > 1)
    regions.emplace_back(group_of_row.data(), group_of_row.size() * sizeof group_of_row[0]);
  return say(message, files_of(regions));
}

Status Client::collect_groups(
    const JoinRequest& request,
    std::map<std::uint32_t, std::pair<std::uint64_t, std::vector<FoldWord>>>* groups) {
  const std::uint32_t width = request.output() == Output::kSums ? row_words(*request.sums()) : 0;
  for (;;) {
    const Batch* const message = hear<Batch>();
    if (message == nullptr) return {StatusCode::kUnavailable};
    if (!message->status.ok()) return message->status;
    take_regions(*message);
    const ResultBatch& batch = message->batch;
    const auto at = [this]<class T>(const T* place) {
      return reinterpret_cast<const T*>(results_.base + reinterpret_cast<std::uintptr_t>(place));
    };
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      auto& [pairs, words] = (*groups)[at(batch.rows)[i]];
      const bool is_new = pairs == 0;
      pairs += at(batch.counts)[i];
      if (width == 0) continue;
      const FoldWord* const others = at(batch.sums) + i * width;
      if (is_new)
        words.assign(others, others + width);
      else
        merge_rows(*request.sums(), words.data(), others);
    }
    Next next;
    start_message(&next);
    if (!say(next)) return {StatusCode::kUnavailable};
  }
}

void Client::take_regions(const Batch& message) {
  if (message.new_results) {
    close_region(&results_);
    ASSERT_TRUE(map_region(take_file(), message.results_bytes, &results_).ok());
  }
  if (message.new_ids) {
    ++id_regions;
    close_region(&left_ids_);
    close_region(&right_ids_);
    ASSERT_TRUE(map_region(take_file(), message.left_ids_bytes, &left_ids_).ok());
    if (message.ids_are_one) return;
    ASSERT_TRUE(map_region(take_file(), message.right_ids_bytes, &right_ids_).ok());
  }
}

RunResult Client::collect_batches(const JoinRequest& request, std::uint64_t most) {
  RunResult result;
  result.status = {StatusCode::kUnavailable};
  const auto at = [this]<class T>(const T* place) {
    return place == nullptr ? nullptr
                            : reinterpret_cast<const T*>(results_.base +
                                                         reinterpret_cast<std::uintptr_t>(place));
  };
  while (result.batches < most) {
    const Batch* const message = hear<Batch>();
    if (message == nullptr) return result;
    result.stats = message->stats;
    engine = message->engine;
    fallback = message->fallback;
    if (!message->status.ok()) {
      result.status = message->status;
      break;
    }
    take_regions(*message);
    ResultBatch batch = message->batch;
    batch.rows = at(batch.rows);
    batch.offsets = at(batch.offsets);
    batch.neighbors = at(batch.neighbors);
    batch.distances = at(batch.distances);
    batch.counts = at(batch.counts);
    batch.sums = at(batch.sums);
    if (batch.left_ids != nullptr) {
      ++named_batches;
      batch.left_ids = at(batch.left_ids);
      batch.right_ids = at(batch.right_ids);
    } else {
      batch.left_ids = reinterpret_cast<const std::int64_t*>(left_ids_.base);
      batch.right_ids = message->ids_are_one
                            ? batch.left_ids
                            : reinterpret_cast<const std::int64_t*>(right_ids_.base);
    }
    collect(request, batch, &result);
    if (testing::Test::HasFatalFailure()) break;
    Next next;
    start_message(&next);
    if (!say(next)) return result;
  }
  if (result.batches == most) hang_up();
  sort_result(request, &result);
  return result;
}

RunResult Client::run(const JoinRequest& request, WantedEngine wanted) {
  RunResult result;
  result.status = {StatusCode::kUnavailable};
  if (greet() && open(request, wanted)) result = collect_batches(request);
  return result;
}

}  // namespace gpujoin::test
