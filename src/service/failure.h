// What goes wrong inside the service, as an exception that carries what the client is to be shown.
#pragma once

#include <exception>
#include <new>
#include <system_error>

#include "engine/request/status.h"

namespace gpujoin::service {

struct Failure {
  Status status;
};

inline void require(const Status& status) {
  if (!status.ok()) throw Failure{status};
}

/// For what no client of this build sends.
inline void require(bool holds, const char* otherwise) {
  if (!holds) throw Failure{make_status(StatusCode::kInvalidArgument, nullptr, "%s", otherwise)};
}

/// Runs body(), which returns a Status, and turns what it throws into one.
template <class Body>
Status guarded(const Body& body) {
  try {
    return body();
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return make_status(StatusCode::kOutOfMemory, "Lower the memory that joins and tables may take.",
                       "out of memory in gpujoin_service");
  } catch (const std::system_error& error) {
    return make_status(StatusCode::kOutOfMemory, "Raise the system's limit on threads.",
                       "could not start a thread in gpujoin_service: %s", error.what());
  } catch (const std::exception& error) {
    return make_status(StatusCode::kInternal, nullptr, "gpujoin_service failed: %s", error.what());
  } catch (...) {
    return make_status(StatusCode::kInternal, nullptr, "gpujoin_service failed");
  }
}

}  // namespace gpujoin::service
