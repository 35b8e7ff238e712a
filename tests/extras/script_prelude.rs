//! What a script finds when it begins is compiled once a process, and is the same for all.

use std::{fs, thread, time::Duration};

use serde_json::json;

use crate::script::{App, alone, run, tool};

/// A tool that tries what the prelude consists of, and says what came of it.
fn all_of_it() -> String {
    let parts = [
        "LocalShell.name",
        "typeof LocalShell.Config.properties",
        "Object.keys(Order)",
        "Schema.object({ a: Schema.string().required() }).toJSONSchema()",
        "structuredClone({ a: [new Date(0)] })",
        "new TextDecoder().decode(new TextEncoder().encode('é'))",
        "[...new Headers({ A: '1' })]",
        "typeof fetch",
        "typeof crypto.randomUUID()",
        "new AbortController().signal.aborted",
        "ctx.tools.names()",
        "ctx.get('nothing') === undefined",
        "thrown(() => ctx.on(5))",
        "thrown(() => Schema.union([]))",
        "thrown(() => new Context())",
    ];
    let body = format!(
        "const thrown = of => {{ try {{ of() }} catch (error) {{ return String(error) }} }}
return JSON.stringify([{}])",
        parts.join(", ")
    );
    format!("import {{ Context, LocalShell, Order, Schema }} from 'cordis'\n{}", tool(&body))
}

/// What it says, and what a mistake in the use of the prelude is called.
async fn said(app: &App) -> [String; 2] {
    app.tools().await;
    let mut said = Vec::new();
    for source in [all_of_it(), tool("ctx.on(5, () => {})")] {
        let mount = app.mount(&source).await;
        said.push(app.call("probe").await);
        mount.dispose().await;
    }
    said.try_into().unwrap()
}

#[test]
fn the_first_engine_of_a_process_and_those_after_it_are_the_same() {
    alone(
        "script_prelude::the_first_engine_of_a_process_and_those_after_it_are_the_same",
        async |app| {
            let first = said(app).await;

            let second = thread::scope(|scope| {
                let later = || run(async |app| assert_eq!(said(app).await, first));
                scope.spawn(later).join()
            });

            assert!(second.is_ok());
            assert!(first[0].starts_with("[\"LocalShell\",\"object\","), "{}", first[0]);
            let at = "Error: probe.ts:3:85: TypeError: the name of an event is a text";
            assert_eq!(first[1], at);
        },
    );
}

#[test]
fn many_first_engines_may_begin_at_the_same_time() {
    alone("script_prelude::many_first_engines_may_begin_at_the_same_time", async |_| {
        let said: Vec<_> = thread::scope(|scope| {
            let one = || {
                let mut all = None;
                run(async |app| all = Some(said(app).await));
                all
            };
            let going: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            going.into_iter().map(|it| it.join().unwrap()).collect()
        });

        assert!(said[0].is_some() && said.iter().all(|it| *it == said[0]), "{said:?}");
    });
}

#[test]
fn a_class_of_the_prelude_is_a_plugin() {
    run(async |app| {
        let def = app.def("export { LocalShell as default } from 'cordis'").unwrap();
        let mount = app.root.plugin_named("probe", &def, json!({})).unwrap();

        let failure = mount.ready().await.unwrap_err().to_string();

        // It was constructed, which is what it needs first.
        assert!(failure.contains("there is no environment"), "{failure}");
        app.reports();
        mount.dispose().await;
    });
}

#[test]
fn a_part_that_could_not_be_loaded_is_loaded_the_next_time() {
    run(async |app| {
        app.tools().await;
        let body = "
  let failed = 0
  const deep = () => {
    try { deep() } catch {}
    try { structuredClone({}) } catch { failed++ }
  }
  deep()
  return `${failed > 0} ${structuredClone([5])}`";
        app.mount(&tool(body)).await;

        assert_eq!(app.call("probe").await, "true 5");
    });
}

/// Processor time of the thread of the script so far, in ns, once it sleeps.
async fn work_until_asleep() -> u64 {
    loop {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|it| it.unwrap().path());
        let read = |name: &str, task: &std::path::Path| fs::read_to_string(task.join(name));
        let is_script = |it: &std::path::PathBuf| read("comm", it).is_ok_and(|it| it == "script\n");
        let task = { tasks }.find(is_script).unwrap();
        let status = read("status", &task).unwrap();
        if status.lines().any(|it| it.starts_with("State:\tS")) {
            let times = read("schedstat", &task).unwrap();
            return times.split(' ').next().unwrap().parse().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_script_that_has_nothing_to_do_uses_no_processor() {
    alone("script_prelude::a_script_that_has_nothing_to_do_uses_no_processor", async |app| {
        app.tools().await;
        let mount = app.mount(&tool("return 'done'")).await;
        app.call("probe").await;

        let before = work_until_asleep().await;
        tokio::time::sleep(Duration::from_millis(20)).await;

        assert_eq!(work_until_asleep().await, before);
        mount.dispose().await;
    });
}
