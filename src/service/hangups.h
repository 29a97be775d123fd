// Watches the connections of all conversations: one that is hung up is cancelled, whatever its
// thread is doing.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "service/descriptor.h"
#include "service/interrupt.h"

namespace gpujoin::service {

class Hangups {
 public:
  /// Throws std::system_error.
  Hangups();
  ~Hangups();
  Hangups(const Hangups&) = delete;

  /// Cancels `interrupt` once the other end of the socket is gone, or this end is shut down, until
  /// forget() is called with the number that is returned. Throws std::system_error or
  /// std::bad_alloc.
  std::uint64_t watch(int socket, Interrupt& interrupt);
  void forget(int socket, std::uint64_t number);

 private:
  void run();

  Descriptor poll_, wake_;
  std::mutex mutex_;
  std::uint64_t last_number_ = 0;  ///< 0 is that of wake_
  std::map<std::uint64_t, Interrupt*> watched_;
  std::thread thread_;
};

}  // namespace gpujoin::service
