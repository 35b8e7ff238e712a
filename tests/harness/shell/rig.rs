//! What the tests of the shell share: a mounted `shell-local`, a folder, and a bell that a command can ring.

use std::{
    cell::RefCell,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
    time::Duration,
};

use nano_cordis::{
    cordis::{Context, Mount, Svc, plugin},
    harness::{
        env::Env,
        shell::{Shell, ShellError, ShellRequest, ShellResult},
        shell_local,
    },
};
use nix::{sys::signal::kill, unistd::Pid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe::{OpenOptions, Receiver},
    runtime::Builder,
    task::LocalSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Nothing here takes that long; a test that hangs fails.
const LONG: Duration = Duration::from_secs(30);

/// Runs a test with a `shell-local` of this config. The clock is the real one: a test may pause it once its command has
/// come to where it should.
pub(super) fn shell(config: Value, test: impl AsyncFnOnce(Rc<Rig>) + 'static) {
    shell_in(config, [], test);
}

/// The same with more variables than `PATH` in the environment.
pub(super) fn shell_in<const N: usize>(
    config: Value,
    vars: [(&str, &str); N],
    test: impl AsyncFnOnce(Rc<Rig>) + 'static,
) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let path = std::env::var("PATH").unwrap();
        let vars = [("PATH", path.as_str())].into_iter().chain(vars);
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let rig = Rc::new(Rig::start(config, Env::fixed(vars)).await);
        // A task of its own, so that no process outlives a test that fails.
        let ended = timeout(LONG, local.spawn_local(test(rig.clone()))).await;
        rig.unload().await;
        ended.expect("a command hangs").unwrap();
        assert_eq!(*rig.reports.borrow(), Vec::<String>::new());
    });
}

/// A mounted `shell-local`.
pub(super) struct Rig {
    pub(super) ctx: Context,
    pub(super) mount: Mount,
    folder: TempDir,
    reports: Rc<RefCell<Vec<String>>>,
}

impl Rig {
    async fn start(config: Value, env: Env) -> Self {
        let reports = Rc::<RefCell<Vec<String>>>::default();
        let recorded = reports.clone();
        let ctx = Context::root_with(move |it| recorded.borrow_mut().push(it.to_string()));
        ctx.provide(Rc::new(env)).unwrap();
        let mount = ctx.plugin(&plugin(shell_local::apply), config).unwrap();
        mount.ready().await.unwrap();
        Self { ctx, mount, reports, folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn shell(&self) -> Svc<dyn Shell> {
        self.ctx.get::<dyn Shell>().expect("shell-local is mounted")
    }

    /// A request that runs, and spills, in the folder of the test.
    pub(super) fn request(&self, command: &str) -> ShellRequest {
        let folder = self.folder.path().to_path_buf();
        ShellRequest {
            command: command.into(),
            spill_dir: Some(folder.join("spill")),
            cwd: Some(folder),
            timeout_ms: None,
        }
    }

    pub(super) async fn run(&self, command: &str) -> ShellResult {
        self.run_for(command, None).await
    }

    pub(super) async fn run_for(&self, command: &str, timeout_ms: Option<u64>) -> ShellResult {
        let request = ShellRequest { timeout_ms, ..self.request(command) };
        self.try_run(&request, CancellationToken::new()).await.unwrap()
    }

    pub(super) async fn try_run(
        &self,
        request: &ShellRequest,
        cancel: CancellationToken,
    ) -> Result<ShellResult, ShellError> {
        let shell = self.shell();
        let spec = shell.resolve(request)?;
        shell.run(spec, cancel).await
    }

    /// A bell for a command: `echo > bell` rings it, `read < go` waits for the test.
    pub(super) fn bell(&self) -> Bell {
        let (bell, go) = (self.path("bell"), self.path("go"));
        assert!(Command::new("mkfifo").args([&bell, &go]).status().unwrap().success());
        let go = fs::OpenOptions::new().read(true).write(true).open(go).unwrap();
        Bell { bell: OpenOptions::new().read_write(true).open_receiver(bell).unwrap(), go }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) async fn unload(&self) {
        self.mount.dispose().await;
    }
}

/// Two pipes that have names in the folder.
pub(super) struct Bell {
    bell: Receiver,
    go: File,
}

impl Bell {
    /// Resolves when the command wrote a line; gives the line.
    pub(super) async fn rung(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.push(self.bell.read_u8().await.unwrap());
        }
        String::from_utf8(line).unwrap().trim().to_owned()
    }

    /// Lets the command go on.
    pub(super) fn go(&mut self) {
        self.go.write_all(b"\n").unwrap();
    }
}

/// Whether a process with this id runs. One that is dead but not yet buried by the first process does not.
pub(super) fn is_there(pid: &str) -> bool {
    let pid = pid.trim().parse().unwrap();
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    kill(Pid::from_raw(pid), None).is_ok()
        && !stat.rsplit_once(')').is_some_and(|(_, it)| it.starts_with(" Z"))
}

/// Names in a folder, which may be absent.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

/// No config: the defaults.
pub(super) fn plain() -> Value {
    json!({})
}
