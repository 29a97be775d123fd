// What a backend asks the service that is running, if any.
#pragma once

#include "pg/service/connection.h"

namespace gpujoin {

/// Sends a question and copies its answer; false where no service is running. Descriptors that come
/// with it are the caller's. Raises errors and interrupts.
bool ask_running_service(const void* question, std::size_t bytes, void* answer,
                         std::size_t answer_bytes, service::Descriptors* descriptors);

/// The items of a region that came with an answer, in the current memory context.
void* copy_listed(service::Descriptors* descriptors, std::uint64_t bytes);

template <class Question, class Answer>
bool ask_if_running(const Question& question, Answer* answer) {
  service::Descriptors descriptors;
  const bool asked =
      ask_running_service(&question, sizeof question, answer, sizeof *answer, &descriptors);
  close_descriptors(&descriptors);
  return asked;
}

}  // namespace gpujoin
