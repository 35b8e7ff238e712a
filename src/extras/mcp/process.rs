//! The process of a server: how it is started, what it complains about, and how it is made to end.
//!
//! Watch for: the end is polite first. The input is closed, which is the protocol's way to say good-bye; then TERM, then
//! KILL, each to all that the server has started.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::Duration,
};

use nix::sys::signal::Signal;
use tokio::{
    io::AsyncReadExt,
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{Config, server::short};
use crate::{
    cordis::{Context, Undo},
    harness::{
        env::mask::Mask,
        shell::Vars,
        shell_local::{
            child::Child,
            family::{AFTER_KILL, Mark, SOON, end_within},
        },
    },
};

/// So long a server may take to end after its input was closed,
const POLITE: Duration = Duration::from_millis(300);
/// and so long after a TERM. All servers end together, and the program waits 5 s for everything.
const GRACE: Duration = Duration::from_millis(1_200);
/// How long its last complaints may be on their way.
const MOMENT: Duration = Duration::from_millis(200);
/// How much of its last complaints is remembered.
const LAST: usize = 2_000;
/// How much of a complaint is traced, in characters.
const TRACED: usize = 500;

/// A server that was started.
pub(super) struct Process {
    child: Child,
    complaints: Rc<Complaints>,
    reading: Option<Undo>,
}

impl Process {
    /// Starts it, with pipes at its three streams.
    pub(super) fn start(
        ctx: &Context,
        config: &Config,
        vars: Vars,
        mark: Mark,
        secrets: Mask,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let here = std::env::current_dir()?;
        // A path is meant from here, wherever the server is to work.
        let command = if config.command.contains('/') {
            here.join(&config.command).into_os_string()
        } else {
            (&config.command).into()
        };
        let folder = config.cwd.as_ref().map_or_else(|| here.clone(), |it| here.join(it));
        if !folder.is_dir() {
            let problem = format!("the folder {} is not there", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, problem));
        }
        let own = config.env.iter().map(|(name, value)| (name, value.expose()));
        let mut child = Child::start(&command, mark, |it| {
            it.args(&config.args).current_dir(folder).env_clear().envs(vars).envs(own);
            it.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // Whatever goes wrong here, it does not go on without us.
            it.kill_on_drop(true);
        })?;
        let stdin = child.leader.stdin().take().expect("stdin is piped");
        let stdout = child.leader.stdout().take().expect("stdout is piped");
        let stderr = child.leader.stderr().take().expect("stderr is piped");
        let complaints = Rc::new(Complaints {
            last: RefCell::default(),
            mask: secrets,
            ended: CancellationToken::new(),
        });
        let reader = Rc::clone(&complaints);
        let reading = ctx.spawn("stderr", async move |_| reader.read(stderr).await).ok();
        Ok((Self { child, complaints, reading }, stdin, stdout))
    }

    /// Resolves when it ends, and says how.
    pub(super) async fn exit(&mut self) -> String {
        match self.child.exit().await {
            Some(status) => in_words(status),
            None => "it ended".into(),
        }
    }

    /// What it said last on its standard error, in one line.
    pub(super) async fn complaints(&self) -> String {
        // Of one that has ended all is there in a moment.
        timeout(MOMENT, self.complaints.ended.cancelled()).await.ok();
        self.complaints.in_one_line()
    }

    /// Waits for its end, and makes one: at once if somebody is in a hurry. Its input was closed before.
    pub(super) async fn end(mut self, hurry: &CancellationToken) {
        let family = [Rc::clone(&self.child.family)];
        let with_grace = async {
            if timeout(POLITE, family[0].gone(SOON)).await.is_err() {
                family[0].signal(Signal::SIGTERM);
                end_within(GRACE, &family).await;
            }
        };
        if hurry.run_until_cancelled(with_grace).await.is_none() {
            end_within(Duration::ZERO, &family).await;
        }
        timeout(AFTER_KILL, self.child.exit()).await.ok();
        if let Some(reading) = &self.reading {
            // A task that was aborted has no failure to tell.
            reading.call().await.ok();
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("it was killed by {}", signal.as_str()),
            Err(_) => format!("it was killed by signal {number}"),
        },
        (None, None) => "it ended".into(),
    }
}

/// The standard error of a server: traced, and never shown unless something is wrong.
struct Complaints {
    last: RefCell<VecDeque<u8>>,
    mask: Mask,
    ended: CancellationToken,
}

impl Complaints {
    async fn read(&self, mut stderr: ChildStderr) {
        let mut chunk = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            self.trace(&chunk[..count]);
            let mut last = self.last.borrow_mut();
            last.extend(&chunk[..count]);
            let surplus = last.len().saturating_sub(LAST);
            last.drain(..surplus);
        }
        self.ended.cancel();
    }

    fn trace(&self, chunk: &[u8]) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            for line in String::from_utf8_lossy(chunk).lines().filter(|it| !it.trim().is_empty()) {
                tracing::debug!("stderr: {}", short(&self.mask.text(line), TRACED));
            }
        }
    }

    fn in_one_line(&self) -> String {
        let bytes: Vec<u8> = self.last.borrow().iter().copied().collect();
        self.mask.text(&String::from_utf8_lossy(&bytes)).into_owned()
    }
}
