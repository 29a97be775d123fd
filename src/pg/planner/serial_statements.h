// Statements that must stay out of parallel mode.
#pragma once

namespace gpujoin {

/// Keeps the statement that is being planned out of parallel mode where PostgreSQL, before release
/// 17, refuses subtransactions there. What its plan gathers it then reads without workers, as it
/// does for a cursor.
void need_subtransactions();

}  // namespace gpujoin
