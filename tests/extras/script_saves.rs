//! Saves of every kind, of the list and of scripts, with real files, the watcher of the system, and the real clock.

use std::{fs, os::unix::fs::symlink, rc::Rc, time::Duration};

use nano_cordis::cordis::{
    Loader, State, Svc,
    hmr::{self, System},
};
use serde_json::Value;

use crate::script::{App, list, run};

/// A script that notes its start and its end, and whose tool `probe` says what it is.
fn notes(what: &str) -> String {
    let what = format!("'{what}'");
    format!(
        "export const inject = ['tools']
export function apply(ctx) {{
  ctx.emit('cordis/notice', 'starts ' + {what})
  ctx.tools.register('probe', 'Says it.', {{ type: 'object' }}, () => {what})
  return () => ctx.emit('cordis/notice', 'stops ' + {what})
}}"
    )
}

/// A script that is there and does nothing but note it.
fn quiet(what: &str) -> String {
    format!("export const apply = ctx => void ctx.emit('cordis/notice', 'starts {what}')")
}

/// The list without the watcher.
fn unwatched(scripts: &[&str]) -> String {
    list(scripts).lines().filter(|it| !it.contains("hmr")).flat_map(|it| [it, "\n"]).collect()
}

/// Waits until this was told and everything rests; gives all that was told meanwhile.
async fn settled(app: &App, loader: &Loader, part: &str) -> Vec<String> {
    let mut told = app.hears(part).await;
    loader.applied().await.unwrap();
    told.extend(app.told());
    told
}

/// The same for a save that is known to be seen: the list is looked at after all that was saved before.
async fn nothing_more(app: &App, loader: &Loader, text: &str) -> Vec<String> {
    app.write("cordis.yml", format!("{text}# looked at\n"));
    let mut told = settled(app, loader, "applied cordis.yml").await;
    told.retain(|it| it != "applied cordis.yml (no entry changed)");
    told
}

async fn start(app: &App, scripts: &[&str]) -> Svc<Loader> {
    let loader = app.start(scripts).await;
    app.told();
    loader
}

#[test]
fn k_186_a_saved_list_is_applied_to_its_scripts_and_one_line_says_so() {
    run(async |app| {
        app.write("probe.ts", notes("probe"));
        app.write("other.ts", quiet("other"));
        let loader = start(app, &["./probe.ts"]).await;

        app.write("cordis.yml", list(&["./probe.ts", "./other.ts"]));
        let added = settled(app, &loader, "starts other").await;
        app.write("cordis.yml", list(&["./other.ts"]));
        let removed = settled(app, &loader, "applied").await;

        assert_eq!(added, ["applied cordis.yml", "starts other"]);
        let told = ["stops probe", "applied cordis.yml", "starts other"];
        assert_eq!(removed, told, "the id `s0` is another script now, and `s1` is gone");
    });
}

#[test]
fn k_192_a_saved_provider_stops_and_starts_its_consumers_once() {
    run(async |app| {
        let lamp = |it: &str| {
            format!(
                "export const apply = ctx => {{ ctx.provide('lamp', {{ shows: () => '{it}' }}) }}"
            )
        };
        app.write("lamp.ts", lamp("red"));
        let user = "export const inject = ['lamp']
export async function apply(ctx) {
  const seen = await ctx.lamp.shows()
  ctx.emit('cordis/notice', 'starts with ' + seen)
  return () => ctx.emit('cordis/notice', 'stops with ' + seen)
}";
        app.write("user.ts", user);
        app.write("alone.ts", quiet("alone"));
        let loader = start(app, &["./user.ts", "./lamp.ts", "./alone.ts"]).await;

        app.write("lamp.ts", lamp("green"));
        let told = settled(app, &loader, "starts with").await;

        assert_eq!(told, ["stops with red", "reloaded ./lamp.ts", "starts with green"]);
    });
}

#[test]
fn k_193_a_burst_of_writes_is_at_most_two_reloads_and_the_last_content_wins() {
    run(async |app| {
        app.write("probe.ts", notes("0"));
        let slow = list(&["./probe.ts"]).replace("debounceMs: 20", "debounceMs: 300");
        let loader = app.start_on(&slow).await.unwrap();
        app.told();

        (1..=5).for_each(|it| app.write("probe.ts", notes(&it.to_string())));
        let mut told = settled(app, &loader, "starts 5").await;
        told.extend(nothing_more(app, &loader, &slow).await);

        let reloads = told.iter().filter(|it| *it == "reloaded ./probe.ts").count();
        assert!((1..=2).contains(&reloads), "{told:?}");
        assert_eq!(told.last().unwrap(), "starts 5");
        assert_eq!(app.call("probe").await, "5");
    });
}

#[test]
fn k_194_after_spaced_saves_the_last_content_is_live_and_nothing_is_there_twice() {
    run(async |app| {
        app.write("probe.ts", notes("0"));
        let loader = start(app, &["./probe.ts"]).await;

        let mut told = Vec::new();
        for version in 1..=5 {
            app.write("probe.ts", notes(&version.to_string()));
            told.extend(settled(app, &loader, &format!("starts {version}")).await);
        }

        let of = |it: u32| {
            [format!("stops {}", it - 1), "reloaded ./probe.ts".into(), format!("starts {it}")]
        };
        assert_eq!(told, (1..=5).flat_map(of).collect::<Vec<_>>());
        assert_eq!(app.call("probe").await, "5");
        let tools: Svc<nano_cordis::harness::tools::Tools> = app.root.get().unwrap();
        assert_eq!(tools.names(), ["probe"]);
    });
}

#[test]
fn k_197_a_script_that_is_empty_for_a_moment_is_never_unmounted_because_of_that() {
    run(async |app| {
        app.write("probe.ts", notes("old"));
        let loader = start(app, &["./probe.ts"]).await;

        app.write("probe.ts", "");
        tokio::time::sleep(Duration::from_millis(30)).await;
        app.write("probe.ts", notes("new"));
        let told = settled(app, &loader, "starts new").await;

        assert_eq!(told, ["stops old", "reloaded ./probe.ts", "starts new"]);
    });
}

/// The script is reached by a link, or its folder is. Each save goes around the link.
async fn linked(app: &App, entry: &str, real: &str) {
    let loader = start(app, &[entry]).await;
    for version in ["one", "two"] {
        app.write(real, notes(version));
        let told = settled(app, &loader, &format!("starts {version}")).await;
        assert_eq!(told.iter().filter(|it| it.starts_with("reloaded")).count(), 1, "{told:?}");
    }
    assert_eq!(nothing_more(app, &loader, &list(&[entry])).await, [""; 0]);
}

#[test]
fn k_200_a_script_that_is_a_link_is_reloaded_once_when_the_real_file_is_saved() {
    run(async |app| {
        app.write("store/real.ts", notes("zero"));
        symlink("store/real.ts", app.file("probe.ts")).unwrap();

        linked(app, "./probe.ts", "store/real.ts").await;
    });
}

#[test]
fn k_200_so_is_one_in_a_folder_that_is_a_link() {
    run(async |app| {
        app.write("store/real.ts", notes("zero"));
        symlink("store", app.file("plugins")).unwrap();

        linked(app, "./plugins/real.ts", "store/real.ts").await;
    });
}

#[test]
fn k_200_a_link_that_is_turned_to_another_folder_is_a_save_of_the_list_and_of_an_import() {
    run(async |app| {
        let user = "import { what } from './now/lib.ts'
export const apply = ctx => void ctx.emit('cordis/notice', 'starts ' + what)";
        for version in ["one", "two"] {
            app.write(&format!("{version}/lib.ts"), format!("export const what = '{version}'"));
        }
        app.write("user.ts", user);
        symlink("one", app.file("now")).unwrap();
        let loader = start(app, &["./user.ts"]).await;

        symlink("two", app.file("next")).unwrap();
        fs::rename(app.file("next"), app.file("now")).unwrap();
        let told = settled(app, &loader, "starts two").await;

        assert_eq!(told, ["reloaded ./user.ts", "starts two"]);
    });
}

#[test]
fn k_202_the_watcher_can_be_removed_by_a_save_that_changes_scripts_too() {
    run(async |app| {
        app.write("probe.ts", notes("probe"));
        app.write("other.ts", quiet("other"));
        let loader = start(app, &["./probe.ts"]).await;

        app.write("cordis.yml", unwatched(&["./other.ts"]));
        let told = settled(app, &loader, "starts other").await;

        assert_eq!(told, ["stops probe", "applied cordis.yml", "starts other"]);
        assert!(app.root.fibers().iter().all(|it| !it.path.contains("hmr")));
    });
}

#[test]
fn k_203_the_watcher_goes_on_after_its_own_config_has_changed() {
    run(async |app| {
        app.write("probe.ts", notes("one"));
        let loader = start(app, &["./probe.ts"]).await;

        let other = list(&["./probe.ts"]).replace("debounceMs: 20", "debounceMs: 21");
        app.write("cordis.yml", &other);
        let list = settled(app, &loader, "applied cordis.yml").await;
        app.write("probe.ts", notes("two"));
        let script = settled(app, &loader, "starts two").await;

        assert_eq!(list, ["applied cordis.yml"]);
        assert_eq!(script, ["stops one", "reloaded ./probe.ts", "starts two"]);
    });
}

#[test]
fn k_204_a_reload_in_progress_completes_without_the_watcher_and_nothing_comes_after() {
    run(async |app| {
        let slow = "export const apply = ctx => async () => {
  ctx.emit('cordis/notice', 'stopping')
  await new Promise(done => setTimeout(done, 300))
  ctx.emit('cordis/notice', 'stopped')
}";
        app.write("probe.ts", slow);
        let loader = app.start_on(&unwatched(&["./probe.ts"])).await.unwrap();
        let watcher = app.root.plugin(&hmr::plugin(Rc::new(System)), Value::Null).unwrap();
        watcher.ready().await.unwrap();

        app.write("probe.ts", notes("two"));
        let before = app.hears("stopping").await;
        watcher.dispose().await;
        app.write("probe.ts", notes("three"));
        let after = settled(app, &loader, "starts two").await;

        assert_eq!(before, ["stopping"]);
        assert_eq!(watcher.state(), State::Disposed);
        assert_eq!(after, ["stopped", "reloaded ./probe.ts", "starts two"]);
        assert!(loader.is_behind(), "nobody tells it of the third version");
        assert_eq!(app.call("probe").await, "two");
    });
}

#[test]
fn k_207_a_script_that_is_saved_before_the_watch_begins_is_not_lost() {
    run(async |app| {
        app.write("lib.ts", "export const what = 'old'");
        let user = "import { what } from './lib.ts'
export const apply = ctx => void ctx.emit('cordis/notice', 'starts ' + what)";
        app.write("user.ts", user);
        let loader = app.start_on(&unwatched(&["./user.ts"])).await.unwrap();
        app.told();

        app.write("lib.ts", "export const what = 'new'");
        app.root.plugin(&hmr::plugin(Rc::new(System)), Value::Null).unwrap();
        let told = settled(app, &loader, "starts new").await;

        assert_eq!(told, ["reloaded ./user.ts", "starts new"]);
    });
}

#[test]
fn k_208_what_is_briefly_missing_unmounts_nothing_and_its_new_content_is_applied() {
    run(async |app| {
        app.write("probe.ts", notes("old"));
        app.write("other.ts", quiet("other"));
        let loader = start(app, &["./probe.ts"]).await;
        let away = |name: &str| fs::rename(app.file(name), app.file("away")).unwrap();

        away("cordis.yml");
        tokio::time::sleep(Duration::from_millis(100)).await;
        app.write("cordis.yml", list(&["./probe.ts", "./other.ts"]));
        let of_list = settled(app, &loader, "starts other").await;
        away("probe.ts");
        tokio::time::sleep(Duration::from_millis(100)).await;
        app.write("probe.ts", notes("new"));
        let of_script = settled(app, &loader, "starts new").await;

        assert_eq!(of_list, ["applied cordis.yml", "starts other"]);
        assert_eq!(of_script, ["stops old", "reloaded ./probe.ts", "starts new"]);
    });
}

#[test]
fn k_208_what_is_missing_for_long_is_said_once_and_taken_when_it_is_back() {
    run(async |app| {
        app.write("probe.ts", notes("old"));
        let loader = start(app, &["./probe.ts"]).await;

        fs::remove_file(app.file("probe.ts")).unwrap();
        let gone = app.hears("not applied").await;
        let said = app.call("probe").await;
        app.write("probe.ts", notes("new"));
        let back = settled(app, &loader, "starts new").await;

        assert_eq!(gone, ["./probe.ts not applied: there is no file probe.ts"]);
        assert_eq!(said, "old");
        assert_eq!(back, ["stops old", "reloaded ./probe.ts", "starts new"]);
    });
}

#[test]
fn a_saved_script_that_waits_for_what_nobody_provides_says_so() {
    run(async |app| {
        app.write("probe.ts", notes("old"));
        let loader = start(app, &["./probe.ts"]).await;

        app.write("probe.ts", notes("new").replace("inject = ['tools']", "inject = ['tolls']"));
        let told = settled(app, &loader, "waits for").await;

        let waits = "`s0` waits for `tolls`, which no entry provides (did you mean `tools`?)";
        assert_eq!(told, ["stops old", "reloaded ./probe.ts", waits]);
    });
}
