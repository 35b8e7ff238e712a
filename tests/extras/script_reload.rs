//! Saved scripts, with real files, the watcher of the system, and the real clock.

use std::fs;

use crate::script::{App, list, run};

/// A script whose tool `probe` says this, with these lines before it.
fn says(before: &str, what: &str) -> String {
    format!(
        "{before}
export const inject = ['tools']
export function apply(ctx) {{
  ctx.tools.register('probe', 'Says it.', {{ type: 'object' }}, () => {what})
}}"
    )
}

#[test]
fn k_169_a_script_that_cannot_be_loaded_is_reported_and_the_others_run() {
    run(async |app| {
        app.write("bad.ts", "let = 5 5");
        app.write("probe.ts", says("", "'runs'"));

        let loader = app.start(&["./bad.ts", "./probe.ts"]).await;

        let problem = loader.problem().unwrap();
        assert!(problem.contains("`s0`") && problem.contains("bad.ts:1:"), "{problem}");
        assert_eq!(app.call("probe").await, "runs");
    });
}

#[test]
fn k_170_a_script_that_could_not_be_loaded_is_tried_again_at_the_next_save_of_the_list() {
    run(async |app| {
        // Its folder is there, but nobody watches what is in it.
        app.write("probe.ts", says("import { what } from './lib/what.ts'", "what"));
        let loader = app.start(&["./probe.ts"]).await;

        app.write("lib/what.ts", "export const what = 'late'");
        app.write("cordis.yml", format!("{}# changed\n", list(&["./probe.ts"])));
        app.hears("applied cordis.yml").await;
        loader.applied().await.unwrap();

        assert_eq!(app.call("probe").await, "late");
    });
}

#[test]
fn k_171_a_mended_script_is_mounted_when_it_is_saved() {
    run(async |app| {
        app.write("probe.ts", "let = 5 5");
        let loader = app.start(&["./probe.ts"]).await;

        app.write("probe.ts", says("", "'mended'"));
        app.hears("reloaded ./probe.ts").await;
        loader.applied().await.unwrap();

        assert_eq!(app.call("probe").await, "mended");
    });
}

#[test]
fn k_187_k_188_a_saved_script_is_the_new_one_and_nothing_is_left_of_the_old() {
    run(async |app| {
        app.write("probe.ts", says("", "'one'"));
        app.write("other.ts", "export function apply(ctx) { ctx.effect(() => () => { throw new Error('it was unloaded') }) }");
        let loader = app.start(&["./probe.ts"]).await;

        for version in 0..5 {
            app.write("probe.ts", says("", &format!("'version {version}'")));
            let told = app.hears("reloaded").await;
            loader.applied().await.unwrap();

            assert_eq!(told, ["reloaded ./probe.ts"]);
            assert_eq!(app.call("probe").await, format!("version {version}"));
        }
    });
}

#[test]
fn k_187_a_saved_import_reloads_its_users_and_no_other() {
    run(async |app| {
        app.write("lib/deep.ts", "export const what = 'old'");
        app.write("lib/lib.ts", "export { what } from './deep.ts'");
        app.write("probe.ts", says("import { what } from './lib/lib.ts'", "what"));
        app.write(
            "alone.ts",
            "export const apply = ctx => ctx.effect(() => () => { throw new Error('unloaded') })",
        );
        let loader = app.start(&["./probe.ts", "./alone.ts"]).await;

        app.write("lib/deep.ts", "export const what = 'new'");
        let told = app.hears("reloaded").await;
        loader.applied().await.unwrap();

        assert_eq!(told, ["reloaded ./probe.ts"]);
        assert_eq!(app.call("probe").await, "new");
        assert_eq!(app.reports(), [""; 0]);
        app.write("alone.ts", "export const apply = () => {}");
        app.hears("unloaded").await;
    });
}

#[test]
fn k_187_an_import_that_a_save_adds_is_watched_from_then_on_and_one_that_is_gone_no_longer() {
    run(async |app| {
        app.write("a.ts", "export const what = 'a'");
        app.write("b/b.ts", "export const what = 'b'");
        app.write("probe.ts", says("import { what } from './a.ts'", "what"));
        let loader = app.start(&["./probe.ts"]).await;

        app.write("probe.ts", says("import { what } from './b/b.ts'", "what"));
        assert_eq!(app.hears("reloaded").await, ["reloaded ./probe.ts"]);
        let watched = loader.watched();
        app.write("a.ts", "export const what = 'a again'");
        app.write("b/b.ts", "export const what = 'b again'");
        let told = app.hears("reloaded").await;
        loader.applied().await.unwrap();

        let names: Vec<_> =
            watched.iter().map(|it| it.strip_prefix(app.folder()).unwrap()).collect();
        assert_eq!(names, ["b/b.ts", "cordis.yml", "probe.ts"].map(std::path::Path::new));
        assert_eq!(told, ["reloaded ./probe.ts"]);
        assert_eq!(app.call("probe").await, "b again");
        assert!(!loader.is_behind());
    });
}

#[test]
fn k_189_k_190_a_save_that_does_not_load_changes_nothing_and_the_next_good_one_is_taken() {
    run(async |app| {
        app.write("probe.ts", says("", "'good'"));
        let loader = app.start(&["./probe.ts"]).await;

        for (source, problem) in [
            ("let = 5 5".to_owned(), "./probe.ts not applied: probe.ts:1:"),
            ("\nthrow new Error('top')".to_owned(), "probe.ts:2:11: top"),
            (says("import { x } from './gone.ts'", "x"), "probe.ts:1:19: there is no file gone.ts"),
            ("export const apply = 5".to_owned(), "it exports no plugin"),
        ] {
            app.write("probe.ts", source);
            let told = app.hears("not applied").await;
            assert!(told.len() == 1 && told[0].contains(problem), "{told:?}");
            assert_eq!(app.call("probe").await, "good");
        }
        app.write("probe.ts", says("", "'better'"));
        app.hears("reloaded ./probe.ts").await;
        loader.applied().await.unwrap();

        assert_eq!(app.call("probe").await, "better");
    });
}

#[test]
fn an_import_that_was_missing_is_taken_when_it_comes() {
    run(async |app| {
        app.write("probe.ts", says("import { what } from './lib/what'", "what"));
        let loader = app.start(&["./probe.ts"]).await;
        assert!(loader.problem().unwrap().contains("probe.ts:1:22: there is no file lib/what"));

        app.write("lib/what.ts", "export const what = 'there'");
        app.hears("reloaded ./probe.ts").await;
        loader.applied().await.unwrap();

        assert_eq!(app.call("probe").await, "there");
    });
}

#[test]
fn k_191_a_script_whose_apply_fails_is_failed_and_a_good_save_mends_it() {
    run(async |app| {
        app.write("probe.ts", says("", "'good'"));
        let loader = app.start(&["./probe.ts"]).await;

        app.write("probe.ts", "export function apply() {\n  throw new Error('no apply')\n}");
        app.hears("probe.ts:2:13: no apply").await;
        let problem = loader.problem();
        app.told();
        app.write("probe.ts", says("", "'mended'"));
        app.hears("reloaded").await;
        loader.applied().await.unwrap();

        assert!(problem.is_some());
        assert_eq!(app.call("probe").await, "mended");
    });
}

#[test]
fn k_195_k_196_k_197_saves_of_every_kind_are_noticed() {
    run(async |app| {
        app.write("probe.ts", says("", "'0'"));
        let loader = app.start(&["./probe.ts"]).await;
        let file = app.file("probe.ts");

        for (version, save) in [
            |app: &App, text: &str| {
                app.write("probe.ts~", text);
                fs::rename(app.file("probe.ts~"), app.file("probe.ts")).unwrap();
            },
            |app: &App, text: &str| {
                fs::remove_file(app.file("probe.ts")).unwrap();
                app.write("probe.ts", text);
            },
            |app: &App, text: &str| {
                app.write("probe.ts", "");
                app.write("probe.ts", text);
            },
        ]
        .iter()
        .enumerate()
        {
            save(app, &says("", &format!("'{version}!'")));
            let told = app.hears("reloaded").await;
            loader.applied().await.unwrap();

            assert_eq!(told, ["reloaded ./probe.ts"]);
            assert_eq!(app.call("probe").await, format!("{version}!"));
        }
        assert!(file.exists());
    });
}

#[test]
fn k_198_k_199_k_201_k_206_what_is_no_change_of_a_script_reloads_nothing() {
    run(async |app| {
        app.write("lib.ts", "export const what = 'same'");
        app.write("probe.ts", says("import { what } from './lib.ts'", "what"));
        let loader = app.start(&["./probe.ts"]).await;

        app.write("lib.ts", "export const what = 'same'");
        app.write("other.ts", "nobody's business");
        fs::read(app.file("probe.ts")).unwrap();
        // The list is looked at after all that.
        app.write("cordis.yml", format!("{}# changed\n", list(&["./probe.ts"])));
        let told = app.hears("applied").await;
        loader.applied().await.unwrap();

        assert_eq!(told, ["applied cordis.yml (no entry changed)"]);
        assert!(!loader.is_behind());
    });
}

#[test]
fn k_187_a_saved_script_is_reloaded_in_every_entry_that_names_it() {
    run(async |app| {
        app.write(
            "twice.ts",
            "export const apply = ctx => ctx.effect(() => () => { throw new Error('unloaded') })",
        );
        let loader = app.start(&["./twice.ts", "./twice.ts"]).await;

        app.write("twice.ts", "export const apply = () => {}");
        app.hears("reloaded ./twice.ts").await;
        loader.applied().await.unwrap();

        assert_eq!(app.reports().len(), 2);
    });
}

#[test]
fn k_205_of_two_scripts_saved_together_one_may_fail() {
    run(async |app| {
        app.write("probe.ts", says("", "'one'"));
        app.write("other.ts", "export const apply = () => {}");
        let loader = app.start(&["./probe.ts", "./other.ts"]).await;

        app.write("other.ts", "let = 5 5");
        app.write("probe.ts", says("", "'two'"));
        app.hears("reloaded ./probe.ts").await;
        loader.applied().await.unwrap();

        assert_eq!(app.call("probe").await, "two");
        assert!(loader.entries().iter().any(|it| it.id == "s1"));
    });
}

#[test]
fn a_script_that_gets_other_permissions_is_behind_until_they_are_mended() {
    run(async |app| {
        use std::os::unix::fs::PermissionsExt;
        app.write("lib.ts", "export const what = 'x'");
        app.write("probe.ts", says("import { what } from './lib.ts'", "what"));
        let loader = app.start(&["./probe.ts"]).await;

        fs::set_permissions(app.file("lib.ts"), fs::Permissions::from_mode(0o666)).unwrap();
        app.write("lib.ts", "export const what = 'theirs'");
        let told = app.hears("not applied").await;

        assert!(
            told[0].contains("lib.ts is refused: it is code, and other users can write it"),
            "{told:?}"
        );
        assert_eq!(app.call("probe").await, "x");
        assert!(loader.is_behind());
    });
}
