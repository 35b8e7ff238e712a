//! What a command prints, kept within bounds: a head, a tail, and a file for the middle.
//!
//! Full-size counterpart: the output capture of the local shell, which keeps a tail only.
//! Watch for: nothing is decoded before the end, because a chunk may end inside a character.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    join,
    process::{ChildStderr, ChildStdout},
};
use tokio_util::sync::CancellationToken;

use super::redrawn::Redrawn;
use crate::harness::{
    env::mask::{Mask, Sieve},
    shell::Output,
};

const HEAD: usize = 20_000;
const TAIL: usize = 10_000;
const SPILL: usize = 64 << 20;
const CHUNK: usize = 64 << 10;

/// Both streams of a command.
pub(super) struct Prints {
    stdout: RefCell<Capture>,
    stderr: RefCell<Capture>,
    ended: CancellationToken,
}

impl Prints {
    /// For a command whose output may hold what this mask hides.
    pub(super) fn new(spill_dir: Option<&Path>, mask: &Mask) -> Self {
        let stream = || RefCell::new(Capture::new(spill_dir, mask.clone()));
        Self { stdout: stream(), stderr: stream(), ended: CancellationToken::new() }
    }

    /// Reads both pipes to their ends, also after `close`: a child that lives on must not block on a full pipe, nor die
    /// of a broken one.
    pub(super) async fn read(&self, stdout: ChildStdout, stderr: ChildStderr) {
        join!(pump(stdout, &self.stdout), pump(stderr, &self.stderr));
        self.ended.cancel();
    }

    /// Resolves when nobody can print any more.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// What was printed until now. What comes later is read and dropped.
    pub(super) fn close(&self) -> (Output, Output) {
        (self.stdout.borrow_mut().close(), self.stderr.borrow_mut().close())
    }
}

/// One stream while it is read. Its memory does not grow with what the command prints.
struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: usize,
    spill: Spill,
    sieve: Sieve,
    lines: Redrawn,
    is_open: bool,
}

/// The file that holds a stream from its first byte, redrawn lines as they look in the end. It is not made before the bounds are passed.
enum Spill {
    Unused(PathBuf),
    Open { file: File, path: PathBuf, room: usize },
    Failed,
}

async fn pump(mut pipe: impl AsyncRead + Unpin, capture: &RefCell<Capture>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        capture.borrow_mut().read(&chunk[..count]);
    }
}

impl Capture {
    fn new(spill_dir: Option<&Path>, mask: Mask) -> Self {
        let spill = spill_dir.map_or(Spill::Failed, |it| Spill::Unused(it.to_path_buf()));
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            spill,
            sieve: Sieve::new(mask),
            lines: Redrawn::default(),
            is_open: true,
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        if !self.is_open {
            return;
        }
        let mut sieve = std::mem::take(&mut self.sieve);
        sieve.pass(bytes, |it| self.draw(it));
        self.sieve = sieve;
    }

    /// A secret is known by all of its bytes, so the sieve comes first.
    fn draw(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.pass(bytes, |it| self.push(it));
        self.lines = lines;
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        if self.total > HEAD + TAIL {
            self.spill(bytes);
        }
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    fn close(&mut self) -> Output {
        self.is_open = false;
        let last = self.sieve.rest();
        self.draw(&last);
        let last = self.lines.rest();
        self.push(&last);
        let tail = self.tail.make_contiguous();
        if self.total <= HEAD + TAIL {
            self.head.extend_from_slice(tail);
            let (text, replaced) = decode(&self.head);
            return Output { text, replaced, ..Output::default() };
        }
        let (head, tail) = (without_cut_end(&self.head), without_cut_start(tail));
        let left_out = self.total - head.len() - tail.len();
        let ((head, bad_head), (tail, bad_tail)) = (decode(head), decode(tail));
        let file = match std::mem::replace(&mut self.spill, Spill::Failed) {
            Spill::Open { path, .. } => Some(path),
            Spill::Unused(_) | Spill::Failed => None,
        };
        let place = file
            .as_ref()
            .map(|it| format!(", first 64 MiB in {}", it.display()))
            .unwrap_or_default();
        let text = format!("{head}\n… {left_out} bytes left out{place} …\n{tail}");
        Output { text, left_out: left_out as u64, file, replaced: bad_head || bad_tail }
    }

    /// Writes what is new. The first time head and tail are all that was read before, so the file begins with them.
    // These writes go to the page cache and are bounded in all, so they are not worth a thread.
    fn spill(&mut self, bytes: &[u8]) {
        if let Spill::Unused(dir) = &self.spill {
            let before = [&self.head, &*self.tail.make_contiguous()].concat();
            self.spill = Spill::create(dir).map_or(Spill::Failed, |it| it.write(&before));
        }
        self.spill = std::mem::replace(&mut self.spill, Spill::Failed).write(bytes);
    }
}

impl Spill {
    fn create(dir: &Path) -> io::Result<Self> {
        if dir.is_symlink() {
            // A project that is cloned could bring such a link, and have output written where its author wants it.
            return Err(io::Error::new(ErrorKind::NotADirectory, "a symbolic link"));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut number = 1;
        loop {
            let path = dir.join(format!("output-{number}.txt"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(err) if err.kind() == ErrorKind::AlreadyExists => number += 1,
                file => return Ok(Self::Open { file: file?, path, room: SPILL }),
            }
        }
    }

    fn write(self, bytes: &[u8]) -> Self {
        let Self::Open { mut file, path, room } = self else { return self };
        let fits = &bytes[..bytes.len().min(room)];
        match file.write_all(fits) {
            Ok(()) => Self::Open { file, path, room: room - fits.len() },
            Err(err) => {
                tracing::warn!("{}: {err}", path.display());
                // The room may be the last of the disk, and the log needs it more.
                fs::remove_file(path).ok();
                Self::Failed
            }
        }
    }
}

fn decode(bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_));
    (text.into_owned(), replaced)
}

/// Without the beginning of a character whose end was left out.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |it| it.invalid());
    match std::str::from_utf8(last) {
        Err(err) if err.error_len().is_none() => &bytes[..bytes.len() - last.len()],
        Ok(_) | Err(_) => bytes,
    }
}

/// Without the end of a character whose beginning was left out.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|it| **it & 0xC0 == 0x80).count();
    &bytes[cut..]
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec,
        prelude::{ProptestConfig, any},
        prop_assert, prop_assert_eq, proptest,
        sample::Index,
    };

    use super::*;

    fn captured(text: &[u8], cuts: &[Index], dir: &Path) -> Output {
        let mut capture = Capture::new(Some(dir), Mask::default());
        let mut cuts: Vec<_> = cuts.iter().map(|it| it.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        for to in cuts {
            capture.read(&text[from..to]);
            from = to;
        }
        capture.close()
    }

    #[test]
    fn a_16_of_a_progress_bar_longer_than_the_bounds_the_last_state_is_kept_and_nothing_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let bar = (0..=9_999).map(|it| format!("{it} of 9999")).collect::<Vec<_>>().join("\r");
        let text = format!("{bar}\n{bar}\ndone\n{}{bar}", "x".repeat(HEAD));

        let output = captured(text.as_bytes(), &[], dir.path());

        assert!(text.len() > 10 * (HEAD + TAIL));
        let expected = format!("9999 of 9999\n9999 of 9999\ndone\n{}", "x".repeat(HEAD));
        assert!(output.text.starts_with(&expected) && output.text.ends_with("9999 of 9999"));
        assert_eq!((output.left_out, output.file), (0, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn h_134_wherever_output_is_cut_its_ends_are_whole_characters(
            letters in "\\PC{1,9}",
            length in HEAD + TAIL - 9..HEAD + TAIL + 99,
            cuts in vec(any::<Index>(), 0..5),
        ) {
            let text: String = letters.chars().cycle().take(length / letters.len() * letters.chars().count()).collect();
            let dir = tempfile::tempdir().unwrap();

            let output = captured(text.as_bytes(), &cuts, dir.path());

            prop_assert!(!output.replaced);
            if text.len() <= HEAD + TAIL {
                prop_assert_eq!((&output.text, output.left_out), (&text, 0));
                return Ok(());
            }
            let left_out = usize::try_from(output.left_out).unwrap();
            let head = text.floor_char_boundary(HEAD);
            let tail = text.ceil_char_boundary(text.len() - TAIL);
            prop_assert!(output.text.starts_with(&text[..head]) && output.text.ends_with(&text[tail..]));
            prop_assert_eq!(left_out, tail - head);
            prop_assert_eq!(fs::read_to_string(output.file.unwrap()).unwrap(), text);
        }
    }
}
