//! Values on their way in and out: JSON and nothing else, and what is none is named with its path.

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use crate::script::{run, tool};

#[test]
fn what_is_no_json_is_refused_with_its_path() {
    run(async |app| {
        app.tools().await;
        let source = tool("return new Function('return ' + args.text)()");
        app.mount(&source).await;
        for (expression, expected) in [
            ("{ a: { b: [1, () => 1] } }", "`a.b.1` is a function"),
            ("() => 1", "it is a function"),
            ("(() => { const a = {}; a.b = { c: a }; return a })()", "`b.c` is part of itself"),
            ("{ n: 10n }", "`n` is a BigInt"),
            ("{ s: '\\ud800' }", "`s` is half of a surrogate pair"),
            ("{ ['\\udc00']: 1 }", "named by half of a surrogate pair"),
            ("[Symbol('x')]", "`0` is a symbol"),
            ("{ m: new Map() }", "`m` is a Map"),
            ("{ m: new (class Own extends Map {})() }", "`m` is a Map"),
            ("new Set()", "it is a Set"),
            ("new WeakMap()", "it is a WeakMap"),
            ("new Uint8Array(2)", "it is a TypedArray"),
            ("new ArrayBuffer(2)", "it is an ArrayBuffer"),
            ("new DataView(new ArrayBuffer(2))", "it is a DataView"),
            ("/x/", "it is a RegExp"),
            ("[Promise.resolve()]", "`0` is a Promise"),
            ("{ e: new TypeError('x') }", "`e` is an Error"),
            ("{ n: NaN }", "`n` is NaN"),
            ("{ n: -Infinity }", "`n` is -inf"),
            ("{ get g() { throw new Error('boom') } }", "`g` is unreadable (boom)"),
            ("{ toJSON() { throw new Error('bang') } }", "unreadable (bang)"),
            ("{ a: { toJSON() { return { b: 5n } } } }", "`a.b` is a BigInt"),
            ("new Proxy({}, {})", "it is a context, a service or another proxy"),
            (
                "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy } })()",
                "`proxy` is a context, a service or another proxy",
            ),
            ("[1, 2].values()", "it is an Iterator"),
            ("(function* () {})()", "it is an Iterator"),
        ] {
            let said = app.call_with("probe", &json!({ "text": expression }).to_string()).await;

            assert!(said.starts_with("Error: ") && said.contains(expected), "{expression}: {said}");
            assert!(said.contains("which cannot leave its script"), "{said}");
        }
    });
}

#[test]
fn what_is_json_in_another_dress_is_read_as_json_does() {
    run(async |app| {
        app.tools().await;
        app.mount(&tool("return JSON.stringify(args) === args.never ? 0 : [new Function('return ' + args.text)()]")).await;
        for (expression, expected) in [
            ("undefined", "[null]"),
            ("[1, , 3]", "[[1,null,3]]"),
            ("{ a: undefined, b: null }", r#"[{"b":null}]"#),
            ("new Date(0)", r#"["1970-01-01T00:00:00.000Z"]"#),
            ("-0", "[0]"),
            ("2 ** 53", "[9007199254740992]"),
            ("1e300", "[1e+300]"),
            ("0.1", "[0.1]"),
            (
                "JSON.parse('{\"__proto__\": 1, \"constructor\": { \"name\": \"Map\" }}')",
                r#"[{"__proto__":1,"constructor":{"name":"Map"}}]"#,
            ),
            ("Object.create(null)", "[{}]"),
            ("new (class Own { a = 1; #b = 2; get c() { return 3 } })()", r#"[{"a":1}]"#),
            ("(() => { const a = { x: 1 }; return [a, a] })()", r#"[[{"x":1},{"x":1}]]"#),
            ("'\\u0000\\u2028😀'", "[\"\\u0000\u{2028}😀\"]"),
        ] {
            let said = app.call_with("probe", &json!({ "text": expression }).to_string()).await;

            assert_eq!(said, expected, "{expression}");
        }
    });
}

/// Any JSON whose numbers a script can have.
fn any_json() -> impl Strategy<Value = Value> {
    let number = any::<f64>().prop_filter("JSON has no others", |it| it.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        number.prop_map(|it| if it.fract() == 0.0 { json!(it / 3.0 + 0.1) } else { json!(it) }),
        any::<String>().prop_map(Value::from),
        "__proto__|constructor|toJSON|length|then".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let key = prop_oneof![
            any::<String>(),
            Just("__proto__".to_owned()),
            Just("constructor".to_owned()),
            "[0-9]{1,3}"
        ];
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map(key, inner, 0..8).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

#[test]
fn any_json_comes_back_as_it_went_in() {
    run(async |app| {
        app.tools().await;
        app.mount(&tool("return { it: args.it }")).await;
        let mut runner = TestRunner::new(Config::default());

        for _ in 0..300 {
            let value = any_json().new_tree(&mut runner).unwrap().current();
            let sent = json!({ "it": value });
            let back: Value =
                serde_json::from_str(&app.call_with("probe", &sent.to_string()).await).unwrap();

            assert_eq!(rounded(&back), rounded(&sent));
        }
    });
}

/// A whole number is one, however it is written; and the order of keys that are numbers is the engine's.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(it) if it.as_i64().is_none() => json!(it.as_f64()),
        Value::Array(it) => it.iter().map(rounded).collect(),
        Value::Object(it) => {
            let mut sorted: Vec<_> =
                it.iter().map(|(key, it)| (key.clone(), rounded(it))).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(sorted.into_iter().collect())
        }
        other => other.clone(),
    }
}
