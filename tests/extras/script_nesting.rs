//! Texts that nest as deep as a text can, in every way that a program can nest.

use crate::script::{alone, run};

/// What stands first, what opens, what is innermost, what closes, what stands last.
type Nest = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const NESTS: &[Nest] = &[
    ("x = ", "(", "1", ")", ""),
    ("x = ", "[", "1", "]", ""),
    ("", "{", "", "}", ""),
    ("x = ", "{a:", "1", "}", ""),
    ("x = ", "`${", "1", "}`", ""),
    ("x = ", "`${", "", "", ""),
    ("x = ", "a ? 1 : ", "1", "", ""),
    ("x = ", "a ? ", "1", " : 1", ""),
    ("x = ", "(a ? ", "1", " : 1)", ""),
    ("x = ", "a => ", "1", "", ""),
    ("x = ", "(a) => ", "1", "", ""),
    ("x = ", "(a = ", "1", ") => 1", ""),
    ("x = ", "() => {", "", "}", ""),
    ("x = ", "(a: number): any => ", "1", "", ""),
    ("x = ", "async a => ", "1", "", ""),
    ("x = ", "!", "1", "", ""),
    ("x = ", "- ", "1", "", ""),
    ("x = ", "+ ", "1", "", ""),
    ("x = ", "typeof ", "1", "", ""),
    ("x = ", "await ", "1", "", ""),
    ("x = ", "new ", "a", "", ""),
    ("function* f() { ", "yield ", "1", "", "}"),
    ("x = ", "1+", "1", "", ""),
    ("x = ", "1**", "1", "", ""),
    ("x = ", "a||", "1", "", ""),
    ("x = ", "a??", "1", "", ""),
    ("x = ", "1+2*", "1", "", ""),
    ("x = ", "1,", "1", "", ""),
    ("", "a=", "1", "", ""),
    ("x = a", ".b", "", "", ""),
    ("x = a", "()", "", "", ""),
    ("x = ", "a[", "1", "]", ""),
    ("x = a", "?.b", "", "", ""),
    ("x = ", "f(", "1", ")", ""),
    ("x = a", "!", "", "", ""),
    ("x = a", "``", "", "", ""),
    ("x = 1", " as any", "", "", ""),
    ("x = 1", " satisfies any", "", "", ""),
    ("x = ", "<any>", "1", "", ""),
    ("type A = ", "B<", "C", ">", ""),
    ("type A = ", "(", "C", ")", ""),
    ("type A = B", "[]", "", "", ""),
    ("type A = ", "[", "C", "]", ""),
    ("type A = ", "[", "C", "?]", ""),
    ("type A = ", "{a:", "C", "}", ""),
    ("type A = ", "{a?:", "C", "}", ""),
    ("type A = ", "B | ", "C", "", ""),
    ("type A = ", "B & ", "C", "", ""),
    ("type A = ", "() => ", "C", "", ""),
    ("type A = ", "(a: ", "C", ") => void", ""),
    ("type A = ", "B extends C ? D : ", "E", "", ""),
    ("type A = ", "B extends C ? ", "E", " : D", ""),
    ("type A = ", "B extends (", "C", ") ? 1 : 2", ""),
    ("type A = ", "keyof ", "C", "", ""),
    ("type A = ", "readonly ", "C[]", "", ""),
    ("type A = B", "[C]", "", "", ""),
    ("type A = ", "`${", "C", "}`", ""),
    ("type A = ", "B extends infer U ? ", "E", " : D", ""),
    ("type A = ", "{[K in ", "C", "]: 1}", ""),
    ("type A = typeof a", ".b", "", "", ""),
    ("type A = ", "import('a').B<", "C", ">", ""),
    ("type A = a", ".b", "", "", ""),
    ("type A = ", "((a) => ", "C", ")", ""),
    ("function f(a): a is ", "(", "C", ")", "{}"),
    ("", "if(a)", ";", "", ""),
    ("", "if(a);else ", ";", "", ""),
    ("", "for(;;)", ";", "", ""),
    ("", "for(x of a)", ";", "", ""),
    ("", "while(a)", ";", "", ""),
    ("", "do ", ";", " while(a)", ""),
    ("", "switch(a){case 1:", ";", "}", ""),
    ("", "try{", ";", "}catch{}", ""),
    ("", "try{}finally{", ";", "}", ""),
    ("", "function f(){", "", "}", ""),
    ("x = ", "function(){return ", "1", "}", ""),
    ("", "function f(a=", "1", "){}", ""),
    ("", "class A{a=", "1", "}", ""),
    ("x = ", "class{a=", "1", "}", ""),
    ("x = ", "class extends ", "A", "{}", ""),
    ("", "class A{static{", "", "}}", ""),
    ("x = ", "class{[", "1", "]=1}", ""),
    ("x = ", "{a(){return ", "1", "}}", ""),
    ("x = ", "{get a(){return ", "1", "}}", ""),
    ("class A{constructor(public a = ", "1", "){}}", "", " "),
    ("", "namespace A{", "", "}", ""),
    ("namespace A", ".B", "", "", "{}"),
    ("", "declare module 'a'{", "", "}", ""),
    ("", "enum A{a=(", "1", ")}", ""),
    ("enum A{a=", "1+", "1", "", "}"),
    ("let ", "{a:", "b", "} = {}", ""),
    ("let ", "[", "b", "]", "= 1"),
    ("let {a=", "(", "1", ")", "} = {}"),
    ("function f(", "{a:", "b", "}", "){}"),
    ("", "[", "b", "]", " = 1"),
    ("(", "{a:", "b", "}", " = 1)"),
    ("x = ", "[...", "a", "]", ""),
    ("x = ", "{...", "a", "}", ""),
    ("x = ", "f(...", "a", ")", ""),
    ("x = ", "{[", "1", "]:1}", ""),
    ("x = ", "<a>", "", "</a>", ""),
    ("x = ", "<a>", "", "", ""),
    ("x = ", "<a b={", "1", "}/>", ""),
    ("", "@a ", "class A {}", "", ""),
    ("", "@(", "a", ") class A {}", ""),
    ("x = ", "/a/ / ", "1", "", ""),
    ("x = ", "import(", "'a'", ")", ""),
    ("", ";", "", "", ""),
    ("x = ", "<", "", "", ""),
    ("x = a", ">", "", "", ""),
    ("x = ", "a?b:", "c", "", ""),
    ("x = ", "a ? (b) => (", "d", ") : c", ""),
    ("x = ", "<T>(a = ", "1", ") => 1", ""),
    ("x = ", "<T,>(a: B<", "C", ">) => 1", ""),
    ("x = ", "async(", "1", ")", ""),
    ("x = ", "async<T>(", "1", ")", ""),
    ("x = ", "(a: ", "b", ")", ""),
    ("x = ", "(a?: ", "b", ") => 1", ""),
    ("x = ", "(a): ", "b", " => 1", ""),
    ("x = (a): ", "() => ", "b", " => 1", ""),
    ("x = ", "({a:", "1", "})", ""),
    ("x = ", "([", "1", "])", ""),
    ("x = ", "({a = ", "1", "}) => 1", ""),
    ("x = ", "([a = ", "1", "]) => 1", ""),
    ("type A = ", "{[k: string]: ", "C", "}", ""),
    ("type A = ", "new () => ", "C", "", ""),
    ("type A = ", "abstract new () => ", "C", "", ""),
    ("type A = ", "unique ", "symbol", "", ""),
    ("x = a", "?.()", "", "", ""),
    ("x = ", "a?.[", "1", "]", ""),
    ("x = ", "a in ", "b", "", ""),
    ("x = ", "a instanceof ", "b", "", ""),
    ("class A{#a;b=", "#a in ", "b", "", "}"),
    ("", "export namespace A{export ", "const a=1", "}", ""),
    ("", "export default (", "1", ")", ""),
    ("", "{using a=", "1", "}", ""),
    ("", "a:", "1", "", ""),
];

/// What is read in several ways, one within the other: it takes time that grows much faster than its length.
#[rustfmt::skip]
const SLOW: &[Nest] = &[
    ("x = ", "a<", "1", "", ""),
    ("x = ", "f<", "T", ">()", ""),
    ("x = ", "a ? (b) : c => ", "d", "", ""),
    ("x = ", "a ? (b = ", "d", ") : c", ""),
    ("x = ", "a?(b,c):d=>", "d", "", ""),
    ("x = ", "a<b<", "c", ">>(1)", ""),
    ("x = ", "a<", "c", ">(1)", ""),
];

fn text((first, opens, inner, closes, last): Nest, depth: usize) -> String {
    format!("{first}{}{inner}{}{last}", opens.repeat(depth), closes.repeat(depth))
}

/// All of these, so deep.
fn nested(nests: &[Nest], depth: usize) {
    run(async |app| {
        for (at, nest) in nests.iter().enumerate() {
            let source = text(*nest, depth);
            app.write("plain.js", &source);

            for said in [app.def(&source), app.load("./plain.js")].map(Result::err) {
                let short = said.is_none_or(|it| it.len() < 6000 && !it.contains("panicked"));
                assert!(short, "{at}: {source:.60}");
            }
        }
    });
}

#[test]
fn what_nests_a_little_is_a_program_or_an_error() {
    nested(NESTS, 12);
    nested(SLOW, 12);
}

#[test]
fn what_nests_deeply_is_a_program_or_an_error() {
    nested(NESTS, 400);
    nested(SLOW, 200);
}

#[test]
fn what_nests_as_deep_as_a_text_can_is_a_program_or_an_error() {
    nested(NESTS, 3_000);
}

#[test]
fn what_would_take_for_ever_is_given_up() {
    alone("script_nesting::what_would_take_for_ever_is_given_up", async |app| {
        let said = app.def(text(SLOW[0], 30_000)).err();

        let words =
            "probe.ts cannot be translated: it takes more than 10 s, so much of it is nested";
        assert_eq!(said.as_deref(), Some(words));
    });
}
