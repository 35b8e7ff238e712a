//! The types for authors and what is there when a script runs are the same.

use std::collections::BTreeSet;

use crate::support::{Folder, list};

const TYPES: &str = include_str!("../../src/extras/script/nano-cordis.d.ts");

/// What the language itself has.
const LANGUAGE: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array \
    Boolean DataView Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array \
    Function Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy \
    RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError TypeError \
    URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI decodeURIComponent \
    encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt undefined unescape";

/// Lines of a block that begins with this line, without its indentation.
fn block(begin: &str) -> Vec<&'static str> {
    let mut lines = TYPES.lines().skip_while(|it| it.trim() != begin);
    let first = lines.next().unwrap_or_else(|| panic!("there is no {begin:?}"));
    let indent = first.len() - first.trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    lines.take_while(|it| *it != end).map(|it| it.get(indent + 2..).unwrap_or_default()).collect()
}

/// The names of members of a block.
fn members(begin: &str) -> BTreeSet<String> {
    let name = |line: &&str| {
        let line = line.trim_start_matches("readonly ");
        let name: String = line.chars().take_while(|it| it.is_alphanumeric()).collect();
        (!name.is_empty() && !line.starts_with("private ") && !line.starts_with("static "))
            .then_some(name)
    };
    block(begin).iter().filter_map(name).filter(|it| it != "constructor").collect()
}

/// Names that are declared with one of these words at the begin of a line.
fn declared(lines: impl Iterator<Item: AsRef<str>>, words: &[&str]) -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = words.iter().find_map(|it| line.strip_prefix(it))?;
        Some(rest.chars().take_while(|it| it.is_alphanumeric()).collect())
    };
    lines.filter_map(|it| name(it.as_ref())).collect()
}

/// What a script finds when it is loaded, as a list of names.
fn found(expression: &str) -> BTreeSet<String> {
    let source = format!(
        "import * as cordis from 'cordis'
         import * as same from 'nano-cordis'
         import * as schemastery from 'schemastery'
         throw new Error(`<${{({expression}).map(String).join()}}>`)"
    );
    let said = crate::script_config::load(&source).err().unwrap();
    let names = said
        .split_once('<')
        .and_then(|it| it.1.split_once('>'))
        .unwrap_or_else(|| panic!("{said}"))
        .0;
    names
        .split(',')
        .filter(|it| !it.is_empty() && *it != "constructor")
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_context_has_what_its_type_says() {
    assert_eq!(
        found("Object.getOwnPropertyNames(cordis.Context.prototype)"),
        members("export class Context {")
    );
}

#[test]
fn modules_export_what_their_types_say() {
    let mut exports = declared(
        block("declare module 'cordis' {").into_iter(),
        &["export class ", "export abstract class ", "export const ", "export function "],
    );
    exports.extend(["Schema".to_owned(), "z".to_owned()]);

    assert_eq!(found("Object.keys(cordis)"), exports);
    assert_eq!(found("Object.keys(same)"), exports);
    assert_eq!(found("Object.keys(schemastery)"), ["Schema", "default"].map(str::to_owned).into());
}

#[test]
fn a_schema_has_what_its_type_says() {
    let methods = members("export interface Schema<T = any, Given extends boolean = boolean> {");

    assert_eq!(
        found("Object.getOwnPropertyNames(cordis.Schema.prototype).filter(it => it !== 'toJSON')"),
        methods
    );
    assert_eq!(
        found(
            "Object.getOwnPropertyNames(cordis.Schema).filter(it => !['length', 'name', 'prototype'].includes(it))"
        ),
        members("export const Schema: {")
    );
}

#[test]
fn the_globals_are_those_that_are_declared_and_those_of_the_language() {
    let declared =
        declared(TYPES.lines(), &["declare const ", "declare function ", "declare class "]);
    let language: BTreeSet<_> = LANGUAGE.split(' ').map(str::to_owned).collect();
    let found = found("Object.getOwnPropertyNames(globalThis).filter(it => !it.startsWith('__'))");

    let missing: Vec<_> = declared.difference(&found).collect();
    let silent: Vec<_> = found.difference(&declared).filter(|it| !language.contains(*it)).collect();
    assert_eq!((missing, silent), (Vec::new(), Vec::new()));
}

#[test]
fn services_have_what_their_types_say() {
    let context = block("export interface Context {");
    let typed =
        context.iter().filter_map(|it| it.split_once(": ")).filter(|it| !it.0.contains('*'));
    let typed: Vec<_> = typed.collect();
    let names: Vec<_> = typed.iter().map(|it| it.0).collect();
    let kinds = typed.iter().map(|(name, kind)| {
        let members: Vec<_> = members(&format!("export interface {kind} {{")).into_iter().collect();
        format!("{name}: {members:?}")
    });
    let folder = Folder::with(&format!("{}- {{id: probe, name: ./probe.js}}\n", list(&[])));
    folder.write(
        "probe.js",
        &format!(
            "export const inject = {names:?}
             const typed = {{ {} }}
             export function apply(ctx) {{
               for (const name of inject) {{
                 const found = Object.getOwnPropertyNames(ctx[name]).sort().join()
                 if (found !== typed[name].join()) throw new Error(`${{name}}: ${{found}}, but typed ${{typed[name]}}`)
               }}
             }}",
            kinds.collect::<Vec<_>>().join(", ")
        ),
    );

    let ended = folder.run(&["--check"], "");

    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(names.len() > 6, "{names:?}");
}
