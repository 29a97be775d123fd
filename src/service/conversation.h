// One client, from Hello to the end of its connection, in a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "service/descriptor.h"
#include "service/grouped_rows.h"
#include "service/hangups.h"
#include "service/join_board.h"
#include "service/join_counts.h"
#include "service/protocol/channel.h"
#include "service/result_sender.h"
#include "service/running_join.h"
#include "service/search_batches.h"
#include "service/tables/table_store.h"

namespace gpujoin::service {

/// What conversations share.
struct Service {
  explicit Service(FindEngine find_device) : engines(std::move(find_device)) {}

  Engines engines;
  TableStore tables{engines};
  Admission admission;
  Hangups hangups;
  CountStore counts;
  JoinBoard board;
  SearchBatches searches{{engines, admission}};
  std::atomic<std::uint32_t> threads{1};  ///< of the host, that a join may have
};

class Conversation {
 public:
  Conversation(Service& service, Descriptor socket)
      : service_(service), socket_(std::move(socket)) {}
  ~Conversation() { close_descriptors(&descriptors_); }
  Conversation(const Conversation&) = delete;

  /// Returns when the connection has ended, by either side. Throws nothing.
  void run();
  /// Ends it, from another thread.
  void shut_down();

 private:
  void talk();
  bool greet();
  void answer();
  bool receive();
  bool try_receive();
  bool wait(short events);
  template <class Message>
  void send(const Message& message, const int* files = nullptr, int count = 0);

  void find_table(const FindTable& message);
  void list_tables();
  void evict_tables(const EvictTables& message);
  void list_counts();
  void reset_counts();
  void list_joins();
  void list_devices();
  template <class Answer, class Item>
  void send_list(const char* name, const std::vector<Item>& items);

  template <class Work>
  Status work_for_client(const Work& work);

  void search(const Search& message);
  void find_rows(const Search& message);
  void send_rows(const SearchAnswer& found);
  void let_go();

  void open_join(const OpenJoin& message);
  void run_join(const OpenJoin& message);
  Dataset rows_of(int side, const SideMessage& message, bool packed);
  void describe(const RunningJoin& join, Batch* message) const;
  void send_batches(RunningJoin& join, ResultSender& results, GroupedRows* groups);
  void send_batch(RunningJoin& join, ResultSender& results, const ResultBatch& batch);
  bool has_room(RunningJoin& join);
  void take_next();
  void send_end(const Status& status, const RunningJoin* join);

  Service& service_;
  const Descriptor socket_;
  Interrupt interrupt_;
  Descriptors descriptors_;  ///< that came with the last message
  Hello hello_{};
  JoinBoard::Entry shown_{service_.board};
  struct Side {
    TableHold table;
    bool is_found = false;  ///< FindTable was answered
    ClientRows rows;        ///< of no table
    std::uint64_t count = 0;
  };
  Side sides_[kSides];
  bool joined_ = false;
  std::uint32_t ahead_ = 0;  ///< batches sent that the client has not done with
  alignas(64) unsigned char message_[kMostMessageBytes];
};

}  // namespace gpujoin::service
