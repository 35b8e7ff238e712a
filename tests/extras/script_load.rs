//! What cannot be loaded, and what is said of it: the entry, the file, the line.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use nix::{sys::stat::Mode, unistd::mkfifo};

use crate::script::{App, run, tool};

const GOOD: &str = "export function apply() {}";

/// What is said of a script with this source.
fn refusal(app: &App, source: &str) -> String {
    app.def(source).err().unwrap_or_else(|| format!("loaded: {source}"))
}

#[test]
fn a_file_that_is_none_is_refused_and_never_waited_for() {
    run(async |app| {
        fs::create_dir(app.file("folder.ts")).unwrap();
        mkfifo(&app.file("pipe.ts"), Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", app.file("device.ts")).unwrap();
        std::os::unix::fs::symlink("nowhere.ts", app.file("link.ts")).unwrap();
        app.write("latin.ts", b"export const name = '\xe9'; export function apply() {}");
        app.write("large.ts", format!("//{}\n{GOOD}", "x".repeat(1 << 20)));
        app.write("page.tsx", GOOD);
        app.write("old.cjs", GOOD);
        app.write("data.json", "{}");
        app.write("plain.txt", GOOD);

        for (name, problem) in [
            ("./missing.ts", "there is no file missing.ts"),
            ("./folder.ts", "it is a folder, not a regular file"),
            ("./pipe.ts", "it is a named pipe, not a regular file"),
            ("./device.ts", "it is a device, not a regular file"),
            ("./link.ts", "link to `nowhere.ts`, which is not there"),
            ("./latin.ts", "latin.ts is not UTF-8 text"),
            ("./large.ts", "it is larger than 1 MiB"),
            ("./page.tsx", "page.tsx is JSX, which is not read"),
            ("./old.cjs", "old.cjs is a CommonJS module"),
            ("./data.json", "data.json is no script"),
            ("./plain.txt", "plain.txt is no script: it must end in .ts, .mts, .js or .mjs"),
        ] {
            let said = app.load(name).err().unwrap();

            assert_eq!(said.matches(&name[2..]).count(), 1, "{said}");
            assert!(said.contains(problem), "{said}");
        }
    });
}

/// Sources, and what is said of them.
const WRONG: &[(&str, &str)] = &[
    ("export function apply() {\n  let x = ;\n}", "probe.ts:2:11: Unexpected token"),
    ("\nlet a = 1\nlet a = 2\nexport function apply() {}", "probe.ts:2:5: "),
    ("export function apply() { return 1 +", "probe.ts:1:37: "),
    ("\n@old class A {}\nexport function apply() {}", "probe.ts:2:1: decorators are not read"),
    ("\n\n  throw new Error('no')\nexport function apply() {}", "probe.ts:3:13: no"),
    ("\nthrow 'a text'", "\"a text\" was thrown, which is no Error"),
    (
        "const x: string = undefinedName\nexport function apply() {}",
        "probe.ts:1:19: ReferenceError: undefinedName is not defined",
    ),
    (
        "const fs = require('fs')",
        "probe.ts:1:12: ReferenceError: require is not defined: other files come in by",
    ),
    ("module.exports = {}", "probe.ts:1:1: ReferenceError: module is not defined: a script says"),
    ("exports.apply = () => {}", "ReferenceError: exports is not defined: a script says"),
    ("const key = process.env.KEY", "process is not defined: a script sees no environment"),
    ("export const nothing = 1", "it exports no plugin"),
    ("export const apply = 1", "it exports no plugin"),
    ("export default 5", "it exports no plugin"),
    ("export default null", "it exports no plugin"),
    ("export default { apply: 'x' }", "it exports no plugin"),
    (
        "await new Promise(() => {})\nexport function apply() {}",
        "its top level waits for something that never comes",
    ),
    ("while (true) {}", "probe.ts:1:"),
    ("for (;;) await null", "it ran for more than 1000 ms without a pause and was stopped"),
    (
        "const all = []\nfor (;;) all.push('x'.repeat(1e5) + all.length)",
        "it needed more than 64 MiB of memory",
    ),
    ("function f() { f() }\nf()", "probe.ts:1:16: RangeError: Maximum call stack size exceeded"),
    ("import { now } from 'nano-cordis/host'\nnow()", "`nano-cordis/host` cannot be imported"),
    (
        "await import('nano-cordis/' + 'host')",
        "cannot import `nano-cordis/host`: only what is written out",
    ),
    (
        "import { Nothing } from 'cordis'\nnew Nothing()",
        "probe.ts:1:25: `cordis` exports no `Nothing`",
    ),
];

#[test]
fn what_is_wrong_with_a_source_is_said_with_its_place() {
    run(async |app| {
        let mut others = Vec::new();
        for (source, expected) in WRONG {
            let said = refusal(app, source);

            let is_named_once =
                said.starts_with("probe.ts:") && said.matches("probe.ts").count() == 1;
            let is_said = is_named_once && said.contains(expected);
            others.extend((!is_said).then(|| format!("{source}\n{said}\n{expected}")));
        }
        assert_eq!(others, [""; 0]);
    });
}

/// Sources with imports, and what is said of them.
const IMPORTS: &[(&str, &str)] = &[
    ("import { x } from './lib/gone.ts'\nx()", "probe.ts:1:19: there is no file lib/gone.ts"),
    ("import { x } from './lib/user.ts'\nx()", "lib/user.ts:2:19: there is no file lib/gone.ts"),
    ("import { y } from './lib/none.ts'\ny()", "probe.ts:1:19: `./lib/none.ts` exports no `y`"),
    ("import y from './lib/none'\ny()", "probe.ts:1:15: `./lib/none` exports no `default`"),
    ("export { z } from './lib/none.ts'", "probe.ts:1:19: `./lib/none.ts` exports no `z`"),
    ("import './lib/broken.ts'", "lib/broken.ts:3:"),
    ("import './lib/throws.ts'", "lib/throws.ts:2:11: not today"),
    (
        "import x from './lib/data.json' with { type: 'json' }\nx()",
        "probe.ts:1:15: lib/data.json is no script",
    ),
    (
        "import _ from 'lodash'\n_()",
        "probe.ts:1:15: `lodash` cannot be imported: a script imports files",
    ),
    (
        "import _ from 'https://x.dev/y.ts'\n_()",
        "probe.ts:1:15: `https://x.dev/y.ts` cannot be imported",
    ),
    (
        "import fs from 'node:fs'\nfs()",
        "probe.ts:1:16: `node:fs` is a part of Node, and there is no Node here",
    ),
    ("import { join } from 'path'\njoin()", "probe.ts:1:22: `path` is a part of Node"),
    ("import { r } from 'fs/promises'\nr()", "probe.ts:1:19: `fs/promises` is a part of Node"),
    ("import { other } from 'lib/none.ts'\nother()", "imported as `./lib/none.ts`"),
    (
        "export const a = 1\nimport { b } from './lib/cycle.ts'\nexport const c = b",
        "lib/cycle.ts:2:18: ReferenceError",
    ),
    ("\nawait import('./lib/gone.ts')", "probe.ts:2:14: there is no file lib/gone.ts"),
];

#[test]
fn an_import_that_fails_names_both_files_and_the_line() {
    run(async |app| {
        app.write("lib/none.ts", "export const other = 1");
        app.write("lib/broken.ts", "\n\nlet = 5 5");
        app.write("lib/throws.ts", "\nthrow new Error('not today')");
        app.write("lib/user.ts", "\nimport { x } from './gone.ts'\nexport const y = x");
        app.write("lib/data.json", "{}");
        app.write("lib/cycle.ts", "import { a } from '../probe.ts'\nexport const b = a");

        let mut others = Vec::new();
        for (source, expected) in IMPORTS {
            let said = refusal(app, source);

            others.extend(
                (!said.contains(expected)).then(|| format!("{source}\n{said}\n{expected}")),
            );
        }
        assert_eq!(others, [""; 0]);
    });
}

#[test]
fn imports_of_every_kind_are_served() {
    run(async |app| {
        app.tools().await;
        app.write(
            "lib/a.ts",
            "export const a = 'a'; export type T = string; export default class { b = 'b' }",
        );
        app.write("lib/index.ts", "export * from './a.ts'\nexport { a as c } from './a'");
        app.write("lib/plain.js", "export const js = 'js'");
        app.write(
            "lib/later.mts",
            "export const later = 'later'; export const url = import.meta.url",
        );
        app.write(
            "lib/even.ts",
            "import { odd } from './odd.ts'\nexport const even = n => n === 0 || odd(n - 1)",
        );
        app.write(
            "lib/odd.ts",
            "import { even } from './even.ts'\nexport const odd = n => n !== 0 && even(n - 1)",
        );
        let source = tool(
            "const { later, url } = await import('./lib/later.mjs')
             return [a, new B().b, c, js, later, url.endsWith('/lib/later.mts'), even(10), typeof Context].join()",
        );
        let imports = "import B, { a, type T } from './lib/a.ts'\nimport { c } from './lib'\n\
            import { js } from './lib/plain.js'\nimport type {} from './types-that-are-nowhere.ts'\n\
            import { even } from './lib/even.js'\nimport { Context } from '../../src/cordis/index.ts'\n";
        app.mount(&format!("{imports}{source}")).await;

        let said = app.call("probe").await;

        assert_eq!(said, "a,b,a,js,later,true,true,function");
    });
}

#[test]
fn a_top_level_may_wait_for_what_comes() {
    run(async |app| {
        let waits = "const x = await new Promise(done => setTimeout(() => done(1), 5))\n";
        let throws =
            "await new Promise((_, fail) => setTimeout(() => fail(new Error('late')), 5))\n";

        assert_eq!(app.def(format!("{waits}{GOOD}")).err(), None);
        let said = refusal(app, &format!("{throws}{GOOD}"));
        assert_eq!(said, "probe.ts:1:58: late");
    });
}

#[test]
fn the_originals_names_of_the_built_ins_are_never_files() {
    run(async |app| {
        app.write("src/harness/tools.ts", "throw new Error('it was read')");
        app.write("src/harness/none.ts", GOOD);

        assert_eq!(app.load("./src/harness/tools.ts").err(), None);
        let none = app.load("./src/harness/none.ts").err().unwrap();
        assert!(none.starts_with("no plugin is named `./src/harness/none.ts`"), "{none}");
    });
}

#[test]
fn a_script_that_others_can_write_is_refused_with_the_command_that_mends_it() {
    run(async |app| {
        app.write("lib.ts", "export const a = 1");
        app.write(
            "probe.ts",
            format!("import {{ a }} from './lib.ts'\nexport const b = a\n{GOOD}"),
        );

        for name in ["lib.ts", "probe.ts"] {
            fs::set_permissions(app.file(name), Permissions::from_mode(0o666)).unwrap();
            let said = app.load("./probe.ts").err().unwrap();
            fs::set_permissions(app.file(name), Permissions::from_mode(0o644)).unwrap();

            let mend = format!("chmod go-w {}", app.file(name).display());
            assert!(
                said.contains(&format!(
                    "{name} is refused: it is code, and other users can write it"
                )),
                "{said}"
            );
            assert!(said.contains(&mend), "{said}");
        }
        assert_eq!(app.load("./probe.ts").err(), None);
    });
}
