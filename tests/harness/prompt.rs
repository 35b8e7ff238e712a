//! The system prompt and its sections.

use nano_cordis::harness::prompt::{Prompt, PromptError};
use serde_json::json;

use crate::support::run;

#[test]
fn h_142_sections_come_in_ascending_order_and_ties_by_name() {
    run(async |app| {
        app.mount("prompt", json!({ "persona": "first" })).await;
        let prompt = app.service::<Prompt>();

        prompt.section("late", 20, "fourth").unwrap();
        prompt.section("b", 10, "third").unwrap();
        prompt.section("a", 10, "second").unwrap();

        assert_eq!(prompt.render(), "first\n\nsecond\n\nthird\n\nfourth");
    });
}

#[test]
fn h_143_an_empty_section_leaves_no_gap() {
    run(async |app| {
        app.mount("prompt", json!({ "persona": "" })).await;
        let prompt = app.service::<Prompt>();

        prompt.section("blank", 1, " \n").unwrap();
        prompt.section("one", 2, "one\n\n").unwrap();
        prompt.section("two", 3, "\ntwo").unwrap();

        assert_eq!(prompt.render(), "one\n\ntwo");
    });
}

#[test]
fn h_144_a_section_goes_with_the_plugin_that_added_it() {
    run(async |app| {
        app.mount("prompt", json!({ "persona": "stays" })).await;
        let prompt = app.caller::<Prompt>("guest").await;
        prompt.section("guest", 1, "goes").unwrap();
        let before = prompt.render();

        app.unmount("guest").await;

        assert_eq!((before.as_str(), prompt.render().as_str()), ("stays\n\ngoes", "stays"));
    });
}

#[test]
fn h_145_a_second_section_of_a_name_is_refused() {
    run(async |app| {
        app.mount("prompt", json!({ "persona": "me" })).await;
        let prompt = app.service::<Prompt>();
        prompt.section("tools", 100, "first").unwrap();

        let second = prompt.section("tools", 5, "second");

        assert!(matches!(second, Err(PromptError::Duplicate { name }) if name == "tools"));
        assert_eq!(prompt.render(), "me\n\nfirst");
    });
}

#[test]
fn h_146_the_persona_of_the_config_is_in_the_prompt() {
    run(async |app| {
        app.mount("prompt", json!({ "persona": "You are a pirate." })).await;

        let text = app.service::<Prompt>().render();

        assert_eq!(text, "You are a pirate.");
    });
}

#[test]
fn without_a_persona_there_is_a_short_one() {
    run(async |app| {
        app.mount("prompt", json!({})).await;

        let text = app.service::<Prompt>().render();

        assert!((40..400).contains(&text.len()), "{text}");
    });
}
