//! `serial`: one after the other until an answer means something.

use std::rc::Rc;

use serde_json::{Value, json};

use nano_cordis::cordis::{BoxError, Context, Serial};

use super::{Ask, AskJson};
use crate::support::{Journal, kernel, pass};

struct AskYes;

impl Serial for AskYes {
    const NAME: &'static str = "test/ask-yes";
    type Input = ();
    type Answer = bool;
}

struct AskNumber;

impl Serial for AskNumber {
    const NAME: &'static str = "test/ask-number";
    type Input = ();
    type Answer = i64;
}

struct AskText;

impl Serial for AskText {
    const NAME: &'static str = "test/ask-text";
    type Input = ();
    type Answer = String;
}

struct AskList;

impl Serial for AskList {
    const NAME: &'static str = "test/ask-list";
    type Input = ();
    type Answer = Vec<u8>;
}

#[test]
fn k_116_the_second_listener_starts_after_the_first_ended() {
    kernel(async |test| {
        for name in ["one", "two"] {
            let journal = test.journal.clone();
            let slow = async move |_, _| {
                journal.push(format!("{name} in"));
                pass(10).await;
                journal.push(format!("{name} out"));
                Ok(None)
            };
            test.root.answer::<Ask>(slow).unwrap();
        }

        test.root.serial::<Ask>(Rc::new(())).await.unwrap();

        assert_eq!(test.journal.lines(), ["one in", "one out", "two in", "two out"]);
    });
}

#[test]
fn k_117_the_first_meaningful_answer_ends_the_walk() {
    kernel(async |test| {
        answer(&test.root, &test.journal, "one", Ok(None));
        answer(&test.root, &test.journal, "two", Ok(Some("v")));
        answer(&test.root, &test.journal, "three", Ok(Some("w")));

        let answer = test.root.serial::<Ask>(Rc::new(())).await.unwrap();

        assert_eq!(answer.as_deref(), Some("v"));
        assert_eq!(test.journal.lines(), ["one", "two"]);
    });
}

#[test]
fn k_118_absent_null_and_false_are_no_answers() {
    kernel(async |test| {
        answer(&test.root, &test.journal, "absent", Ok(None));
        answer_json(&test.root, &test.journal, &Value::Null);
        answer_json(&test.root, &test.journal, &json!(false));
        let journal = test.journal.clone();
        let no = async move |_, _| {
            journal.push("no");
            Ok(false)
        };
        test.root.answer::<AskYes>(no).unwrap();

        let absent = test.root.serial::<Ask>(Rc::new(())).await.unwrap();
        let json = test.root.serial::<AskJson>(Rc::new(())).await.unwrap();
        let yes = test.root.serial::<AskYes>(Rc::new(())).await.unwrap();

        assert_eq!((absent, json, yes), (None, None, None));
        assert_eq!(test.journal.lines(), ["absent", "null", "false", "no"]);
    });
}

#[test]
fn k_119_zero_empty_text_and_an_empty_list_are_json_answers() {
    for value in [json!(0), json!(""), json!([]), json!({}), json!(true)] {
        kernel(async |test| {
            answer_json(&test.root, &test.journal, &value);
            answer_json(&test.root, &test.journal, &json!("later"));

            let answer = test.root.serial::<AskJson>(Rc::new(())).await.unwrap();

            assert_eq!(answer, Some(value));
            assert_eq!(test.journal.lines().len(), 1);
        });
    }
}

#[test]
fn k_119_zero_empty_text_and_an_empty_list_are_typed_answers() {
    kernel(async |test| {
        test.root.answer::<AskNumber>(async |_, _| Ok(0)).unwrap();
        test.root.answer::<AskText>(async |_, _| Ok(String::new())).unwrap();
        test.root.answer::<AskList>(async |_, _| Ok(Vec::new())).unwrap();
        test.root.answer::<AskYes>(async |_, _| Ok(true)).unwrap();

        let number = test.root.serial::<AskNumber>(Rc::new(())).await.unwrap();
        let text = test.root.serial::<AskText>(Rc::new(())).await.unwrap();
        let list = test.root.serial::<AskList>(Rc::new(())).await.unwrap();
        let yes = test.root.serial::<AskYes>(Rc::new(())).await.unwrap();

        assert_eq!(number, Some(0));
        assert_eq!(text.as_deref(), Some(""));
        assert_eq!(list, Some(vec![]));
        assert_eq!(yes, Some(true));
    });
}

#[test]
fn k_120_a_failure_ends_the_walk_and_reaches_the_caller() {
    kernel(async |test| {
        answer(&test.root, &test.journal, "one", Err("broken"));
        answer(&test.root, &test.journal, "two", Ok(Some("v")));

        let answer = test.root.serial::<Ask>(Rc::new(())).await;

        assert!(answer.unwrap_err().to_string().contains("broken"));
        assert_eq!(test.journal.lines(), ["one"]);
    });
}

#[test]
fn k_120_a_listener_that_panics_is_one_that_failed() {
    kernel(async |test| {
        test.root.answer::<Ask>(async |_, _| panic!("broken")).unwrap();
        answer(&test.root, &test.journal, "two", Ok(Some("v")));

        let answer = test.root.serial::<Ask>(Rc::new(())).await;

        assert!(answer.unwrap_err().to_string().contains("broken"));
        assert_eq!(test.journal.lines(), Vec::<String>::new());
    });
}

/// Registers a listener that writes its name and answers.
fn answer(
    ctx: &Context,
    journal: &Journal,
    name: &'static str,
    answer: Result<Option<&'static str>, &'static str>,
) {
    let journal = journal.clone();
    let listener = async move |_, _| {
        journal.push(name);
        answer.map(|it| it.map(str::to_owned)).map_err(BoxError::from)
    };
    ctx.answer::<Ask>(listener).unwrap();
}

/// Registers a listener that writes its answer and gives it.
fn answer_json(ctx: &Context, journal: &Journal, answer: &Value) {
    let (journal, answer) = (journal.clone(), answer.clone());
    let listener = async move |_, _| {
        journal.push(answer.to_string());
        Ok(answer.clone())
    };
    ctx.answer::<AskJson>(listener).unwrap();
}
