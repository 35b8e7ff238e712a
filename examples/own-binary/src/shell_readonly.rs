//! A read-only shell: the local one, which takes no commands but a few that look.
//!
//! Needs `env`. Provides `shell`, in the place of `shell-local`.
//! Watch for: this is a guard-rail and no boundary. It knows a few words of a language that it does not read, so it refuses
//! whatever could begin a second command or write a file; and `cat` reads every file that the user can read.

use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, LocalBoxFuture, Optional, Svc};
use nano_cordis::harness::env::Env;
use nano_cordis::harness::shell::{Shell, ShellError, ShellRequest, ShellResult, ShellSpec};
use nano_cordis::harness::shell_local::{Config, LocalShell};
use nano_cordis::harness::trust::Trust;
use tokio_util::sync::CancellationToken;

/// The commands that may run.
const ALLOWED: [&str; 3] = ["ls", "cat", "echo"];

/// With these a command is more than one, or writes.
const REFUSED: [&str; 9] = [";", "&", "|", "\n", "\r", "`", "$(", "<", ">"];

/// Starts the shell.
pub async fn apply(
    ctx: Context,
    config: Config,
    env: Svc<Env>,
    trust: Optional<Trust>,
) -> Result<(), BoxError> {
    let shell = LocalShell::start(&ctx, config, env.shared(), trust)?;
    ctx.provide::<dyn Shell>(Rc::new(ReadOnly(shell)))?;
    Ok(())
}

struct ReadOnly(LocalShell);

impl Shell for ReadOnly {
    fn resolve(&self, request: &ShellRequest) -> Result<ShellSpec, ShellError> {
        match objection(&request.command) {
            Some(reason) => Err(ShellError::Refused { reason }),
            None => self.0.resolve(request),
        }
    }

    fn run(
        &self,
        spec: ShellSpec,
        cancel: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<ShellResult, ShellError>> {
        // A spec may be made by hand, so it is looked at once more.
        match objection(&spec.command) {
            Some(reason) => Box::pin(async { Err(ShellError::Refused { reason }) }),
            None => self.0.run(spec, cancel),
        }
    }
}

fn objection(command: &str) -> Option<String> {
    if let Some(sign) = REFUSED.iter().find(|it| command.contains(**it)) {
        return Some(format!("{sign:?} is not allowed here; give one command that only looks"));
    }
    // As the shell splits: what merely looks like a blank belongs to the word.
    let first = command.split([' ', '\t']).find(|it| !it.is_empty()).unwrap_or_default();
    let allowed = ALLOWED.contains(&first);
    (!allowed).then(|| format!("`{first}` is none of {}", ALLOWED.join(", ")))
}
