// The progress of a session's join, or of its searches, which other sessions may read. It is kept
// where PostgreSQL keeps the progress of a session's command: it needs no memory of gpujoin, and
// the end of the transaction removes it. While another command uses that place, such as COPY, joins
// are not seen.
#pragma once

#include "pg/compat.h"
#include "service/protocol/messages.h"

namespace gpujoin {

/// The session reads an input of a join, and has so many of its rows.
void show_reading(std::uint64_t rows);
/// The join works, or what it found is being returned. An engine is named by its table.
void show_join(const JoinStats& stats, const char* engine, service::JoinPhase phase);
/// Shows the number of searches so far in a table of `rows` rows, and of candidates compared.
void show_searches(std::uint64_t searches, std::uint64_t rows, std::uint64_t candidates,
                   const char* engine);
/// There is none any more.
void hide_join();

/// How many backends there are to look at, and what the one with a number from 0 on is at. False:
/// no join.
int session_places();
bool join_of_session(int place, service::ListedJoin* join);

}  // namespace gpujoin
