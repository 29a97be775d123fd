// Whole conversations with a server in this process: joins of the clients' own rows and of tables,
// clients that end early, vanish or talk nonsense, and a device that fails.

#include <sys/socket.h>
#include <sys/stat.h>

#include <cfloat>
#include <chrono>
#include <cstring>
#include <thread>

#include "service_client.h"

namespace gpujoin::test {
namespace {

using namespace service;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Points random_points(std::uint64_t seed, std::uint64_t rows, std::uint32_t dims = 2) {
  Random random(seed);
  return Points(dims, make_values(Shape::kUniform, random, rows, dims));
}

/// Waits until holds(), which has seconds to come true.
template <class Holds>
bool comes_true(const Holds& holds) {
  for (int i = 0; i < 1000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
  return holds();
}

TEST(ServiceConversation, pairs_are_the_oracles) {
  TestServer server;
  for (const std::uint32_t dims : {1u, 2u, 5u}) {
    const Points left = random_points(dims, 700, dims), right = random_points(dims + 9, 500, dims);
    const double eps = dims == 5 ? 20 : 3;
    for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
      const Oracle oracle(left, other, Metric::kL2, eps);
      for (const Output::Kind output :
           {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
        JoinRequest request = make_request(left, other, Metric::kL2, eps);
        ask(request, output);
        Client client(server.path());
        EXPECT_TRUE(matches_oracle(client.run(request), request, oracle));
        EXPECT_EQ(client.engine, "cpu");
      }
    }
  }
}

/// A column of each kind, for programs and measures of them and of the distance.
struct SumsOf {
  std::vector<double> left, right;
  std::vector<std::int64_t> integers;
  const double *left_columns[1], *right_columns[1];
  const std::int64_t* integer_columns[1];
  PairSums sums{};

  SumsOf(const Points& left_points, const Points& right_points) {
    Random random(5);
    for (std::uint64_t i = 0; i < left_points.rows(); ++i) left.push_back(random.unit());
    for (std::uint64_t i = 0; i < right_points.rows(); ++i) {
      right.push_back(random.unit());
      integers.push_back(static_cast<std::int64_t>(random.index(1000)));
    }
    left_columns[0] = left.data();
    right_columns[0] = right.data();
    integer_columns[0] = integers.data();
    sums.left_columns = sums.right_columns = sums.integer_columns = 1;
    sums.left = left_columns;
    sums.right = right_columns;
    sums.integers = integer_columns;
    sums.programs = 1;
    sums.program[0] = {.count = 5,
                       .steps = {ValueStep::kLeft, ValueStep::kRight, ValueStep::kMultiply,
                                 ValueStep::kDistance, ValueStep::kMultiply},
                       .columns = {}};
    sums.measures = 3;
    sums.measure[0] = {Fold::kSum, 0};
    sums.measure[1] = {Fold::kMost, 0};
    sums.measure[2] = {Fold::kMostOf, 0};
  }
};

/// As long as pairs are fewer than half of the rows they come with their own ids.
TEST(ServiceConversation, few_pairs_come_with_their_ids) {
  TestServer server;
  const Points left = random_points(1, 40), right = random_points(2, 3000);
  const Oracle oracle(left, &right, Metric::kL2, DBL_MAX);
  JoinRequest request = make_request(left, &right, Metric::kL2, DBL_MAX).asking(Output::nearest(5));
  request.knobs.batch_pairs = 50;
  Client few(server.path());
  EXPECT_TRUE(matches_oracle(few.run(request), request, oracle));
  EXPECT_GT(few.named_batches, 1);
  EXPECT_EQ(few.id_regions, 0);
  request = request.asking(Output::nearest(200));
  Client many(server.path());
  EXPECT_TRUE(matches_oracle(many.run(request), request, oracle));
  EXPECT_GT(many.named_batches, 1);
  EXPECT_EQ(many.id_regions, 1);
}

/// More rows than a slot has room for.
TEST(ServiceConversation, sums_are_those_of_the_engine) {
  TestServer server;
  const Points left = random_points(1, 60000), right = random_points(2, 500);
  for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
    const SumsOf asked(left, other != nullptr ? *other : left);
    const JoinRequest request =
        make_request(left, other, Metric::kL2, 1).asking(Output::sums(&asked.sums));
    const RunResult expected = run_join(*cpu_engine(), request);
    const RunResult result = Client(server.path()).run(request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd);
    EXPECT_GT(result.total, 0u);
    EXPECT_EQ(result.counts, expected.counts);
    EXPECT_EQ(result.sums, expected.sums);
  }
}

/// Of counts and of sums, by one group and by several, one of which has no row.
TEST(ServiceConversation, groups_are_the_sums_of_their_rows) {
  TestServer server;
  const Points left = random_points(1, 60000), right = random_points(2, 500);
  constexpr std::uint32_t kGroups = 7;
  std::vector<std::uint32_t> group_of_row(left.rows());
  Random random(3);
  for (std::uint32_t& group : group_of_row)
    group = static_cast<std::uint32_t>(random.index(kGroups - 1));
  const SumsOf asked(left, right);
  const JoinRequest join = make_request(left, &right, Metric::kL2, 1);
  for (const Output& output : {Output::sums(&asked.sums), Output::count_per_row()})
    for (const std::uint32_t count : {1u, kGroups}) {
      const JoinRequest request = join.asking(output);
      const std::uint64_t width = request.output() == Output::kSums ? row_words(asked.sums) : 0;
      std::map<std::uint32_t, std::pair<std::uint64_t, std::vector<FoldWord>>> expected, found;
      const RunResult rows = run_join(*cpu_engine(), request);
      for (const RowCount& row : rows.counts) {
        if (row.count == 0) continue;
        auto& [pairs, words] = expected[count > 1 ? group_of_row[row.id] : 0];
        pairs += row.count;
        if (width == 0) continue;
        if (words.empty()) {
          words.resize(width);
          clear_row(asked.sums, words.data());
        }
        std::vector<FoldWord> others(width);
        for (std::uint64_t w = 0; w < width; ++w) others[w].number = rows.sums.at(row.id)[w];
        merge_rows(asked.sums, words.data(), others.data());
      }
      Client client(server.path());
      ASSERT_TRUE(client.greet() && client.open_grouped(request, group_of_row, count));
      ASSERT_EQ(client.collect_groups(request, &found).code, StatusCode::kEnd);
      ASSERT_EQ(found.size(), count > 1 ? kGroups - 1 : 1);
      for (const auto& [group, of] : expected) {
        EXPECT_EQ(found[group].first, of.first);
        ASSERT_EQ(found[group].second.size(), width);
        for (std::uint64_t w = 0; w < width; ++w)
          EXPECT_EQ(found[group].second[w].number, of.second[w].number) << group << ' ' << w;
      }
    }
}

TEST(ServiceConversation, groups_that_no_client_sends_are_refused) {
  TestServer server;
  const Points points = random_points(1, 100);
  const std::vector<std::uint32_t> groups(points.rows(), 5);  // of two
  const JoinRequest request =
      make_request(points, nullptr, Metric::kL2, 1).asking(Output::count_per_row());
  const auto answer = [&](const JoinRequest& of, const std::vector<std::uint32_t>& group_of_row,
                          std::uint64_t count) {
    std::map<std::uint32_t, std::pair<std::uint64_t, std::vector<FoldWord>>> found;
    Client client(server.path());
    EXPECT_TRUE(client.greet() && client.open_grouped(of, group_of_row, count));
    const Status status = client.collect_groups(of, &found);
    EXPECT_LE(found.size(), 1u);
    return status.code;
  };
  EXPECT_EQ(answer(request, groups, 2), StatusCode::kEnd);  // all are taken for the last one
  EXPECT_EQ(answer(request, groups, kMostSumGroups + 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(answer(request.asking(Output::pairs()), groups, 2), StatusCode::kInvalidArgument);
  EXPECT_EQ(answer(request, {}, 2), StatusCode::kInvalidArgument);  // too little memory
}

TEST(ServiceConversation, sums_that_no_client_sends_are_refused) {
  TestServer server;
  const Points points = random_points(1, 100);
  const JoinRequest good = make_request(points, nullptr, Metric::kL2, 1);
  for (int wrong = 0; wrong < 5; ++wrong) {
    SumsOf asked(points, points);
    const JoinRequest request = good.asking(Output::sums(&asked.sums));
    if (wrong == 0) asked.sums.measures = 4000000000;
    if (wrong == 1) asked.sums.measure[0].fold = static_cast<Fold>(77);
    if (wrong == 2) asked.sums.measure[0].number = 1;
    if (wrong == 3) asked.sums.program[0].steps[2] = static_cast<ValueStep>(-1);
    if (wrong == 4) asked.sums.program[0].columns[0] = 1;
    EXPECT_EQ(Client(server.path()).run(request).status.code, StatusCode::kInvalidArgument)
        << wrong;
  }
  OpenJoin message = message_of(good.asking(Output::sums(nullptr)), WantedEngine::kAuto);
  std::vector<TestRegion> regions;
  add_rows(points.view(), &message.sides[0], &regions);
  message.sums_bytes = 1 << 20;  // without the memory
  Client client(server.path());
  ASSERT_TRUE(client.greet() && client.say(message, files_of(regions)));
  EXPECT_EQ(client.collect_batches(good).status.code, StatusCode::kInvalidArgument);
}

/// Points with two keys: a group, where there is one, and a time of day.
struct PointsWithKeys {
  Points points;
  std::vector<double> keys;

  PointsWithKeys(std::uint64_t seed, std::uint64_t rows) : points(random_points(seed, rows)) {
    Random random(seed + 1);
    for (std::uint64_t row = 0; row < rows; ++row) {
      keys.push_back(random.index(9) == 0 ? kNan : static_cast<double>(random.index(5)));
      keys.push_back(random.between(0, 1440));
    }
  }
  Dataset view() const {
    Dataset data = points.view();
    data.keys = keys.data();
    data.key_columns = 2;
    return data;
  }
};

TEST(ServiceConversation, joins_with_keys_are_those_of_the_engine) {
  TestServer server;
  const PointsWithKeys left(1, 3000), right(5, 2000);
  for (const bool self_join : {true, false})
    for (const Output::Kind output :
         {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
      JoinRequest request = make_request(left.points, nullptr, Metric::kL2, 8);
      request.sides = self_join ? Sides::one(left.view(), PairSelection::kUnordered)
                                : Sides::two(left.view(), right.view());
      request.keys = {.count = 2, .reach = {0, 60}, .most = {4, 0}};
      ask(request, output);
      const RunResult expected = run_join(*cpu_engine(), request);
      const RunResult result = Client(server.path()).run(request);
      EXPECT_EQ(result.status.code, StatusCode::kEnd);
      EXPECT_GT(result.total, 0u);
      EXPECT_EQ(result.total, expected.total);
      EXPECT_TRUE(result.pairs == expected.pairs);
      EXPECT_EQ(result.counts, expected.counts);
    }
}

TEST(ServiceConversation, keys_that_no_client_sends_are_refused) {
  TestServer server;
  PointsWithKeys points(1, 100);
  JoinRequest good = make_request(points.points, nullptr, Metric::kL2, 1);
  good.sides = Sides::one(points.view(), PairSelection::kUnordered);
  good.keys = {.count = 2, .reach = {0, 60}, .most = {4, 0}};
  EXPECT_EQ(Client(server.path()).run(good).status.code, StatusCode::kEnd);
  for (const double wrong : {-1.0, 5.0, 0.5, HUGE_VAL}) {
    points.keys[20] = wrong;
    EXPECT_EQ(Client(server.path()).run(good).status.code, StatusCode::kInvalidArgument) << wrong;
  }
  points.keys[20] = 0;
  JoinRequest request = good;
  request.keys.count = 1;  // of two columns
  EXPECT_EQ(Client(server.path()).run(request).status.code, StatusCode::kInvalidArgument);
  OpenJoin message = message_of(good, WantedEngine::kAuto);
  std::vector<TestRegion> regions;
  add_rows(points.view(), &message.sides[0], &regions);
  message.sides[0].key_columns = kMostKeys + 1;
  Client client(server.path());
  ASSERT_TRUE(client.greet() && client.say(message, files_of(regions)));
  EXPECT_EQ(client.collect_batches(good).status.code, StatusCode::kInvalidArgument);
}

TEST(ServiceConversation, top_pairs_and_boxes_are_the_oracles) {
  TestServer server;
  Points points = random_points(3, 400);
  std::vector<double> scores(points.rows());
  Random random(4);
  for (double& score : scores) score = random.unit();
  points.with_scores(scores);
  const Top top = {{ScoreFunction::kSum, false, {1, 0.5}}, 50};
  const JoinRequest best =
      make_request(points, nullptr, Metric::kL2, 5).asking(Output::top_pairs(top));
  EXPECT_TRUE(matches_oracle(Client(server.path()).run(best), best,
                             Oracle(points, nullptr, Metric::kL2, 5)));
  std::vector<double> corners;
  for (int i = 0; i < 300; ++i) {
    const double x = random.between(0, 20), y = random.between(0, 20);
    corners.insert(corners.end(), {x, y, x + random.unit(), y + random.unit()});
  }
  const Points boxes(4, corners);
  const JoinRequest touching(sides_of(boxes, nullptr), BoxesWithin{Metric::kL2, 0.5},
                             BoxOutput::kPairs);
  EXPECT_TRUE(matches_oracle(Client(server.path()).run(touching), touching,
                             Oracle::of_boxes(boxes, nullptr, Metric::kL2, 0.5)));
}

/// Rows with more neighbours than a slot has room for, in batches larger than one, mirrored.
TEST(ServiceConversation, results_larger_than_the_memory_come_in_parts) {
  TestServer server;
  const Points points(1, std::vector<double>(1500, 1.0));
  for (const Output::Kind output : {Output::kPairs, Output::kPairsWithDistances}) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, 0);
    request.knobs.batch_pairs = 1 << 20;
    ask(request, output);
    const RunResult result = Client(server.path()).run(request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd);
    EXPECT_EQ(result.pairs.size(), 1500u * 1500u);
    EXPECT_EQ(result.total, 1500u * 1500u);
  }
}

TEST(ServiceConversation, wrong_requests_come_back_with_the_reason) {
  TestServer server;
  const Points points = random_points(1, 10), other = random_points(1, 10, 3);
  EXPECT_EQ(Client(server.path()).run(make_request(points, nullptr, Metric::kL2, -1)).status.code,
            StatusCode::kInvalidArgument);
  const RunResult result = Client(server.path()).run(make_request(points, &other, Metric::kL2, 1));
  EXPECT_EQ(result.status.code, StatusCode::kInvalidArgument);
  EXPECT_STRNE(result.status.hint, "");
  const RunResult device =
      Client(server.path()).run(make_request(points, nullptr, Metric::kL2, 1), WantedEngine::kCuda);
  EXPECT_EQ(device.status.code, StatusCode::kUnavailable);
  EXPECT_STREQ(device.status.message, "the test has no device");
}

/// The first byte that is 0 in one request and 1 in another.
std::size_t byte_that_differs(const JoinRequest& zero, const JoinRequest& one) {
  const auto* const a = reinterpret_cast<const unsigned char*>(&zero);
  const auto* const b = reinterpret_cast<const unsigned char*>(&one);
  std::size_t at = 0;
  while (at < sizeof zero && !(a[at] == 0 && b[at] == 1)) ++at;
  EXPECT_LT(at, sizeof zero);
  return at;
}

TEST(ServiceConversation, requests_that_no_client_sends_are_refused) {
  TestServer server;
  const Points points = random_points(1, 50), other = random_points(2, 50);
  const JoinRequest good = make_request(points, nullptr, Metric::kL2, 1);
  const auto answer = [&](const JoinRequest& request, std::size_t at, unsigned char value) {
    OpenJoin message = message_of(request, WantedEngine::kAuto);
    if (value > 0) message.request[at] = value;
    std::vector<TestRegion> regions;
    add_rows(request.left(), &message.sides[0], &regions);
    if (!request.self_join()) add_rows(request.right(), &message.sides[1], &regions);
    Client client(server.path());
    EXPECT_TRUE(client.greet() && client.say(message, files_of(regions)));
    const auto* const batch = client.hear<Batch>();
    if (batch == nullptr) return StatusCode::kInternal;
    return batch->status.code == StatusCode::kEnd ? StatusCode::kOk : batch->status.code;
  };
  const auto with = [&](const auto& change) {
    JoinRequest request = good;
    change(&request);
    return answer(request, 0, 0);
  };
  EXPECT_EQ(with([](JoinRequest*) {}), StatusCode::kOk);
  for (const std::uint32_t count : {kMostDevices + 1, 4000000000u})
    EXPECT_EQ(with([&](JoinRequest* request) { request->resources.devices.count = count; }),
              StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) {
              request->resources.devices = {2, {3, 3}};
            }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) {
              request->resources.devices = {1, {-1}};
            }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) {
              request->resources.devices = {2, {3, 0}};
            }),
            StatusCode::kOk);
  EXPECT_EQ(with([](JoinRequest* request) { request->knobs.share_devices = Switch{3}; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) { request->knobs.threads_per_point = 3; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) { request->knobs.indexed_dimensions = 9; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(with([](JoinRequest* request) { request->knobs.reference_points = 1 << 20; }),
            StatusCode::kInvalidArgument);

  const JoinRequest kept = good.asking(Output::duplicates(false));
  const std::size_t lowest = byte_that_differs(kept, good.asking(Output::duplicates(true)));
  EXPECT_EQ(answer(kept, lowest, 1), StatusCode::kOk);
  EXPECT_EQ(answer(kept, lowest, 2), StatusCode::kInvalidArgument);
  const JoinRequest clusters = good.asking(Output::clusters(3, BorderRule::kNearest));
  const std::size_t borders =
      byte_that_differs(clusters, good.asking(Output::clusters(3, BorderRule::kFirst)));
  EXPECT_EQ(answer(clusters, borders, 1), StatusCode::kOk);
  EXPECT_EQ(answer(clusters, borders, 2), StatusCode::kInvalidArgument);

  // What constructors do not make: two sides with an order of pairs, and clusters of boxes.
  JoinRequest distinct = good, two = make_request(points, &other, Metric::kL2, 1);
  distinct.sides = Sides::one(points.view(), PairSelection::kDistinct);
  const std::size_t selection = byte_that_differs(good, distinct);
  EXPECT_EQ(answer(two, 0, 0), StatusCode::kOk);
  EXPECT_EQ(answer(two, selection, 1), StatusCode::kInvalidArgument);
  const JoinRequest boxes(good.sides, BoxesWithin{Metric::kL2, 1}, BoxOutput::kPairs);
  JoinRequest plain(good.sides, PointsWithin{Metric::kL2, 1}, Output::pairs());
  const std::size_t shape = byte_that_differs(plain, boxes);
  EXPECT_EQ(answer(clusters, shape, 1), StatusCode::kInvalidArgument);
}

TEST(ServiceConversation, memory_that_somebody_may_still_write_is_refused) {
  TestServer server;
  const Points points = random_points(1, 50);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 5);
  const std::uint64_t bytes = points.rows() * 2 * sizeof(double);
  SharedRegion region;
  ASSERT_TRUE(create_region("gpujoin test", bytes, &region).ok());
  ASSERT_TRUE(grow_region(&region, bytes).ok());
  std::memcpy(region.base, points.view().first_chunk, bytes);
  OpenJoin message = message_of(request, WantedEngine::kCpu);
  SideMessage& side = message.sides[0];
  side.rows = points.rows();
  side.dims = 2;
  side.scalar = ScalarType::kFloat64;
  side.has_rows = true;
  for (const bool sealed : {false, true}) {
    if (sealed) {
      EXPECT_TRUE(seal_region(&region));
      std::memset(region.base, 0, bytes);  // which the service does not see
    }
    Client client(server.path());
    ASSERT_TRUE(client.greet() && client.say(message, {region.file}));
    const RunResult result = client.collect_batches(request);
    if (sealed) {
      EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, 5)));
    } else {
      EXPECT_EQ(result.status.code, StatusCode::kInvalidArgument);
    }
  }
  close_region(&region);
}

TEST(ServiceConversation, several_at_once_do_not_mix) {
  TestServer server;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    threads.emplace_back([&server, seed] {
      const Points points = random_points(seed, 300 + seed * 50);
      const Oracle oracle(points, nullptr, Metric::kL2, 4);
      const JoinRequest request = make_request(points, nullptr, Metric::kL2, 4);
      for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(matches_oracle(Client(server.path()).run(request), request, oracle));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(ServiceConversation, clients_that_end_early_or_vanish_cost_nothing) {
  TestServer server;
  const Points points(1, std::vector<double>(20000, 1.0));  // 400 million pairs
  const JoinRequest all = make_request(points, nullptr, Metric::kL2, 0);
  const int before = TestServer::open_descriptors();
  {
    Client client(server.path());
    ASSERT_TRUE(client.greet() && client.open(all));
    EXPECT_EQ(client.collect_batches(all, 1).batches, 1u);
  }
  const Points many = random_points(5, 60000, 3);
  JoinRequest total = make_request(many, nullptr, Metric::kL2, 30).asking(Output::total());
  total.knobs.index = IndexMethod::kNone;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 5; ++i) {  // more than have a place at a time
    clients.push_back(std::make_unique<Client>(server.path()));
    ASSERT_TRUE(clients.back()->greet() && clients.back()->open(total));
  }
  std::this_thread::sleep_for(100ms);
  const Clock::time_point gone = Clock::now();
  clients.clear();
  EXPECT_TRUE(comes_true([&] { return TestServer::open_descriptors() == before; }));
  EXPECT_LT(Clock::now() - gone, 5s);
  EXPECT_EQ(Client(server.path())
                .run(make_request(points, nullptr, Metric::kL2, 0).asking(Output::total()))
                .total,
            400000000u);
}

TEST(ServiceConversation, a_server_that_ends_hangs_up) {
  auto server = std::make_unique<TestServer>();
  const Points points(1, std::vector<double>(20000, 1.0));
  Client talking(server->path()), silent(server->path());
  ASSERT_TRUE(talking.greet() && talking.open(make_request(points, nullptr, Metric::kL2, 0)));
  server.reset();
  while (talking.hear_anything()) {
  }
  EXPECT_FALSE(silent.hear_anything());
}

TEST(ServiceConversation, another_build_is_answered_and_left) {
  TestServer server;
  Hello hello;
  fill_hello(&hello, 1, "/", 1);
  ++hello.protocol_version;
  Client client(server.path());
  ASSERT_TRUE(client.say(hello));
  const Welcome* const welcome = client.hear<Welcome>();
  ASSERT_NE(welcome, nullptr);
  EXPECT_EQ(welcome->status.code, StatusCode::kUnavailable);
  EXPECT_FALSE(client.hear_anything());
}

TEST(ServiceConversation, clients_of_other_users_are_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  TestServer server;
  ASSERT_EQ(chmod(server.path().c_str(), 0777), 0);  // as if the socket's mode kept nobody away
  EXPECT_TRUE(Client(server.path()).greet());
  as_another_user([&] {
    Client client(server.path());
    EXPECT_FALSE(client.greet());
  });
  EXPECT_TRUE(Client(server.path()).greet());
}

/// A search for the nearest rows of a point in the table that side 1 has found.
Search search_of(const double* point, std::uint32_t dims, std::uint64_t k, double eps) {
  const JoinRequest request(Sides::two({}, {}), PointsWithin{Metric::kL2, eps}, Output::nearest(k));
  Search message;
  start_message(&message);
  message.engine = WantedEngine::kCpu;
  std::memcpy(message.request, static_cast<const void*>(&request), sizeof request);
  message.dims = dims;
  message.scalar = ScalarType::kFloat64;
  message.point_bytes = dims * sizeof(double);
  std::memcpy(message.point, point, message.point_bytes);
  message.header.bytes = static_cast<std::uint32_t>(sent_bytes(message));
  return message;
}

/// Messages of random kinds in random order, with random bytes and descriptors.
TEST(ServiceConversation, nonsense_ends_one_conversation_alone) {
  TestServer server;
  const int before = TestServer::open_descriptors();
  const Points points = random_points(1, 50);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 5);
  Random random(77);
  for (int round = 0; round < 300; ++round) {
    Client client(server.path());
    if (random.index(4) > 0) client.greet();
    for (int i = 0; i < 4; ++i) {
      alignas(64) unsigned char bytes[kMostMessageBytes] = {};
      const TestRegion region(bytes, 64 * random.index(3));
      std::vector<int> files(random.index(kMostDescriptors + 1), region.region.file);
      const std::uint64_t kind = random.index(14);
      std::size_t size = random.index(kMostMessageBytes);
      if (kind == static_cast<std::uint64_t>(MessageKind::kOpenJoin) || random.index(3) == 0) {
        // Almost a join.
        OpenJoin message = message_of(request, WantedEngine::kAuto);
        message.sides[0].rows = random.index(3);
        message.sides[0].dims = static_cast<std::uint32_t>(random.index(4));
        message.sides[0].scalar = ScalarType::kFloat64;
        message.sides[0].has_rows = random.index(2) == 0;
        message.sides[0].of_table = random.index(2) == 0;
        message.sides[0].has_patches = random.index(2) == 0;
        message.sides[0].patches = random.index(2);
        message.sides[0].key_columns = static_cast<std::uint32_t>(random.index(3));
        message.sides[0].blocks = random.index(3);
        std::memcpy(bytes, &message, sizeof message);
        size = sizeof message;
        // The limits and knobs are numbers; other members have enumerators.
        if (random.index(2) == 0)
          bytes[offsetof(OpenJoin, request) + random.index(sizeof(JoinRequest))] ^= 0x40;
      } else if (kind == static_cast<std::uint64_t>(MessageKind::kSearch) || random.index(4) == 0) {
        const double point[3] = {1, 2, 3};
        Search message = search_of(point, static_cast<std::uint32_t>(random.index(4)),
                                   random.index(3), random.unit());
        message.table.of_table = random.index(2) == 0;
        message.table.blocks = random.index(3);
        message.table.has_patches = random.index(2) == 0;
        message.dims += static_cast<std::uint32_t>(random.index(2));
        size = message.header.bytes;
        std::memcpy(bytes, &message, size);
        if (random.index(2) == 0)
          bytes[sizeof(Header) + random.index(size - sizeof(Header))] ^= 0x40;
      } else if (random.index(2) == 0) {
        FindTable message;
        start_message(&message);
        message.side = static_cast<std::uint32_t>(random.index(3));
        message.key.columns_bytes = static_cast<std::uint32_t>(random.index(1100));
        std::memcpy(bytes, &message, sizeof message);
        size = sizeof message;
      } else {
        for (std::size_t at = 0; at < size; ++at)
          bytes[at] = static_cast<unsigned char>(random.bits());
        const Header header = {static_cast<MessageKind>(kind), static_cast<std::uint32_t>(size)};
        std::memcpy(bytes, &header, sizeof header);
      }
      if (!client.say_bytes(bytes, std::max(size, sizeof(Header)), files)) break;
    }
    shutdown(client.socket(), SHUT_WR);
    while (client.hear_anything()) {
    }
  }
  // Some of it may have been a table of no rows, which stays.
  const auto nothing_is_left = [&] {
    {
      Client client(server.path());
      EvictTables evict;
      start_message(&evict);
      EXPECT_TRUE(client.greet() && client.say(evict) && client.hear<EvictedTables>() != nullptr);
    }
    std::this_thread::sleep_for(20ms);  // the service's end of this conversation is one, too
    return TestServer::open_descriptors() == before;
  };
  EXPECT_TRUE(comes_true(nothing_is_left));
  EXPECT_TRUE(matches_oracle(Client(server.path()).run(request), request,
                             Oracle(points, nullptr, Metric::kL2, 5)));
}

// ---- Tables

TableKey key_of(std::uint32_t relation) {
  TableKey key = {};
  key.relation = relation;
  return key;
}

/// Looks for a table; the answer is good until the next message.
const FoundTable* find(Client& client, const TableKey& key, std::uint32_t side = 0) {
  FindTable message;
  start_message(&message);
  message.side = side;
  message.key = key;
  std::strcpy(message.path, "/proc/self/exe");  // which stays
  return client.say(message) ? client.hear<FoundTable>() : nullptr;
}

/// Joins a table that was found, with blocks of so many rows each in the place of those there.
RunResult join_table(Client& client, JoinRequest request, const std::vector<BlockPatch>& patches,
                     std::uint64_t blocks) {
  OpenJoin message = message_of(request, WantedEngine::kCpu);
  SideMessage& side = message.sides[0];
  std::vector<TestRegion> regions;
  add_rows(request.left(), &side, &regions);
  side.of_table = true;
  side.blocks = blocks;
  if (!patches.empty()) {
    side.has_patches = true;
    side.patches = patches.size();
    regions.emplace_back(patches.data(), patches.size() * sizeof(BlockPatch));
  }
  EXPECT_TRUE(client.say(message, files_of(regions)));
  // Positions go up to the slots of the table, which the test's request does not have.
  request.sides = request.sides.with_rows(
      {nullptr, nullptr, 1 << 20, request.left().dims, ScalarType::kFloat64}, {});
  return client.collect_batches(request);
}

BlockPatch patch_of(std::uint32_t block, std::uint32_t rows, std::uint64_t lsn = 1) {
  return {block, true, {lsn, 0, rows, BlockState::kAllVisible}};
}

TEST(ServiceConversation, a_table_is_read_once_and_patched) {
  TestServer server;
  const Points points = random_points(8, 600), other = random_points(9, 50);
  const Points none(2, {});
  for (const Output::Kind output :
       {Output::kPairs, Output::kCountPerRow, Output::kTotal, Output::kPairsWithDistances}) {
    const TableKey key = key_of(static_cast<std::uint32_t>(output) + 1);
    const auto asked = [&](const Points& rows) {
      JoinRequest request = make_request(rows, nullptr, Metric::kL2, 5);
      ask(request, output);
      return request;
    };
    const Oracle oracle(points, nullptr, Metric::kL2, 5);
    {
      Client client(server.path());
      ASSERT_TRUE(client.greet());
      const FoundTable* const found = find(client, key);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->version, 0u);
      EXPECT_TRUE(found->may_stay);
      const RunResult result = join_table(
          client, asked(points), {patch_of(0, 100), patch_of(1, 200), patch_of(2, 300)}, 3);
      EXPECT_TRUE(matches_oracle(result, asked(points), oracle));
    }
    {
      Client client(server.path());
      ASSERT_TRUE(client.greet());
      const FoundTable* const found = find(client, key);
      ASSERT_NE(found, nullptr);
      EXPECT_NE(found->version, 0u);
      EXPECT_TRUE(found->all_visible);
      EXPECT_EQ(found->rows, 600u);
      EXPECT_EQ(found->blocks, 3u);
      SharedRegion proof;
      ASSERT_TRUE(map_region(client.take_file(), 3 * sizeof(BlockProof), &proof).ok());
      close_region(&proof);
      EXPECT_TRUE(matches_oracle(join_table(client, asked(none), {}, 3), asked(points), oracle));
    }
    {
      Client stranger(server.path());
      ASSERT_TRUE(stranger.greet(2));
      EXPECT_EQ(find(stranger, key)->version, 0u);
    }
    // Fewer rows in the second block: the rest of its slots matches nothing and counts for nothing.
    std::vector<double> changed;
    std::vector<std::int64_t> ids;
    std::vector<double> buffer(2);
    const auto add = [&](const Points& from, std::uint64_t row, std::int64_t id) {
      const double* const x = from.row(row, buffer);
      changed.insert(changed.end(), {x[0], x[1]});
      ids.push_back(id);
    };
    for (std::uint64_t row = 0; row < 600; ++row)
      if (row < 100 || row >= 300) add(points, row, static_cast<std::int64_t>(row));
    for (std::uint64_t row = 0; row < 50; ++row) add(other, row, static_cast<std::int64_t>(row));
    Points expected(2, changed);
    expected.with_ids(ids);
    Client client(server.path());
    ASSERT_TRUE(client.greet());
    ASSERT_NE(find(client, key), nullptr);
    const RunResult result = join_table(client, asked(other), {patch_of(1, 50, 2)}, 3);
    EXPECT_TRUE(matches_oracle(result, asked(expected), Oracle(expected, nullptr, Metric::kL2, 5)));
    EXPECT_EQ(result.stats.left_rows, 450u);
    EXPECT_EQ(result.stats.right_rows, 450u);
  }

  Client client(server.path());
  ASSERT_TRUE(client.greet());
  ListTables list;
  start_message(&list);
  ASSERT_TRUE(client.say(list));
  const ListedTables* const listed = client.hear<ListedTables>();
  ASSERT_NE(listed, nullptr);
  EXPECT_EQ(listed->count, 4u);
  SharedRegion region;
  ASSERT_TRUE(map_region(client.take_file(), 4 * sizeof(ListedTable), &region).ok());
  const auto* const tables = reinterpret_cast<const ListedTable*>(region.base);
  EXPECT_EQ(tables[0].rows, 450u);
  EXPECT_EQ(tables[0].hits, 2u);
  EXPECT_EQ(tables[0].blocks_read, 4u);
  close_region(&region);
  EvictTables evict;
  start_message(&evict);
  evict.relation = 2;
  ASSERT_TRUE(client.say(evict));
  EXPECT_EQ(client.hear<EvictedTables>()->tables, 1u);
  evict.relation = 0;
  ASSERT_TRUE(client.say(evict));
  EXPECT_EQ(client.hear<EvictedTables>()->tables, 3u);
}

// ---- Searches

/// Sends it and hears the rows, of one message or several. Fails the test on an error.
std::vector<FoundRow> search(Client& client, const Search& message,
                             const std::vector<int>& files = {}) {
  std::vector<FoundRow> rows;
  const FoundRows* answer = nullptr;
  EXPECT_TRUE(client.say_bytes(&message, message.header.bytes, files));
  do {
    answer = client.hear<FoundRows>();
    EXPECT_TRUE(answer != nullptr && answer->status.ok())
        << (answer != nullptr ? answer->status.message : "no answer");
    if (answer == nullptr || !answer->status.ok()) break;
    rows.insert(rows.end(), answer->rows, answer->rows + answer->count);
  } while (answer->more);
  return rows;
}

/// The rows that a search is to find, by brute force.
std::vector<FoundRow> nearest_of(const Points& points, const double* point, std::uint64_t k,
                                 double eps) {
  std::vector<FoundRow> rows;
  std::vector<double> buffer(points.dims());
  for (std::uint64_t row = 0; row < points.rows(); ++row) {
    const double* const x = points.row(row, buffer);
    double squares = 0;
    for (std::uint32_t d = 0; d < points.dims(); ++d)
      squares += (x[d] - point[d]) * (x[d] - point[d]);
    if (std::sqrt(squares) <= eps)
      rows.push_back({static_cast<std::int64_t>(row), std::sqrt(squares)});
  }
  std::sort(rows.begin(), rows.end(), [](const FoundRow& a, const FoundRow& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
  });
  rows.resize(std::min<std::size_t>(rows.size(), k));
  return rows;
}

void expect_same(const std::vector<FoundRow>& found, const std::vector<FoundRow>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].id, expected[i].id);
    EXPECT_EQ(found[i].distance, expected[i].distance);
  }
}

TEST(ServiceConversation, a_table_is_searched_again_and_again) {
  TestServer server;
  const Points points = random_points(8, 6000);
  const TableKey key = key_of(1);
  const double asked[][2] = {{1, 2}, {10, 10}, {-50, 3}, {19.5, 0.25}};
  Client client(server.path());
  ASSERT_TRUE(client.greet());
  for (int round = 0; round < 3; ++round) {
    const FoundTable* const found = find(client, key, 1);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->version != 0, round > 0);
    if (round > 0) close(client.take_file());
    for (const double(&point)[2] : asked)
      for (const auto& [k, eps] : {std::pair{10, 1e300}, std::pair{1, 3.0}, std::pair{5000, 1e300},
                                   std::pair{6000, 0.5}}) {
        Search message = search_of(point, 2, static_cast<std::uint64_t>(k), eps);
        std::vector<TestRegion> regions;
        const std::vector<BlockPatch> patches = {patch_of(0, 2000), patch_of(1, 4000)};
        if (round == 0 && &point == asked && k == 10) {  // the first one brings the rows
          add_rows(points.view(), &message.table, &regions);
          message.table.of_table = message.table.has_patches = true;
          message.table.blocks = message.table.patches = 2;
          regions.emplace_back(patches.data(), patches.size() * sizeof(BlockPatch));
        }
        expect_same(search(client, message, files_of(regions)),
                    nearest_of(points, point, static_cast<std::uint64_t>(k), eps));
      }
    LetGo message;
    start_message(&message);
    ASSERT_TRUE(client.say(message));
  }
}

TEST(ServiceConversation, searches_that_no_client_sends_are_refused) {
  TestServer server;
  const double point[2] = {1, 2};
  const auto is_refused = [&](const Search& message, bool finds) {
    Client client(server.path());
    EXPECT_TRUE(client.greet());
    if (finds) {
      EXPECT_NE(find(client, key_of(7), 1), nullptr);
    }
    EXPECT_TRUE(client.say_bytes(&message, message.header.bytes));
    const FoundRows* const answer = client.hear<FoundRows>();
    return answer != nullptr && !answer->status.ok() && answer->count == 0;
  };
  const Search message = search_of(point, 2, 3, 1);
  EXPECT_TRUE(is_refused(message, false)) << "no table was looked for";
  EXPECT_TRUE(is_refused(message, true)) << "the table has no rows";
  Search wrong = message;
  wrong.dims = 3;
  EXPECT_TRUE(is_refused(wrong, true));
  wrong = message;
  wrong.scalar = static_cast<ScalarType>(9);
  EXPECT_TRUE(is_refused(wrong, true));
  wrong = message;
  wrong.engine = static_cast<WantedEngine>(9);
  EXPECT_TRUE(is_refused(wrong, true));
  const JoinRequest pairs(Sides::two({}, {}), PointsWithin{Metric::kL2, 1}, Output::pairs());
  wrong = message;
  std::memcpy(wrong.request, static_cast<const void*>(&pairs), sizeof pairs);
  EXPECT_TRUE(is_refused(wrong, true)) << "it is no search";
  EXPECT_TRUE(matches_oracle(
      Client(server.path()).run(make_request(random_points(1, 9), nullptr, Metric::kL2, 5)),
      make_request(random_points(1, 9), nullptr, Metric::kL2, 5),
      Oracle(random_points(1, 9), nullptr, Metric::kL2, 5)));
}

/// Points with scores, or boxes, with the ids of these ranges, which say what they are.
Points rows_with_ids(bool boxes, const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
  std::vector<double> numbers, scores;
  std::vector<std::int64_t> ids;
  for (const auto& [first, end] : ranges)
    for (std::int64_t id = first; id < end; ++id) {
      Random random(static_cast<std::uint64_t>(id) + 1);
      const double x = random.between(0, 20), y = random.between(0, 20);
      numbers.insert(numbers.end(), {x, y});
      if (boxes) numbers.insert(numbers.end(), {x + random.unit(), y + random.unit()});
      scores.push_back(random.unit());
      ids.push_back(id);
    }
  Points rows(boxes ? 4 : 2, numbers);
  rows.with_ids(ids);
  if (!boxes) rows.with_scores(scores);
  return rows;
}

/// After a patch the rows lie in another order than their blocks, and slots without a row between
/// them.
TEST(ServiceConversation, tables_with_scores_and_tables_of_boxes_are_patched) {
  TestServer server;
  for (const bool boxes : {false, true}) {
    const auto request_of = [&](const Points& rows) {
      return boxes
                 ? JoinRequest(sides_of(rows, nullptr), BoxesWithin{Metric::kL2, 0.1},
                               BoxOutput::kPairs)
                 : make_request(rows, nullptr, Metric::kL2, 2)
                       .asking(Output::top_pairs(Top{{ScoreFunction::kSum, false, {1, 0.5}}, 50}));
    };
    const auto expect = [&](const Points& sent, const std::vector<BlockPatch>& patches,
                            const Points& rows) {
      Client client(server.path());
      ASSERT_TRUE(client.greet());
      ASSERT_NE(find(client, key_of(boxes ? 2 : 1)), nullptr);
      const RunResult result = join_table(client, request_of(sent), patches, 3);
      const Oracle oracle = boxes ? Oracle::of_boxes(rows, nullptr, Metric::kL2, 0.1)
                                  : Oracle(rows, nullptr, Metric::kL2, 2);
      EXPECT_TRUE(matches_oracle(result, request_of(rows), oracle));
    };
    const Points all = rows_with_ids(boxes, {{0, 600}}), none = rows_with_ids(boxes, {});
    expect(all, {patch_of(0, 200), patch_of(1, 200), patch_of(2, 200)}, all);
    expect(none, {}, all);
    const Points changed = rows_with_ids(boxes, {{1000, 1250}, {2000, 2150}});
    const Points after = rows_with_ids(boxes, {{0, 200}, {1000, 1250}, {2000, 2150}});
    expect(changed, {patch_of(1, 250, 2), patch_of(2, 150, 2)}, after);
    expect(none, {}, after);
  }
}

// ---- Devices: the CPU's engine in their place

EngineTable device;                       // a copy of the CPU's table, changed
std::atomic<int> fails{0};                // what is to fail: 1 open, 2 the first batch, 3 open once
std::atomic<bool> is_shut{false};         // joins wait before they open
std::atomic<int> opened{0};               // joins so far, those that wait included
std::atomic<std::uint64_t> most_left{0};  // left rows of a join

Status open_or_fail(const JoinRequest* request, Join** join) {
  ++opened;
  while (is_shut) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (request->left().rows > most_left) most_left = request->left().rows;
  if (fails == 1) return make_status(StatusCode::kOutOfMemory, nullptr, "the device is full");
  if (fails == 3) {
    fails = 0;
    return make_status(StatusCode::kOutOfMemory, nullptr, "the device is full once");
  }
  return cpu_engine()->open(request, join);
}

Status next_or_fail(Join* join, ResultBatch* batch) {
  if (fails == 2) return make_status(StatusCode::kDeviceFailure, nullptr, "the device broke");
  return cpu_engine()->next_batch(join, batch);
}

Status find_device(const EngineTable** engine) {
  fails = 0;
  device = *cpu_engine();
  device.name = "cuda";
  device.open = open_or_fail;
  device.next_batch = next_or_fail;
  *engine = &device;
  return {};
}

/// The items that a question's answer brings.
template <class Item, class Question, class Answer>
std::vector<Item> ask_for(Client& client) {
  Question question;
  start_message(&question);
  EXPECT_TRUE(client.say(question));
  const Answer* const answer = client.hear<Answer>();
  EXPECT_NE(answer, nullptr);
  if (answer == nullptr || answer->count == 0) return {};
  SharedRegion region;
  EXPECT_TRUE(map_region(client.take_file(), answer->count * sizeof(Item), &region).ok());
  const auto* const items = reinterpret_cast<const Item*>(region.base);
  std::vector<Item> listed(items, items + answer->count);
  close_region(&region);
  return listed;
}

TEST(ServiceConversation, reports_add_up_by_database) {
  TestServer server;
  const auto report = [&](std::uint32_t database, std::uint64_t joins, bool same_build = true,
                          const char* folder = "/") {
    Client client(server.path());
    ReportJoins message;
    start_message(&message);
    fill_hello(&message.sender, database, folder, 1);
    if (!same_build) ++message.sender.protocol_version;
    message.counts.joins = joins;
    message.counts.fallbacks[3] = 2;
    message.counts.join_ms = 0.5;
    EXPECT_TRUE(client.say(message));
    EXPECT_FALSE(client.hear_anything());  // it is taken, and not answered
  };
  report(7, 3);
  report(8, 10);
  report(7, 4);
  report(7, 100, false);
  report(9, 1, true, "/tmp/gpujoin_no_such_folder");  // whose database is gone
  Client client(server.path());
  ASSERT_TRUE(client.greet(7));
  const auto listed = ask_for<DatabaseCounts, ListCounts, ListedCounts>(client);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].database, 7u);
  EXPECT_EQ(listed[0].counts.joins, 7u);
  EXPECT_EQ(listed[0].counts.fallbacks[3], 4u);
  EXPECT_EQ(listed[0].counts.join_ms, 1.0);
  EXPECT_EQ(listed[1].counts.joins, 10u);
  const auto others = ask_for<DatabaseCounts, ResetCounts, ListedCounts>(client);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0].counts.joins, 0u);
  EXPECT_GT(others[0].since_us, listed[0].since_us);
  EXPECT_EQ(others[1].counts.joins, 10u);
}

TEST(ServiceConversation, joins_at_work_are_seen_by_others) {
  Random random(77);
  const Points points(2, make_values(Shape::kUniform, random, 20000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 5);
  request.knobs.batch_pairs = 1000;
  TestServer server;
  Client watcher(server.path());
  ASSERT_TRUE(watcher.greet(7));
  const auto joins = [&] { return ask_for<ListedJoin, ListJoins, ListedJoins>(watcher); };
  EXPECT_TRUE(joins().empty());
  {
    Client client(server.path());
    ASSERT_TRUE(client.greet(7));
    EXPECT_TRUE(joins().empty());  // nobody knows yet what it wants
    ASSERT_TRUE(client.open(request));
    ASSERT_NE(client.hear<Batch>(), nullptr);
    // With batches ahead the join waits for its client.
    std::vector<ListedJoin> seen;
    for (int i = 0; i < 2000; ++i) {
      seen = joins();
      if (seen.size() == 1 && seen[0].phase == JoinPhase::kReturning && seen[0].pairs > 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].phase, JoinPhase::kReturning);
    EXPECT_EQ(seen[0].database, 7u);
    EXPECT_STREQ(seen[0].engine, "cpu");
    EXPECT_EQ(seen[0].left_rows, 20000u);
    EXPECT_GE(seen[0].pairs, 1000u);
    EXPECT_GT(seen[0].work, 0u);
    EXPECT_LE(seen[0].work_done, seen[0].work);
  }
  for (int i = 0; i < 2000 && !joins().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(joins().empty());
}

TEST(ServiceConversation, the_cpu_serves_where_the_device_fails_first) {
  TestServer server(find_device);
  const Points points = random_points(1, 20000);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 10);
  request = request.asking(Output::total());
  const std::uint64_t total = Client(server.path()).run(request).total;
  const auto runs_on = [&](const char* engine, const char* fallback) {
    Client client(server.path());
    const RunResult result = client.run(request, WantedEngine::kAuto);
    EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    EXPECT_EQ(result.total, total);
    EXPECT_EQ(client.engine, engine);
    EXPECT_EQ(client.fallback, fallback);
  };
  EXPECT_EQ(Client(server.path()).run(request, WantedEngine::kCuda).total, total);
  runs_on("cuda", "");
  fails = 1;
  runs_on("cpu", "the device is full");
  EXPECT_EQ(Client(server.path()).run(request, WantedEngine::kCuda).status.code,
            StatusCode::kOutOfMemory);
  fails = 0;
  runs_on("cuda", "");
  EXPECT_FALSE(server.is_closed());
  Client other(server.path());
  ASSERT_TRUE(other.greet());
  fails = 2;  // even a join of a few points: this process has lost the device
  runs_on("cpu", "the device broke");
  fails = 0;
  EXPECT_TRUE(comes_true([&] { return server.is_closed(); }));
  EXPECT_FALSE(server.is_replaced()) << "while somebody is there";
  other.hang_up();
  EXPECT_TRUE(comes_true([&] { return server.is_replaced(); }));
}

/// While a search is at work others wait, and one join answers them: also where the client of the
/// first, or of one that waits, hangs up, and where the first one fails.
TEST(ServiceConversation, searches_that_wait_for_a_device_are_answered_together) {
  enum class Trouble { kNone, kFirstGoes, kOtherGoes, kFirstFails };
  constexpr std::size_t kClients = 6;
  TestServer server(find_device);
  const Points points = random_points(8, 3000);
  const auto make_search = [](const double* point) {
    Search message = search_of(point, 2, 7, 1e300);
    message.engine = WantedEngine::kCuda;
    return message;
  };
  const auto begin = [&](Client& client) {
    ASSERT_TRUE(client.greet());
    const FoundTable* const found = find(client, key_of(1), 1);
    ASSERT_NE(found, nullptr);
    if (found->version != 0) close(client.take_file());
  };
  {
    Client first(server.path());
    begin(first);
    const double point[2] = {0, 0};
    Search message = make_search(point);
    std::vector<TestRegion> regions;
    const std::vector<BlockPatch> patches = {patch_of(0, 3000)};
    add_rows(points.view(), &message.table, &regions);
    message.table.of_table = message.table.has_patches = true;
    message.table.blocks = message.table.patches = 1;
    regions.emplace_back(patches.data(), patches.size() * sizeof(BlockPatch));
    expect_same(search(first, message, files_of(regions)), nearest_of(points, point, 7, 1e300));
  }
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kFirstGoes, Trouble::kOtherGoes, Trouble::kFirstFails}) {
    const auto are_answered_together = [&] {
      std::vector<std::unique_ptr<Client>> clients;
      std::vector<std::array<double, 2>> asked;
      for (std::size_t i = 0; i < kClients; ++i) {
        clients.push_back(std::make_unique<Client>(server.path()));
        begin(*clients.back());
        asked.push_back({static_cast<double>(i), 3.0 * static_cast<double>(i)});
      }
      const auto ask = [&](std::size_t i) {
        const Search message = make_search(asked[i].data());
        EXPECT_TRUE(clients[i]->say_bytes(&message, message.header.bytes));
      };
      most_left = 0;
      opened = 0;
      is_shut = true;
      ask(0);
      EXPECT_TRUE(comes_true([] { return opened == 1; }));
      for (std::size_t i = 1; i < kClients; ++i) ask(i);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (trouble == Trouble::kFirstGoes) clients[0]->hang_up();
      if (trouble == Trouble::kOtherGoes) clients[1]->hang_up();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (trouble == Trouble::kFirstFails) fails = 3;
      is_shut = false;
      for (std::size_t i = 0; i < kClients; ++i) {
        if (trouble == Trouble::kFirstGoes && i == 0) continue;
        if (trouble == Trouble::kOtherGoes && i == 1) continue;
        const FoundRows* const answer = clients[i]->hear<FoundRows>();
        EXPECT_NE(answer, nullptr);
        if (answer == nullptr) continue;
        if (trouble == Trouble::kFirstFails && i == 0) {
          EXPECT_EQ(answer->status.code, StatusCode::kOutOfMemory);
          continue;
        }
        EXPECT_TRUE(answer->status.ok()) << answer->status.message;
        EXPECT_STREQ(answer->engine, "cuda");
        expect_same({answer->rows, answer->rows + answer->count},
                    nearest_of(points, asked[i].data(), 7, 1e300));
      }
      return most_left > 1;
    };
    EXPECT_TRUE(comes_true(are_answered_together)) << static_cast<int>(trouble);
  }
}

TEST(ServiceConversation, joins_on_a_device_take_turns) {
  TestServer server(find_device);
  const Points points = random_points(1, 3000);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 2);
  const Oracle oracle(points, nullptr, Metric::kL2, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(matches_oracle(Client(server.path()).run(request, WantedEngine::kCuda), request,
                                   oracle));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpujoin::test
