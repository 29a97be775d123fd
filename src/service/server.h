// The socket that clients connect to, and their conversations.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>

#include "service/conversation.h"
#include "service/descriptor.h"
#include "service/log.h"

namespace gpujoin::service {

/// Makes the socket at `path` and listens: from then on clients may connect. Throws Failure.
Descriptor listen_at(const char* path);

class Server {
 public:
  Server(Descriptor listener, FindEngine find_device);
  /// Ends all conversations and waits until they have ended.
  ~Server();
  Server(const Server&) = delete;

  /// -1: new clients are turned away.
  int listener() const { return listener_.get(); }
  /// Begins a conversation with each client that waits on the listener, where the user is ours.
  void accept_clients();
  void configure(const Configure& limits);
  /// Carries the counts of joins on from the file, and keeps them there.
  void keep_counts(const char* path) { service_.counts.keep_in(path); }
  void save_counts() { service_.counts.save(); }
  /// Lets go of tables and databases that are not there any more.
  void drop_removed();
  /// Where a new process could serve better: turns new clients away, whose joins run in their
  /// sessions until it is there. True once nobody is served any more.
  bool is_to_be_replaced();

 private:
  template <class Work>
  Status begin_thread(const Work& work);
  void end_thread();
  void converse(int socket);

  Service service_;
  Descriptor listener_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::list<Conversation*> conversations_;
  int threads_ = 0;  ///< of conversations
  bool closing_ = false;
  RareMatter refusals_;
};

}  // namespace gpujoin::service
