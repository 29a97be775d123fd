// What an engine keeps of datasets with a key, for the joins that follow: plans, and the sides that
// were prepared by them. It knows no engine: KeptJoin is what an engine derives from.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "engine/joins/prepared_side.h"
#include "engine/request/request.h"

namespace gpujoin {

/// The rows of a side.
struct SideKey {
  DatasetKey data;
  bool named = false;  ///< by ids, not by positions
  std::uint64_t rows = 0;
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;

  bool operator==(const SideKey&) const = default;
};

/// What joins have in common that find the same plan and sides.
struct JoinKey {
  SideKey left, right;
  bool self_join = false;
  Metric metric = Metric::kL2;
  double eps = -1;  ///< less than 0: of rows as they came, for which there is no plan
  /// What was prepared for a radius from eps up to this one serves, too.
  double widest_eps = -1;
  Knobs knobs;  ///< those that a plan depends on
  int question = 0;

  bool operator==(const JoinKey&) const = default;
};

/// The join of points that the request asks for.
JoinKey key_of_join(const JoinRequest& request);
/// The right side of a join for nearest neighbours, whatever its left side and number of
/// neighbours; `index` numbers what is made of it.
JoinKey key_of_neighbors(const JoinRequest& request, int index);
/// The rows themselves, without their ids.
JoinKey key_of_rows(const Dataset& data);

/// What joins with one key share. An engine adds its plan.
struct KeptJoin {
  virtual ~KeptJoin() = default;

  const std::shared_ptr<SideSlot> left = std::make_shared<SideSlot>();
  /// The same one in a join of rows with themselves.
  std::shared_ptr<SideSlot> right = left;
};

/// From any thread. What goes is destroyed in the thread that calls, unless a join still uses it.
class SideCache {
 public:
  /// Sets how many bytes may be kept; 0: none.
  void keep(const SideBytes& limit);
  /// Whether anything may be kept.
  bool keeps() const;
  /// Drops what is kept of a dataset.
  void forget(std::uint64_t identity);
  /// The bytes kept of a dataset.
  SideBytes kept(std::uint64_t identity) const;
  /// The bytes of all.
  SideBytes kept() const;

  /// What joins with this key share, or some with a radius as near to it as can be that serves it;
  /// made where there is none; null where nothing is kept of the rows. Other versions of them are
  /// dropped. Throws what make() throws and std::bad_alloc.
  std::shared_ptr<KeptJoin> find(const JoinKey& key,
                                 const std::function<std::shared_ptr<KeptJoin>()>& make);
  /// Drops what does not fit into the limit beside what was used later; after a join.
  void trim();
  /// Drops what was used longest ago; false: there was nothing.
  bool drop_one();

 private:
  struct Entry {
    JoinKey key;
    std::shared_ptr<KeptJoin> join;
  };
  using Entries = std::list<Entry>;

  Entries::iterator find_entry(const JoinKey& key);
  template <class Wanted>
  void take_out(const Wanted& wanted, Entries* out);
  mutable std::mutex mutex_;
  SideBytes limit_;
  Entries entries_;  ///< the one used last comes first
};

}  // namespace gpujoin
