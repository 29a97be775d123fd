#include "service/conversation.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "service/failure.h"
#include "service/log.h"
#include "service/open_join.h"
#include "service/tables/search_table.h"

namespace gpujoin::service {
namespace {

/// Thrown where the client is gone.
struct Gone {};

}  // namespace

void Conversation::run() {
  const Status status = guarded([&]() -> Status {
    const std::uint64_t number = service_.hangups.watch(socket_.get(), interrupt_);
    const Status end = guarded([&]() -> Status {
      try {
        talk();
      } catch (const Gone&) {
      }
      return {};
    });
    service_.hangups.forget(socket_.get(), number);
    return end;
  });
  if (!status.ok()) log_line("a conversation ended early: %s", status.message);
}

void Conversation::shut_down() {
  interrupt_.cancel();
  shutdown(socket_.get(), SHUT_RDWR);
}

void Conversation::talk() {
  if (!receive()) return;
  if (const ReportJoins* const report = message_as<ReportJoins>(message_)) {
    if (is_same_build(report->sender)) service_.counts.add(report->sender, report->counts);
    return;
  }
  if (!greet()) return;
  while (receive()) answer();
}

/// False: the client is another build, which it has been answered.
bool Conversation::greet() {
  const Header* const header = reinterpret_cast<const Header*>(message_);
  require(header->kind == MessageKind::kHello, "a client did not begin with a greeting");
  const Hello* const hello = message_as<Hello>(message_);
  const bool same = hello != nullptr && is_same_build(*hello);
  Welcome welcome;
  start_message(&welcome);
  welcome.pid = getpid();
  if (same) {
    hello_ = *hello;
    Status reason;
    welcome.device = service_.engines.device_state(&reason);
    std::memcpy(welcome.device_reason, reason.message, sizeof welcome.device_reason);
  } else {
    welcome.status =
        make_status(StatusCode::kUnavailable, "Restart the server after an upgrade of gpujoin.",
                    "gpujoin_service is of another version of gpujoin");
  }
  send(welcome);
  return same;
}

void Conversation::answer() {
  if (const OpenJoin* const open = message_as<OpenJoin>(message_))
    open_join(*open);
  else if (const Search* const question = message_as<Search>(message_))
    search(*question);
  else if (message_as<LetGo>(message_) != nullptr)
    let_go();
  else if (message_as<Next>(message_) != nullptr)
    take_next();
  else if (const FindTable* const find = message_as<FindTable>(message_))
    find_table(*find);
  else if (message_as<ListTables>(message_) != nullptr)
    list_tables();
  else if (const EvictTables* const evict = message_as<EvictTables>(message_))
    evict_tables(*evict);
  else if (message_as<ListCounts>(message_) != nullptr)
    list_counts();
  else if (message_as<ResetCounts>(message_) != nullptr)
    reset_counts();
  else if (message_as<ListJoins>(message_) != nullptr)
    list_joins();
  else if (message_as<ListDevices>(message_) != nullptr)
    list_devices();
  else
    require(false, "a client sent a message that it must not send");
}

/// Waits for the socket. False: the conversation was ended.
bool Conversation::wait(short events) {
  pollfd state = {socket_.get(), events, 0};
  while (poll(&state, 1, -1) < 0)
    if (errno != EINTR) return false;
  return true;
}

/// Receives a message if there is one.
bool Conversation::try_receive() {
  close_descriptors(&descriptors_);
  const ChannelState state =
      receive_message(socket_.get(), message_, sizeof message_, &descriptors_);
  if (state == ChannelState::kClosed) throw Gone{};
  return state == ChannelState::kDone;
}

/// Waits for a message. False: there will be none.
bool Conversation::receive() {
  while (!try_receive())
    if (!wait(POLLIN)) return false;
  return true;
}

template <class Message>
void Conversation::send(const Message& message, const int* files, int count) {
  for (;;) {
    const ChannelState state = send_message(socket_.get(), message, files, count);
    if (state == ChannelState::kDone) return;
    if (state == ChannelState::kClosed || !wait(POLLOUT)) throw Gone{};
  }
}

void Conversation::find_table(const FindTable& message) {
  require(
      std::memchr(message.path, 0, sizeof message.path) != nullptr && is_bool(message.asks_only),
      "a table is looked for in no way that there is");
  if (message.asks_only) {
    FoundTable answer;
    start_message(&answer);
    service_.tables.describe(hello_.database, message.key, &answer);
    return send(answer);
  }
  require(message.side < kSides && !joined_ && !sides_[message.side].is_found,
          "a client looks for a table in the wrong place");
  shown_.show(hello_.pid, hello_.database);
  Side& side = sides_[message.side];
  side.table = service_.tables.find(hello_.database, message.key, message.path);
  side.is_found = true;
  FoundTable answer;
  start_message(&answer);
  const TableVersion* const version = side.table.version();
  if (version == nullptr) {
    answer.may_stay = service_.tables.may_stay(message.expected_bytes);
    return send(answer);
  }
  answer.version = version->number();
  answer.may_stay = true;
  answer.all_visible = version->all_visible();
  answer.rows = side.table.live_rows();
  answer.blocks = version->blocks();
  answer.map_pages = version->map_pages();
  answer.dims = version->rows()->dims();
  answer.scalar = version->rows()->scalar();
  answer.traits = version->traits();
  const Descriptor proof(version->open_proof());
  const int file = proof.get();
  send(answer, &file, 1);
}

template <class Answer, class Item>
void Conversation::send_list(const char* name, const std::vector<Item>& items) {
  Answer answer;
  start_message(&answer);
  answer.count = items.size();
  if (items.empty()) return send(answer);
  Region region(name, items.size() * sizeof items[0]);
  std::memcpy(region.data(), items.data(), items.size() * sizeof items[0]);
  const int file = region.file();
  send(answer, &file, 1);
}

void Conversation::list_tables() {
  service_.tables.drop_removed();
  send_list<ListedTables>("gpujoin tables", service_.tables.list(hello_.database));
}

void Conversation::list_counts() {
  service_.counts.drop_removed();
  send_list<ListedCounts>("gpujoin counts", service_.counts.list());
}

void Conversation::reset_counts() {
  service_.counts.reset(hello_);
  list_counts();
}

void Conversation::list_joins() { send_list<ListedJoins>("gpujoin joins", service_.board.list()); }

void Conversation::list_devices() {
  ListedDevices answer;
  start_message(&answer);
  service_.engines.memory(answer.devices, kMostDevices);
  send(answer);
}

void Conversation::evict_tables(const EvictTables& message) {
  EvictedTables answer;
  start_message(&answer);
  require(is_bool(message.everywhere), "tables are of a database or of all");
  std::optional<std::uint32_t> database;
  if (!message.everywhere) database = hello_.database;
  answer.tables = service_.tables.evict(database, message.relation);
  send(answer);
}

void Conversation::let_go() {
  require(!joined_, "a client lets go of the tables of its join");
  for (Side& side : sides_) side = {};
  shown_.hide();
}

/// Returns why the work failed. Throws Gone if the client has hung up.
template <class Work>
Status Conversation::work_for_client(const Work& work) {
  const Status status = guarded([&]() -> Status {
    try {
      work();
    } catch (const Gone&) {
      interrupt_.cancel();
    }
    return {};
  });
  if (interrupt_.cancelled()) throw Gone{};
  return status;
}

void Conversation::search(const Search& message) {
  const Status status = work_for_client([&] { find_rows(message); });
  if (status.ok()) return;
  FoundRows answer;
  start_message(&answer);
  answer.status = status;
  answer.header.bytes = static_cast<std::uint32_t>(sent_bytes(answer));
  send(answer);
}

/// Sends the rows of a table that are nearest to the client's.
void Conversation::find_rows(const Search& message) {
  Side& side = sides_[1];
  require(side.is_found && !joined_ && (message.table.of_table || side.table.is_there()),
          "a client searches no table");
  JoinRequest request = read_request(message.request, message.engine, service_.threads);
  if (message.table.of_table) rows_of(1, message.table, false);
  const Dataset left = row_of(message);
  require(request.output() == Output::kNearest && !request.self_join() && request.keys.count == 0,
          "a search is for nearest rows");
  request.sides = request.sides.with_rows(left, side.table.rows());
  require(check_request(request));
  SearchAnswer found;
  const Status status =
      search_table(service_.searches, request, side.table, message.engine, interrupt_, &found);
  if (status.code == StatusCode::kInterrupted) throw Gone{};
  require(status);
  send_rows(found);
}

void Conversation::send_rows(const SearchAnswer& found) {
  FoundRows answer;
  start_message(&answer);
  std::snprintf(answer.engine, sizeof answer.engine, "%s", found.engine);
  answer.candidates = found.candidates;
  const std::vector<FoundRow>& rows = found.rows;
  std::size_t next = 0;
  do {
    const std::size_t count = std::min<std::size_t>(rows.size() - next, kMostFoundRows);
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(next), count, answer.rows);
    next += count;
    answer.count = static_cast<std::uint32_t>(count);
    answer.more = next < rows.size();
    answer.header.bytes = static_cast<std::uint32_t>(sent_bytes(answer));
    send(answer);
  } while (answer.more);
}

void Conversation::open_join(const OpenJoin& message) {
  require(!joined_, "a client has more than one join");
  joined_ = true;
  shown_.show(hello_.pid, hello_.database);
  const Status status = work_for_client([&] { run_join(message); });
  if (!status.ok()) send_end(status, nullptr);
}

void Conversation::run_join(const OpenJoin& message) {
  JoinRequest request = read_request(message.request, message.engine, service_.threads);
  const bool packed = request.output() == Output::kCountPerRow ||
                      request.output() == Output::kClusters ||
                      request.output() == Output::kStableClusters ||
                      is_of_bits(request.metric());  // which cannot mark an empty slot
  Dataset rows[kSides] = {};
  for (int side = 0; side < (request.self_join() ? 1 : kSides); ++side)
    rows[side] = rows_of(side, message.sides[side], packed);
  if (request.self_join()) sides_[1].count = sides_[0].count;
  request.sides = request.sides.with_rows(rows[0], rows[1]);
  ClientSums sums;
  if (request.output() == Output::kSums) {
    // The rows of a table are the service's own, and nobody else knows their order.
    require(!message.sides[0].of_table && !message.sides[1].of_table, "a table has no columns");
    take_sums(message, request.left().rows, request.right().rows, &descriptors_, &sums);
    request = request.asking(Output::sums(&sums.sums));
  }
  ClientGroups groups;
  take_groups(message, request, &descriptors_, &groups);
  require(check_request(request));
  require(are_known_keys(request), "a key of a join is not as the request has it");
  const std::uint64_t sent_bytes = groups.count > 0 ? GroupedRows::bytes(request, groups.count)
                                                    : ResultSender::id_bytes(request);
  RunningJoin join({service_.engines, service_.admission}, interrupt_, request, sent_bytes,
                   message.engine);
  ResultSender results(request);
  // The board forgets the join before it ends.
  const struct Shown {
    JoinBoard::Entry& entry;
    ~Shown() { entry.show(nullptr); }
  } shown{shown_};
  shown_.show(&join);
  std::optional<GroupedRows> grouped;
  if (groups.count > 0) grouped.emplace(request, groups);
  send_batches(join, results, grouped ? &*grouped : nullptr);
}

/// The rows of a side, which stay for the rest of the conversation.
Dataset Conversation::rows_of(int number, const SideMessage& message, bool packed) {
  Side& side = sides_[number];
  ClientRows rows = take_rows(message, &descriptors_);
  if (!message.of_table) {
    side.rows = std::move(rows);
    side.count = message.rows;
    return side.rows.view();
  }
  require(side.is_found, "a side is of no table");
  TablePatch patch = read_patch(message, std::move(rows));
  service_.tables.patch(side.table, patch, packed);
  side.count = side.table.live_rows();
  return side.table.rows();
}

void Conversation::describe(const RunningJoin& join, Batch* message) const {
  std::snprintf(message->engine, sizeof message->engine, "%s", join.engine());
  std::memcpy(message->fallback, join.fallback(), sizeof message->fallback);
  JoinStats& stats = message->stats;
  join.stats(&stats);
  // Slots without a row count for the engine.
  stats.left_rows = std::min(stats.left_rows, sides_[0].count);
  stats.right_rows = std::min(stats.right_rows, sides_[1].count);
}

/// Sends what the engine finds; where there are `groups` these instead of its rows.
void Conversation::send_batches(RunningJoin& join, ResultSender& results, GroupedRows* groups) {
  ResultBatch batch;
  Status status;
  while ((status = join.next(&batch)).ok()) {
    if (groups == nullptr) {
      send_batch(join, results, batch);
      continue;
    }
    for (std::uint64_t row = 0; !groups->add(batch, &row);)
      send_batch(join, results, groups->take());
  }
  if (status.code == StatusCode::kInterrupted) throw Gone{};
  if (status.code == StatusCode::kEnd && groups != nullptr)
    send_batch(join, results, groups->take());
  send_end(status, &join);
}

void Conversation::send_batch(RunningJoin& join, ResultSender& results, const ResultBatch& batch) {
  for (results.begin(batch); !results.done();) {
    while (!has_room(join)) {
    }
    ResultSender::Packet packet;
    results.copy_next(&packet);
    describe(join, &packet.message);
    send(packet.message, packet.files, packet.count);
    ++ahead_;
  }
}

/// Whether a batch may be sent; if not, waits for what the client says next, and lets others work.
bool Conversation::has_room(RunningJoin& join) {
  while (try_receive()) take_next();
  if (ahead_ < kBatchesAhead) return true;
  join.rest();
  if (!wait(POLLIN)) throw Gone{};
  return false;
}

void Conversation::take_next() {
  require(message_as<Next>(message_) != nullptr && ahead_ > 0,
          "a client sent a message that it must not send");
  --ahead_;
}

/// The join, where there is one, is closed after it.
void Conversation::send_end(const Status& status, const RunningJoin* join) {
  Batch message;
  start_message(&message);
  message.status = status;
  if (join != nullptr) describe(*join, &message);
  send(message);
}

}  // namespace gpujoin::service
