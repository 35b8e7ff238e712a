//! The exit statuses of the program, all of them; and 128 + N for each other signal N that ends it.
//!
//! Part of `cli`.

/// The turn came to its end; so did a conversation at a terminal, whatever happened in it.
pub const COMPLETED: u8 = 0;
/// The turn failed.
pub const FAILED: u8 = 1;
/// The command line, the configuration or the session is wrong; no turn began.
pub const MISUSED: u8 = 2;
/// The turn was stopped by its limit of steps or tokens.
pub const LIMIT_REACHED: u8 = 3;
/// The terminal has gone.
pub const HANGUP: u8 = 128 + 1;
/// Ctrl-C.
pub const INTERRUPTED: u8 = 128 + 2;
/// The reader of stdout has gone.
pub const STDOUT_CLOSED: u8 = 128 + 13;
