//! Limits of outages between a contest and its hosts. docs/machines.md has a table of their effects.

use std::time::Duration;

/// Longest break of a connection that costs no more than the turn in flight: processes, connections of clients and
/// servers stay on both sides.
pub const BREAK_MAX: Duration = Duration::from_secs(30);
/// Longest silence of the other end of a link: a break, and the time in which NATS notices its end and connects again.
/// Beyond it the work of that end is lost, and both ends give up the link.
pub const SILENCE_MAX: Duration = Duration::from_secs(40);
/// A host that is silent in a turn for longer than this may have been cut off from the other machines too, so the turn is
/// lost.
pub const OUT_OF_REACH_MAX: Duration = Duration::from_secs(1);
/// Time for a nats-server, or for an agent that lost its connection to it, to come back once the link is given up.
pub const ABSENT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a machine that is cut off to come back once the link is given up.
pub const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(120);

// A break must fit into the silence that both ends bear, with time to connect again.
const _: () = assert!(BREAK_MAX.as_secs() + 10 <= SILENCE_MAX.as_secs());
