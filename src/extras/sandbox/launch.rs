//! Part of `sandbox`: the hidden command line by which this program confines itself, then becomes the command.
//!
//! Watch for: this runs before anything else of the program does. Whatever is not understood ends it.

use std::{
    ffi::{OsStr, OsString},
    fmt::{self, Display, Formatter},
    fs,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
};

use super::{Argv, confine::confine};

/// This program, also when its file was replaced or is gone.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";
/// What a trial says that went well.
pub(super) const CONFINED: &str = "confined\n";
/// As a shell does for what it found and could not start.
const NOT_STARTED: u8 = 126;

const LAUNCH: &str = "--sandboxed-exec";
const WRITABLE: &str = "--writable";
const NO_NETWORK: &str = "--no-network";
const PROGRAM: &str = "--";

/// What a command may do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Files, and folders with all that is in them.
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) has_network: bool,
}

/// For the model: what is possible, not what was tried.
impl Display for Limits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.writable.iter().map(|it| it.display().to_string()).collect();
        let network = if self.has_network { "" } else { " and use no TCP" };
        write!(f, "commands can write below {} only{network}", paths.join(", "))
    }
}

impl Limits {
    /// The arguments that these limits are.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let paths = self.writable.iter().flat_map(|it| [WRITABLE.into(), it.clone().into()]);
        let network = (!self.has_network).then(|| NO_NETWORK.into());
        [LAUNCH.into()].into_iter().chain(paths).chain(network).collect()
    }

    /// A program that is started within these limits.
    pub(super) fn around(&self, inner: Argv) -> Argv {
        let mut args = self.arguments();
        args.extend([PROGRAM.into(), inner.program]);
        args.extend(inner.args);
        Argv { program: THIS_PROGRAM.into(), args }
    }
}

/// Whether the program was started for this. If so it comes back only if the command could not be started.
pub(crate) fn launch(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(LAUNCH)) {
        return None;
    }
    let ended = read(arguments).and_then(|(limits, argv)| {
        close_files().map_err(|err| format!("cannot close what was open before: {err}"))?;
        confine(&limits)?;
        Ok(argv)
    });
    let (mut stream, text): (Box<dyn Write>, String) = match ended {
        Ok(None) => (Box::new(io::stdout()), CONFINED.to_owned()),
        Ok(Some(Argv { program, args })) => {
            let err = Command::new(&program).args(args).exec();
            (Box::new(io::stderr()), format!("sandbox: {}: {err}\n", program.display()))
        }
        Err(why) => (Box::new(io::stderr()), format!("sandbox: {why}\n")),
    };
    // Whoever does not hear it sees that the command did not run.
    let _closed = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    Some(ExitCode::from(NOT_STARTED))
}

/// The limits, and the program to become; none for a trial.
fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<(Limits, Option<Argv>), String> {
    let mut limits = Limits { has_network: true, ..Limits::default() };
    while let Some(argument) = arguments.next() {
        let lacks = || format!("{} has nothing behind it", argument.display());
        match argument.to_str() {
            Some(WRITABLE) => limits.writable.push(arguments.next().ok_or_else(lacks)?.into()),
            Some(NO_NETWORK) => limits.has_network = false,
            Some(PROGRAM) => {
                let program = arguments.next().ok_or_else(lacks)?;
                return Ok((limits, Some(Argv { program, args: arguments.collect() })));
            }
            _ => return Err(format!("{} is not understood", argument.display())),
        }
    }
    Ok((limits, None))
}

/// What was opened before would stay writable.
fn close_files() -> io::Result<()> {
    let open =
        fs::read_dir("/proc/self/fd")?.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    // All of them first, because the folder itself is among them.
    let open: Vec<i32> = open.collect();
    for file in open.into_iter().filter(|it| *it > 2) {
        // An error means that it is closed already.
        nix::unistd::close(file).ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Argv, Limits, OsString, read};

    fn argv(words: &[&str]) -> Argv {
        let mut words = words.iter().map(OsString::from);
        Argv { program: words.next().unwrap(), args: words.collect() }
    }

    #[test]
    fn limits_are_read_as_they_were_written_and_the_rest_is_the_command() {
        let bash = argv(&["bash", "-c", "--", "--writable / -- x"]);
        for has_network in [true, false] {
            let limits = Limits { writable: vec!["/a b".into(), "--".into()], has_network };
            let around = limits.around(bash.clone());
            assert_eq!(around.args[0], "--sandboxed-exec");

            let (read, inner) = read(around.args.into_iter().skip(1)).unwrap();

            assert_eq!((read, inner), (limits, Some(bash.clone())));
        }
    }

    #[test]
    fn what_is_not_understood_starts_nothing() {
        for words in [&["bash"][..], &["--writable"], &["--"], &["--network"]] {
            assert!(read(words.iter().map(OsString::from)).is_err(), "{words:?}");
        }
    }
}
