// What a backend and gpujoin_service say to each other. A message is one packet of a UNIX socket:
// a struct of this file, with the descriptors of shared memory where that is said. Rows and results
// lie in shared memory alone. What a backend sends there it seals first: nobody can write it any
// more, so the service may read it twice, and keep it.
//
// One connection is one conversation, and at most one join:
//
//   backend                          service
//   Hello                        ->
//                                <-  Welcome
//   FindTable (for each side)    ->
//                                <-  FoundTable
//   OpenJoin                     ->
//                                <-  Batch, up to kBatchesAhead of them
//   Next, for each batch done    ->
//                                <-  Batch ...; the last one has a status that is not kOk
//
// Either ends it by closing the socket; a backend that does so in the middle stops the join.
//
// In the place of OpenJoin there may be searches of the table that was found, one after the other:
//
//   Search                       ->
//                                <-  FoundRows, one or more
//   LetGo                        ->
//
// After LetGo the conversation is as at its beginning, so that a backend keeps it for further
// searches. In the place of FindTable and OpenJoin there may be ListTables, EvictTables,
// ListCounts, ResetCounts, ListJoins or ListDevices, each with its answer. ReportJoins is a
// conversation by itself, without an answer. Both ends are programs of one build on one machine:
// Hello says so, and structs go as they are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/engine.h"

namespace gpujoin::service {

inline constexpr std::uint32_t kMagic = 0x676a7376;  // gjsv
inline constexpr std::uint32_t kProtocolVersion = 7;
inline constexpr int kMostDescriptors = 8;
inline constexpr int kSides = 2;
inline constexpr std::uint32_t kBatchesAhead = 2;

/// The socket, below the data directory, which is the working directory of all backends. Base
/// backups leave files of such names out.
inline constexpr const char* kSocketName = "pgsql_tmp_gpujoin_service";

/// Room for the path of a file or folder below the data directory, with its 0. The service lets go
/// of what it has of a table or a database once that is not there any more.
inline constexpr std::size_t kMostPathBytes = 128;

enum class MessageKind : std::uint32_t {
  kHello,
  kWelcome,
  kFindTable,
  kFoundTable,
  kOpenJoin,
  kNext,
  kBatch,
  kSearch,
  kFoundRows,
  kLetGo,
  kListTables,
  kListedTables,
  kEvictTables,
  kEvictedTables,
  kReportJoins,
  kListCounts,
  kResetCounts,
  kListedCounts,
  kListJoins,
  kListedJoins,
  kListDevices,
  kListedDevices,
  kConfigure,
};

/// Every message begins with a header.
struct Header {
  MessageKind kind;
  std::uint32_t bytes;  ///< of the whole struct, or of what is sent of it: see sent_bytes()
};

/// Minimum size of a message, and the size that is sent. Messages that end with an array are sent
/// without its unused end.
template <class Message>
inline constexpr std::size_t kLeastBytes = sizeof(Message);
template <class Message>
std::size_t sent_bytes(const Message&) {
  return sizeof(Message);
}

struct Hello {
  static constexpr MessageKind kKind = MessageKind::kHello;
  Header header;
  std::uint32_t magic, protocol_version, engine_abi_version;
  EngineSizes sizes;
  std::uint32_t database;  ///< whose tables the conversation may name
  std::int32_t pid;
  char folder[kMostPathBytes];  ///< of the database
};

enum class DeviceState : std::int32_t { kStarting, kReady, kUnavailable };

struct Welcome {
  static constexpr MessageKind kKind = MessageKind::kWelcome;
  Header header;
  Status status;  ///< kUnavailable: another build
  std::int32_t pid;
  DeviceState device;
  char device_reason[sizeof(Status::message)];  ///< of kUnavailable
};

// ---- Tables that stay

inline constexpr std::uint32_t kMostKeyBytes = 1000;

/// Which columns of which relation: equal where all bytes are. The service knows no more of it than
/// its relation. Keys of one relation that differ in `file` name the same columns before and after
/// the relation was rewritten.
struct TableKey {
  std::uint32_t relation;
  std::uint32_t tablespace, file;  ///< where its rows are stored
  std::uint32_t columns_bytes;     ///< used of `columns`, the rest is 0
  unsigned char columns[kMostKeyBytes];
};

/// What proves that the rows of a block are still the ones that were read.
enum class BlockState : std::uint32_t {
  kUnproven,    ///< nothing does: the block has to be read again
  kAllVisible,  ///< all rows were visible to everyone, as long as the LSN is the same
  kCommitted,   ///< its tuples were inserted and deleted by transactions up to newest_xid, all of
                ///< them over: the rows serve snapshots that regard none of these transactions as
                ///< running, as long as the LSN is the same
};

struct BlockProof {
  std::uint64_t lsn;
  std::uint64_t newest_xid;  ///< with its epoch; of kCommitted
  std::uint32_t rows;        ///< of the block that are kept
  BlockState state;
  /// All transactions before it, with epochs, were over when the block was read. 0 if a tuple that
  /// the reader saw has no row, because its value is NULL.
  std::uint64_t horizon = 0;
};

/// What a backend wants to know of a table's values when it finds it; the service keeps it.
struct TableTraits {
  unsigned char bytes[64];
};

/// Looks for the table of a side, and holds what is found for the rest of the conversation.
struct FindTable {
  static constexpr MessageKind kKind = MessageKind::kFindTable;
  Header header;
  std::uint32_t side;  ///< 0 or 1
  TableKey key;
  char path[kMostPathBytes];     ///< the first file of its rows
  std::uint64_t expected_bytes;  ///< that the table will take, where it is not there yet
  bool asks_only;  ///< hold nothing and send no descriptor: answer only whether the table is there
};

/// With the descriptor of the table's proof where `version` is not 0, to be read only:
/// [map_pages] LSNs of the visibility map's pages, then [blocks] BlockProof.
struct FoundTable {
  static constexpr MessageKind kKind = MessageKind::kFoundTable;
  Header header;
  std::uint64_t version;  ///< 0: there is none of its rows yet
  bool may_stay;          ///< false: the table is too large to be kept
  bool all_visible;       ///< every block is kAllVisible
  std::uint64_t rows, blocks, map_pages;
  std::uint32_t dims;
  ScalarType scalar;
  TableTraits traits;
};

/// Some line pointers of a block, which are numbered from 1 on.
class Lines {
 public:
  static constexpr std::uint32_t kEnd = 320;  ///< all numbers are below

  void add(std::uint32_t line) { words_[line / 64] |= std::uint64_t{1} << line % 64; }
  bool has(std::uint64_t line) const {
    return line < kEnd && (words_[line / 64] >> line % 64 & 1) != 0;
  }
  std::uint32_t count() const {
    std::uint32_t lines = 0;
    for (const std::uint64_t word : words_)
      lines += static_cast<std::uint32_t>(std::popcount(word));
    return lines;
  }

 private:
  std::uint64_t words_[kEnd / 64] = {};
};

/// A block whose rows replace those that the table has of it.
struct BlockPatch {
  std::uint32_t block;
  bool lasts;  ///< for other snapshots, too: what the table has of the block serves none any more
  BlockProof proof;
  /// Lines whose rows stay as the table has them. The rows are known by their ctids. The backend
  /// does not send them.
  Lines same = {};
};

/// A row that an update has given another ctid, but no other value. The backend does not send the
/// value, which the table has under the ctid before.
struct MovedRow {
  std::int64_t ctid, before;
};

/// Returns true if a row of the block, known by its ctid, stays.
inline bool is_same(const BlockPatch& patch, std::int64_t ctid) {
  const auto place = static_cast<std::uint64_t>(ctid);
  return place >> 16 == patch.block && patch.same.has(place & 0xffff);
}

// ---- Joins

/// The rows of one side. Descriptors come in the order of the members that need one.
///
/// A side of its own: `rows` rows. A side of a table, which has no keys: what the backend found,
/// with `rows` rows in the place of what is not proven, sorted by their blocks as `patches` are.
/// Blocks from `blocks` on are gone. The memory of a table's rows stays with the service.
struct SideMessage {
  std::uint64_t rows;
  std::uint32_t dims;
  ScalarType scalar;
  bool of_table;
  bool has_rows;              ///< a descriptor of coordinates, [rows][dims]
  bool has_ids;               ///< a descriptor of ids, [rows]; else ids are positions
  bool has_scores;            ///< a descriptor of scores, [rows]
  std::uint32_t key_columns;  ///< where there are any a descriptor of keys, [rows][key_columns]
  // Where it is of a table. A descriptor: [map_pages] LSNs, [patches] BlockPatch, and [moved]
  // MovedRow in the order of the patches.
  bool has_patches;
  std::uint64_t blocks, map_pages, patches, moved;
  TableTraits traits;
};

enum class WantedEngine : std::int32_t { kAuto, kCuda, kCpu };

struct OpenJoin {
  static constexpr MessageKind kKind = MessageKind::kOpenJoin;
  Header header;
  WantedEngine engine;
  /// A JoinRequest. Its datasets, pointers and resources but for knobs, threads and limits are
  /// without meaning. A self-join has one side.
  alignas(JoinRequest) unsigned char request[sizeof(JoinRequest)];
  SideMessage sides[kSides];
  /// Output::kSums has one more descriptor: a PairSums, whose pointers are without meaning, and its
  /// columns: left, right, integers.
  std::uint64_t sums_bytes;
  /// Counts and sums of left rows without ids may be wanted by groups of these rows; 0: they are
  /// not. Then rows of the result are groups, which may come several times, and left out are those
  /// without pairs. Of more than one group a descriptor, the last one: the group of each row,
  /// [left rows] 32-bit numbers.
  std::uint64_t groups;
};

struct Next {
  static constexpr MessageKind kKind = MessageKind::kNext;
  Header header;
};

/// A part of the result, or its end. Descriptors, where they are said to be there, are of memory
/// that serves this batch and all later ones until another one comes.
struct Batch {
  static constexpr MessageKind kKind = MessageKind::kBatch;
  Header header;
  Status status;  ///< kOk: a batch; kEnd: the result is complete; else what went wrong
  char engine[8];
  char fallback[sizeof(Status::message)];  ///< why the CPU serves where a device was to; else ""
  JoinStats stats;
  /// Arrays, where not null, count bytes from the beginning of the results, where nothing lies. Ids
  /// that are null here are what their own memory begins with; few pairs come with their own.
  ResultBatch batch;
  std::uint64_t results_bytes;
  bool new_results;  ///< a descriptor
  bool new_ids;      ///< a descriptor of the left ids, and unless both are one, of the right ones
  bool ids_are_one;  ///< left_ids and right_ids are one array
  std::uint64_t left_ids_bytes, right_ids_bytes;
};

// ---- Searches

/// Maximum size of the searched point.
inline constexpr std::size_t kMostPointBytes = 16384;

/// Asks for the rows of a table nearest to one point. FindTable must have found the table for side
/// 1. The first search after FindTable sends the blocks that the backend read.
struct Search {
  static constexpr MessageKind kKind = MessageKind::kSearch;
  Header header;
  WantedEngine engine;
  SideMessage table;  ///< with its descriptors, where it is of_table
  /// A JoinRequest for Output::nearest(), as OpenJoin has it.
  alignas(JoinRequest) unsigned char request[sizeof(JoinRequest)];
  std::uint32_t dims;
  ScalarType scalar;
  std::uint32_t point_bytes;
  alignas(8) unsigned char point[kMostPointBytes];  ///< [point_bytes] are sent
};
template <>
inline constexpr std::size_t kLeastBytes<Search> = offsetof(Search, point);
inline std::size_t sent_bytes(const Search& message) {
  return kLeastBytes<Search> + message.point_bytes;
}

struct FoundRow {
  std::int64_t id;
  double distance;
};

inline constexpr std::uint32_t kMostFoundRows = 1000;

/// Rows ordered by distance and id. A long result takes several messages.
struct FoundRows {
  static constexpr MessageKind kKind = MessageKind::kFoundRows;
  Header header;
  Status status;  ///< kOk; else what went wrong, and there are no rows
  char engine[8];
  bool more;  ///< further ones follow in another message
  std::uint64_t candidates;
  std::uint32_t count;
  FoundRow rows[kMostFoundRows];  ///< [count] are sent
};
template <>
inline constexpr std::size_t kLeastBytes<FoundRows> = offsetof(FoundRows, rows);
inline std::size_t sent_bytes(const FoundRows& message) {
  return kLeastBytes<FoundRows> + message.count * sizeof(FoundRow);
}

/// Releases the tables that were found. Has no answer.
struct LetGo {
  static constexpr MessageKind kKind = MessageKind::kLetGo;
  Header header;
};

// ---- What DBAs ask, and the supervisor says

/// The tables of the conversation's database.
struct ListTables {
  static constexpr MessageKind kKind = MessageKind::kListTables;
  Header header;
};

struct ListedTable {
  TableKey key;
  TableTraits traits;
  std::uint64_t rows, host_bytes, device_bytes;
  std::uint64_t hits;         ///< joins that found it
  std::uint64_t blocks_read;  ///< since it is there, the first time included
};

/// With a descriptor, where there are any: [count] ListedTable.
struct ListedTables {
  static constexpr MessageKind kKind = MessageKind::kListedTables;
  Header header;
  std::uint64_t count;
};

struct EvictTables {
  static constexpr MessageKind kKind = MessageKind::kEvictTables;
  Header header;
  std::uint32_t relation;  ///< 0: all
  bool everywhere;         ///< in all databases, not in the conversation's alone
};

struct EvictedTables {
  static constexpr MessageKind kKind = MessageKind::kEvictedTables;
  Header header;
  std::uint64_t tables;
};

// ---- Statistics

inline constexpr int kCountedFallbacks = 4;

/// What joins did, wherever they ran. All of it adds up.
struct JoinCounts {
  std::uint64_t joins;          ///< begun
  std::uint64_t service_joins;  ///< that the service ran
  std::uint64_t device_joins;   ///< that a device ran
  std::uint64_t cancels;
  std::uint64_t rows;  ///< of both sides
  std::uint64_t pairs;
  std::uint64_t candidates;
  std::uint64_t table_blocks;  ///< of tables that stay
  std::uint64_t blocks_read;   ///< of these
  std::uint64_t fallbacks[kCountedFallbacks];
  double read_ms, index_ms, join_ms;
  std::uint64_t missed_joins;  ///< of many pairs that were planned without us
  std::uint64_t searches;      ///< of one table for the rows near one value
};

inline void add_counts(const JoinCounts& more, JoinCounts* sum) {
  sum->joins += more.joins;
  sum->service_joins += more.service_joins;
  sum->device_joins += more.device_joins;
  sum->cancels += more.cancels;
  sum->rows += more.rows;
  sum->pairs += more.pairs;
  sum->candidates += more.candidates;
  sum->table_blocks += more.table_blocks;
  sum->blocks_read += more.blocks_read;
  for (int i = 0; i < kCountedFallbacks; ++i) sum->fallbacks[i] += more.fallbacks[i];
  sum->read_ms += more.read_ms;
  sum->index_ms += more.index_ms;
  sum->join_ms += more.join_ms;
  sum->missed_joins += more.missed_joins;
  sum->searches += more.searches;
}

/// In the place of Hello: adds to the counts of the sender's database. The sender hangs up.
struct ReportJoins {
  static constexpr MessageKind kKind = MessageKind::kReportJoins;
  Header header;
  Hello sender;
  JoinCounts counts;
};

/// Of all databases.
struct ListCounts {
  static constexpr MessageKind kKind = MessageKind::kListCounts;
  Header header;
};

/// Forgets the counts of the conversation's database. The answer has those of the others.
struct ResetCounts {
  static constexpr MessageKind kKind = MessageKind::kResetCounts;
  Header header;
};

struct DatabaseCounts {
  std::uint32_t database;
  char folder[kMostPathBytes];
  std::int64_t since_us;  ///< microseconds since 1970
  JoinCounts counts;
};

/// With a descriptor, where there are any: [count] DatabaseCounts.
struct ListedCounts {
  static constexpr MessageKind kKind = MessageKind::kListedCounts;
  Header header;
  std::uint64_t count;
};

/// The joins that are at work in the service, of all databases.
struct ListJoins {
  static constexpr MessageKind kKind = MessageKind::kListJoins;
  Header header;
};

enum class JoinPhase : std::int32_t {
  kReading,  ///< the backend reads what the service does not have
  kWaiting,  ///< for memory, threads or the device
  kIndexing,
  kJoining,
  kReturning,  ///< what was found, as fast as the backend takes it
  kSearching,  ///< a table for one value after the other; the service does not list it
};

/// What an engine that works is at.
inline JoinPhase phase_of(const JoinStats& stats) {
  if (stats.work > 0 && stats.work_done == stats.work) return JoinPhase::kReturning;
  const bool joins =
      stats.index_ms > 0 || stats.work > 0 || stats.candidates > 0 || stats.pairs > 0;
  return joins ? JoinPhase::kJoining : JoinPhase::kIndexing;
}

struct ListedJoin {
  std::int32_t pid;
  std::uint32_t database;
  JoinPhase phase;
  char engine[8];
  std::int64_t since_us;  ///< microseconds since 1970
  std::uint64_t left_rows, right_rows, candidates, pairs;
  std::uint64_t work, work_done;  ///< JoinStats
};

/// With a descriptor, where there are any: [count] ListedJoin.
struct ListedJoins {
  static constexpr MessageKind kKind = MessageKind::kListedJoins;
  Header header;
  std::uint64_t count;
};

/// How the memory of devices is used.
struct ListDevices {
  static constexpr MessageKind kKind = MessageKind::kListDevices;
  Header header;
};

struct ListedDevices {
  static constexpr MessageKind kKind = MessageKind::kListedDevices;
  Header header;
  DeviceMemory devices[kMostDevices];  ///< all 0 of those that no join has used
};

/// From the supervisor alone, on the socket that the service has as its standard input. When that
/// closes, the service ends.
struct Configure {
  static constexpr MessageKind kKind = MessageKind::kConfigure;
  Header header;
  std::uint32_t threads;        ///< of the host, for all joins
  std::uint64_t join_memory;    ///< bytes of the host for the joins that run at a time
  std::uint64_t host_memory;    ///< bytes for tables, 0: none stays
  std::uint64_t device_memory;  ///< bytes of each device for tables and their indexes
};

}  // namespace gpujoin::service
