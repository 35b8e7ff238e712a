//! The place on the terminal where the next character goes, shared by all who write, and the line above it that says what
//! the program waits for.
//!
//! Part of `cli`: the screen has it, and so has the thread that shows questions.
//! Watch for: whoever writes holds it, and then the status is gone. It stands on a line of its own, above the one on which
//! the terminal echoes what is typed meanwhile; a whole line that was typed there stays where it is.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::screen::Stream;

/// The line of the status and the one below it, emptied; the cursor is on the upper one.
const TAKE_AWAY: &str = "\r\x1b[2K\x1b[1A\x1b[2K";
/// Only the one that the cursor is on.
const EMPTY: &str = "\r\x1b[2K";

/// The stream whose last line is not ended yet. The thread that shows questions has it too, and whoever writes holds it:
/// a question is either before what follows it, or nowhere.
#[derive(Clone, Default)]
pub(super) struct Cursor(Arc<Mutex<Place>>);

/// Where the cursor is.
#[derive(Default)]
pub(super) struct Place {
    /// The stream whose last line is not ended yet.
    pub(super) open: Option<Stream>,
    has_status: bool,
}

impl Cursor {
    /// Shows a question on a line of its own, unless `prepare` finds that nobody wants an answer any more.
    pub(super) fn ask(
        &self,
        on: Stream,
        question: &str,
        prepare: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut place = self.hold();
        if !prepare()? {
            return Ok(false);
        }
        place.end()?;
        on.write(question)?;
        place.open = Some(on);
        Ok(true)
    }

    /// For whoever is about to write.
    pub(super) fn hold(&self) -> MutexGuard<'_, Place> {
        let mut place = self.lock();
        place.take_status_away();
        place
    }

    /// Says on a line of its own what is waited for, where nothing else is being written.
    pub(super) fn show_status(&self, text: &str) {
        let mut place = self.lock();
        if place.open.is_some() || is_line_typed() {
            return;
        }
        let shown = if place.has_status {
            format!("\x1b7\x1b[1A\r\x1b[2K{text}\x1b8")
        } else {
            format!("\r\x1b[2K{text}\n")
        };
        // Nobody misses it.
        place.has_status = Stream::Err.write(&shown).is_ok();
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Ends the line that is open, if one is.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |stream| stream.write("\n"))
    }

    fn take_status_away(&mut self) {
        if std::mem::take(&mut self.has_status) {
            let both = if is_line_typed() { EMPTY } else { TAKE_AWAY };
            let _closed = Stream::Err.write(both);
        }
    }
}

/// Whether a line was typed that nobody has read yet. The terminal has gone to a new one then.
fn is_line_typed() -> bool {
    let stdin = io::stdin();
    let mut typed = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut typed, PollTimeout::ZERO).is_ok_and(|it| it > 0)
}
