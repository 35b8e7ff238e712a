//! Taking the types out changes neither what a program does nor where it does it: random programs of TypeScript, whose
//! outcome is known, throw at a known place what they have come to.

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::script::run;

/// Lines of TypeScript and what they add to the list `out`; `@` is a number of their own. Some add nothing.
const PIECES: &[(&str, &str)] = &[
    ("", ""),
    ("// a line", ""),
    ("/* several\n   lines: interface A { */", ""),
    ("interface I@ {\n  a: string\n  b?(): I@[]\n}", ""),
    ("interface J@<T extends string = 'a'> extends Array<T> { readonly x: T }", ""),
    (
        "type A@ =\n  | 'a'\n  | `b${string}`\n  | { [K in 'x' | 'y']?: K extends 'x' ? 1 : never }",
        "",
    ),
    ("type F@ = new (a: number, ...b: string[]) => void", ""),
    ("declare function d@(a: string): number;\ndeclare const e@: unique symbol", ""),
    ("declare global { interface Window@ { a: 1 } }", ""),
    ("declare module 'cordis' {\n  interface Events { 'a@': [] }\n}", ""),
    ("import type { Nothing as N@ } from './nowhere.ts'", ""),
    ("export type { N@@ } from './nowhere.ts'", ""),
    ("let u@!: number;\nlet v@: string | undefined", ""),
    ("out.push(@ as number)", "@"),
    ("out.push(<number>@)", "@"),
    ("out.push((@ satisfies number)!)", "@"),
    ("out.push(((@ as unknown) as any as number)!)", "@"),
    ("const a@: Array<[number, string?]> = [[@]]; out.push(a@[0]![0])", "@"),
    ("const b@ = <T,>(it: T, ...more: T[]): T | T[] => it\nout.push(b@<number>(@))", "@"),
    ("const c@ = async <T extends number>(it: T): Promise<T> => it; void c@; out.push(@)", "@"),
    (
        "function f@<T>(this: void, it: T, other?: T): it is T & {} {\n  return !!it && !other\n}\nout.push(f@(@))",
        "true",
    ),
    (
        "function o@(a: string): string;\nfunction o@(a: number): number;\nfunction o@(a: any): any { return a }\nout.push(o@(@))",
        "@",
    ),
    (
        "abstract class G@<T = {}> {\n  declare gone: T\n  abstract no(): void\n  static s: number = @\n  protected readonly p?: string = 'p'\n}\nout.push(G@.s)",
        "@",
    ),
    (
        "class H@ implements Iterable<number> {\n  #n: number = @\n  get n(): number { return this.#n }\n  *[Symbol.iterator](): Iterator<number> { yield this.n }\n}\nout.push(...new H@())",
        "@",
    ),
    (
        "class P@ { constructor(public readonly n: number, private m = n + 1) {} get s() { return this.n + this.m - this.n - 1 } }\nout.push(new P@(@).s)",
        "@",
    ),
    ("enum E@ { A = @, B, C = 'c' as any }\nout.push(E@.B - 1)", "@"),
    ("const enum K@ { One = @ }\nout.push(K@.One)", "@"),
    ("namespace S@ {\n  export const n: number = @\n}\nout.push(S@.n)", "@"),
    ("for (const it of [@] as const satisfies readonly number[]) {\n  out.push(it)\n}", "@"),
    ("try {\n  throw @ as any\n} catch (error: unknown) {\n  out.push(error)\n}", "@"),
    (
        "const t@: string = `a${(@ as number) + 0}b${'c' as string}`; out.push(t@.length > 0 ? @ : -1)",
        "@",
    ),
    ("const q@ = { a: { b: @ as number | null } }; out.push(q@?.a?.b!)", "@"),
    ("out.push(@ < (1_000_000 as number) ? @ : 0)", "@"),
    ("let w@: any = (a: number): any => (b: number) => a * 0 + b\nout.push(w@(1)(@))", "@"),
    ("const x@ = '中文😀' as string, y@ = /[/<]>/u as RegExp; out.push(x@.length + @ - 4)", "@"),
    ("label@: for (;;) { if (true as boolean) break label@ }", ""),
    ("switch (@ as number) {\n  case @: out.push(@)\n}", "@"),
    ("out.push(\n  // within\n  (@ as any),\n)", "@"),
];

/// Statements that throw the list, and what stands at the place that is told.
const ENDS: &[(&str, &str)] = &[
    ("const s = JSON.stringify(out); throw new Error(s)", "Error(s)"),
    ("const s: string = JSON.stringify(out) as any, z = 'é😀'; throw new Error(s!)", "Error(s!)"),
    (
        "const s = JSON.stringify(out); ((): never => { throw new (Error as any)!(s) })()",
        "(Error as any)",
    ),
];

/// The program, the list that it comes to, and where it throws that.
fn program(pieces: &[usize], end: usize, break_line: &str) -> (String, String, usize) {
    let (mut lines, mut list) = (vec!["const out: unknown[] = []".to_owned()], Vec::new());
    for (at, piece) in pieces.iter().enumerate() {
        let (source, adds) = PIECES[*piece];
        let own = |it: &str| it.replace('@', &(at + 10).to_string());
        lines.push(own(source));
        list.extend(Some(own(adds)).filter(|it| !it.is_empty()));
    }
    lines.push(ENDS[end].0.to_owned());
    let source = lines.join("\n") + "\nexport {}\n";
    let line = source.lines().position(|it| it == ENDS[end].0).unwrap() + 1;
    (source.replace('\n', break_line), format!("[{}]", list.join(",")), line)
}

#[test]
fn without_its_types_a_program_does_the_same_at_the_same_place() {
    run(async |app| {
        let pieces = vec(0..PIECES.len(), 0..14);
        let input = (pieces, 0..ENDS.len(), prop_oneof!["\n", "\r\n"]);
        let check = |(pieces, end, break_line): (Vec<usize>, usize, String)| {
            let (source, list, line) = program(&pieces, end, &break_line);

            let said = app.def(&source).err().unwrap_or_else(|| format!("loaded: {source}"));

            let (place, told) = said.split_once(": ").unwrap_or((&said, ""));
            prop_assert_eq!(told, list, "{}\n{}", said, source);
            prop_assert!(place.starts_with(&format!("probe.ts:{line}:")), "{said}\n{source}");
            Ok(())
        };

        let config = Config { failure_persistence: None, ..Config::with_cases(200) };
        TestRunner::new(config).run(&input, check).unwrap();
    });
}

#[test]
fn every_piece_does_what_it_should_alone() {
    run(async |app| {
        for (at, (piece, _)) in PIECES.iter().enumerate() {
            for (end, (thrown, before)) in ENDS.iter().enumerate() {
                let (source, list, line) = program(&[at], end, "\n");

                let said = app.def(&source).err().unwrap_or_default();

                let column = thrown.split(before).next().unwrap().encode_utf16().count() + 1;
                let place = format!("probe.ts:{line}:");
                assert!(
                    said.starts_with(&place) && said.ends_with(&format!(": {list}")),
                    "{piece}: {said}"
                );
                // The constructor, the `new` before it, or what stands in brackets.
                let told: usize = said[place.len()..].split(':').next().unwrap().parse().unwrap();
                assert!(
                    (column - 4..=column + before.len() + 2).contains(&told),
                    "{column}: {said}"
                );
            }
        }
    });
}
