//! More events than a script can hear: the agent goes on, what waits is bounded, one line says so, and the script works
//! again afterwards.

use nano_cordis::cordis::Applied;

use crate::{
    script::{App, run, tool},
    script_leaks::{alone, held},
};

/// A script that counts what it hears of some event, after it was kept busy by a tool for half a second.
fn counts(event: &str) -> String {
    format!(
        "export const inject = ['tools']
let heard = 0
export function apply(ctx) {{
  ctx.on('{event}', () => void heard++)
  ctx.tools.register('count', 'Counts.', {{ type: 'object' }}, () => String(heard))
  ctx.tools.register('busy', 'Works.', {{ type: 'object' }}, () => {{
    for (const end = Date.now() + 500; Date.now() < end;);
    return 'done'
  }})
}}"
    )
}

/// Waits until what was told before has been heard, and says how much that was.
async fn heard(app: &App) -> usize {
    app.call("count").await.parse().unwrap()
}

/// What waits for the script takes no more than this, in KiB.
const ROOM: u64 = 150_000;

#[test]
fn a_flood_of_events_does_not_hold_up_the_agent_and_is_said_once() {
    alone(
        "script_flood::a_flood_of_events_does_not_hold_up_the_agent_and_is_said_once",
        async |app| {
            app.tools().await;
            app.mount(&counts("loader/applied")).await;
            let before = held();
            let event = |it: usize| Applied {
                file: format!("{it} {}", "x".repeat(10_000)),
                changed: Vec::new(),
                failed: Vec::new(),
            };

            let flood = async {
                // The script is at work when the flood comes.
                tokio::task::yield_now().await;
                for it in 0..30_000 {
                    app.root.emit(&event(it));
                    if it % 100 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                held()
            };
            let (said, during) = tokio::join!(app.call("busy"), flood);
            let reports = app.reports();
            let first = heard(app).await;
            (0..100).for_each(|it| app.root.emit(&event(it)));
            let then = heard(app).await;

            assert_eq!(said, "done");
            assert_eq!(reports.len(), 1, "{reports:?}");
            assert!(
                reports[0].contains("failed on `loader/applied`: it does not keep up: "),
                "{reports:?}"
            );
            assert!((1..30_000).contains(&first), "{first}");
            assert_eq!(then, first + 100);
            assert!(during.2 < before.2 + ROOM, "{before:?} and then {during:?}");
        },
    );
}

#[test]
fn a_listener_that_never_comes_to_an_end_is_told_only_so_much() {
    alone(
        "script_flood::a_listener_that_never_comes_to_an_end_is_told_only_so_much",
        async |app| {
            app.tools().await;
            let source = "let heard = 0
export const inject = ['tools']
export function apply(ctx) {
  ctx.on('loader/applied', () => { heard++; return new Promise(() => {}) })
  ctx.tools.register('count', 'Counts.', { type: 'object' }, () => String(heard))
}";
            let mount = app.mount(source).await;
            let event = Applied { file: "x".repeat(1000), changed: Vec::new(), failed: Vec::new() };

            let before = held();
            let mut most = 0;
            for _ in 0..20 {
                (0..1000).for_each(|_| app.root.emit(&event));
                most = heard(app).await;
            }
            let after = held();
            let reports = app.reports();
            mount.dispose().await;

            assert_eq!(reports.len(), 1, "{reports:?}");
            assert!((4000..=4096).contains(&most), "{most}");
            assert!(after.2 < before.2 + ROOM, "{before:?} and then {after:?}");
        },
    );
}

#[test]
fn a_flood_from_another_script_is_said_once_and_neither_of_the_two_is_held_up() {
    run(async |app| {
        app.tools().await;
        let listens = "export const inject = ['tools']
let heard = 0, open
export function apply(ctx) {
  const gate = new Promise(done => (open = done))
  ctx.on('x/flood', () => { heard++; return gate })
  ctx.tools.register('open', 'Opens.', { type: 'object' }, () => open())
  ctx.tools.register('count', 'Counts.', { type: 'object' }, () => String(heard))
}";
        app.mount(listens).await;
        let floods = "for (let it = 0; it < 1000; it++) ctx.emit('x/flood', it)\n  return 'sent'";
        app.write("floods.ts", tool(floods));
        app.mount_def(&app.load("./floods.ts").unwrap()).await;

        for _ in 0..8 {
            assert_eq!(app.call("probe").await, "sent");
        }
        let first = heard(app).await;
        let reports = app.reports();
        app.call("open").await;
        assert_eq!(app.call("probe").await, "sent");
        let then = heard(app).await;

        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].contains("failed on `x/flood`: it does not keep up"), "{reports:?}");
        assert_eq!((first, then), (4096, 5096));
    });
}
