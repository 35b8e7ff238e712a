//! A failure says where in the file as it was written it happened, whatever that file looks like.

use crate::script::{App, run, tool};

/// Mounts a tool with this body and gives what a call of it says.
async fn failing(app: &App, name: &str, source: impl AsRef<[u8]>) -> String {
    app.write(name, source);
    let def = app.load(&format!("./{name}")).unwrap();
    let mount = app.mount_def(&def).await;
    let said = app.call("probe").await;
    mount.dispose().await;
    said
}

#[test]
fn a_place_is_that_of_the_source() {
    run(async |app| {
        app.tools().await;
        let types = "interface A {\n  a: string\n}\n\ntype B = A[]\n";
        let throws = "const x: number = 1; throw new Error('no')";
        for (name, source) in [
            ("plain.ts", tool(throws)),
            ("plain.js", tool("throw new Error('no')")),
            ("types.ts", format!("{types}{}", tool(throws))),
            ("crlf.ts", format!("{types}{}", tool(throws)).replace('\n', "\r\n")),
            ("crlf.js", tool("throw new Error('no')").replace('\n', "\r\n")),
            ("bom.ts", format!("\u{feff}{}", tool(throws))),
            ("bom.js", format!("\u{feff}{}", tool("throw new Error('no')"))),
            ("bang.ts", format!("#!/usr/bin/env node\n{}", tool(throws))),
            ("bang.js", format!("\u{feff}#!/usr/bin/env node\n{}", tool("throw new Error('no')"))),
            ("cjk.ts", tool("const 名: string = '中文字'; throw new Error('文')")),
            ("cjk.js", tool("const 名 = '中文字'; throw new Error('文')")),
            (
                "ends.ts",
                tool(
                    "const a: string = '\u{2028}', b = `\u{2029}` /* \r */\rthrow new Error('\u{2028}')",
                ),
            ),
            ("ends.js", tool("const a = '\u{2028}', b = `\u{2029}`; throw new Error('\u{2028}')")),
            ("face.ts", tool("const a: string = '😀'; throw new Error('😀')")),
            ("face.js", tool("const a = '😀'; throw new Error('😀')")),
        ] {
            let expected = format!("Error: {name}:{}: ", place(&source, "Error("));

            let said = failing(app, name, &source).await;

            assert!(said.starts_with(&expected), "{said}: {expected}");
        }
    });
}

/// Line and column of the first place of some words, as JavaScript counts.
fn place(source: &str, words: &str) -> String {
    let lines = source.trim_start_matches('\u{feff}').lines().enumerate();
    let found = { lines }.find_map(|(at, it)| Some((at, it.split_once(words)?.0)));
    let (line, before) = found.unwrap();
    format!("{}:{}", line + 1, before.encode_utf16().count() + 1)
}

#[test]
fn the_place_of_a_failure_in_an_import_is_in_the_import() {
    run(async |app| {
        app.tools().await;
        app.write(
            "lib/deep.ts",
            "type A = 1\n\nexport function deep(a?: A): never {\n  throw new TypeError('deep')\n}",
        );
        let source = format!("import {{ deep }} from './lib/deep.ts'\n{}", tool("deep()"));

        let said = failing(app, "probe.ts", source).await;

        assert_eq!(said, "Error: lib/deep.ts:4:13: TypeError: deep");
    });
}
