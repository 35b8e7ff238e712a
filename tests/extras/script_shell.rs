//! The shell in scripts: running commands, being the shell, and adding something to that of this machine.

use std::fs;

use nano_cordis::harness::shell::{Shell, ShellError, ShellRequest};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    script_world::{World, run},
    shared::is_alive,
};

async fn bash(world: &World, command: &str) -> String {
    world.call("bash", json!({ "command": command })).await.content
}

#[test]
fn a_script_runs_commands_and_can_stop_them() {
    run(async |world| {
        world.plugin("shell-local", json!({ "graceMs": 50 })).await;
        world
            .script(
                "runs.js",
                "export const inject = ['shell']
                 export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const { exitCode, stdout, stderr } = await ctx.shell.run('echo out; echo err >&2; exit 3')
                   note(`${exitCode} ${stdout.trim()} ${stderr.trim()}`)
                   note(String(ctx.shell.resolve({ command: 'x', timeoutMs: 5 }).timeoutMs))
                   const stop = new AbortController()
                   const going = ctx.shell.run({ command: 'sleep 1000' }, stop.signal)
                   ctx.setTimeout(() => stop.abort(), 20)
                   const { cancelled } = await going
                   note(`cancelled ${cancelled}`)
                 }",
            )
            .await;

        assert_eq!(world.noted(), ["3 out err", "5", "cancelled true"]);
    });
}

#[test]
fn d_63_a_script_that_does_not_say_that_it_runs_commands_runs_none() {
    run(async |world| {
        let source = "export async function apply(ctx) {
               const note = text => ctx.emit('cordis/notice', text)
               const tries = [() => ctx.get('shell')?.run('true'), () => ctx.shell.run('true')]
               for (const it of tries) try { note(String(await it())) } catch (error) { note(error.message) }
             }";
        world.script("before.js", source).await;
        world.plugin("shell-local", json!({})).await;
        world.script("after.js", source).await;

        let noted = world.noted();

        assert_eq!((noted.len(), noted[0].as_str()), (4, "undefined"));
        assert!(
            noted[1..]
                .iter()
                .all(|it| it.contains("reads the service `shell` without declaring it")),
            "{noted:?}"
        );
    });
}

#[test]
fn a_script_can_be_the_shell() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "toy.js",
                "export function apply(ctx) {
                   ctx.provide('shell', {
                     async run({ command, cwd, timeoutMs }, signal) {
                       if (command === 'text') return 'only text'
                       if (command === 'throw') throw new Error('not that')
                       if (command === 'odd') return 5
                       if (command === 'wait') return new Promise(() => ctx.emit('cordis/notice', 'waits'))
                       return { exitCode: 2, stdout: `${command} ${cwd.length > 0} ${timeoutMs}`, stderr: 'hm' }
                     },
                   })
                 }",
            )
            .await;
        world.plugin("tool-bash", json!({})).await;

        let results = [
            bash(world, "go").await,
            bash(world, "text").await,
            bash(world, "throw").await,
            bash(world, "odd").await,
        ];
        let cancel = CancellationToken::new();
        let stop = async {
            world.until("waits").await;
            cancel.cancel();
        };
        let (stopped, ()) = tokio::join!(
            world.call_until("bash", json!({ "command": "wait" }), cancel.clone(), None),
            stop
        );

        assert_eq!(results[0], "go true 120000\n[stderr]\nhm\n[exit code: 2]");
        assert_eq!(results[1], "only text\n[exit code: 0]");
        assert_eq!(results[2], "Error: refused: not that");
        assert_eq!(
            results[3],
            "Error: refused: a shell gives `{ exitCode, stdout, stderr }`, or a text"
        );
        assert!(stopped.is_error, "{stopped:?}");
    });
}

#[test]
fn a_shell_of_a_script_can_look_at_a_command_before_it_runs() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script(
                "resolve.js",
                "export function apply(ctx) {
                   ctx.provide('shell', {
                     resolve: request => ({ command: request.command.toUpperCase() }),
                     run: ({ command, timeoutMs }) => `${command} ${timeoutMs}`,
                   })
                 }",
            )
            .await;
        world.plugin("tool-bash", json!({})).await;

        assert_eq!(bash(world, "go").await, "GO 120000\n[exit code: 0]");
    });
}

const READ_ONLY: &str = "import { LocalShell } from 'nano-cordis'
export default class extends LocalShell {
  async run(spec: any) {
    if (!/^(ls|cat|echo|sleep)\\b/.test(spec.command)) throw new Error(`only ls, cat and echo: ${spec.command}`)
    return super.run(spec)
  }
}";

#[test]
fn the_fifth_exercise_a_read_only_shell() {
    run(async |world| {
        world.plugin("tools", json!({})).await;
        world
            .script_with(
                "shell-readonly.ts",
                READ_ONLY,
                json!({ "timeoutMs": 5000, "graceMs": 50 }),
            )
            .await;
        world.plugin("tool-bash", json!({})).await;

        let allowed = bash(world, "echo fine; exit 4").await;
        let refused = bash(world, "rm -rf /").await;
        let (cancel, shell) = (CancellationToken::new(), world.root.get::<dyn Shell>().unwrap());
        let spec = shell
            .resolve(&ShellRequest { command: "sleep 1000".into(), ..ShellRequest::default() })
            .unwrap();
        let timeout_ms = spec.timeout_ms;
        let going = shell.run(spec, cancel.clone());
        cancel.cancel();
        let stopped = going.await;

        assert_eq!(allowed, "fine\n\n[exit code: 4]");
        assert_eq!(refused, "Error: refused: only ls, cat and echo: rm -rf /");
        assert_eq!(timeout_ms, 5000);
        assert!(matches!(&stopped, Err(ShellError::Cancelled)), "{stopped:?}");
    });
}

#[test]
fn a_request_of_the_same_number_as_a_run_does_not_take_its_end_away() {
    run(async |world| {
        world
            .script_with(
                "meets.js",
                "import { LocalShell } from 'cordis'
                 export default class extends LocalShell {
                   constructor(ctx, config) {
                     super(ctx, config)
                     // Each view has a number of the agent's, which is ahead of the script's from then on.
                     for (let at = 0; at < 100; at++) ctx.shell
                   }

                   async run(spec) {
                     const [run] = Object.getOwnPropertySymbols(spec).map(it => spec[it])
                     let last = 0
                     while (last < run - 1) clearTimeout((last = setTimeout(() => {}, 0)))
                     await fetch('http://127.0.0.1:1').catch(() => {})
                     return super.run(spec)
                   }
                 }",
                json!({ "graceMs": 50 }),
            )
            .await;
        let (cancel, shell) = (CancellationToken::new(), world.root.get::<dyn Shell>().unwrap());
        let pid = tempfile::NamedTempFile::new().unwrap();
        let command = format!("echo $$ > {}; sleep 1000", pid.path().display());
        let spec = shell.resolve(&ShellRequest { command, ..ShellRequest::default() }).unwrap();

        let stop = async {
            while !fs::read_to_string(pid.path()).unwrap().ends_with('\n') {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (stopped, ()) = tokio::join!(shell.run(spec, cancel.clone()), stop);

        let pid = fs::read_to_string(pid.path()).unwrap();
        while is_alive(pid.trim()) {
            tokio::task::yield_now().await;
        }
        assert!(stopped.unwrap().cancelled);
    });
}

#[test]
fn the_config_of_a_local_shell_is_that_of_the_shell_of_this_machine() {
    run(async |world| {
        let mount = world.mount("shell-readonly.ts", READ_ONLY, json!({ "timeoutMs": "long" }));

        let err = mount.ready().await.unwrap_err().to_string();

        assert!(err.contains("timeoutMs: must be"), "{err}");
        world.take_report();
    });
}
