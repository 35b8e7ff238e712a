//! What is said of a set of entries that is not complete.

use nano_cordis::cordis::What;

use super::stage::Stage;
use crate::support::kernel;

#[test]
fn k_057_two_that_wait_for_each_other_are_both_named_with_what_they_miss() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("a", test.probe("a").needs("b").gives("a").def());
        stage.module("b", test.probe("b").needs("a").gives("b").def());

        let loader = stage.start("[{ id: a, name: a }, { id: b, name: b }]").await.unwrap();

        assert_eq!(loader.problem().as_deref(), Some("`a` waits for `b`; `b` waits for `a`"));
    });
}

#[test]
fn a_chain_of_waits_ends_at_what_no_entry_provides() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("cli", test.probe("cli").needs("agentLoop").def());
        stage.module("agent-loop", test.probe("agent-loop").needs("llm").gives("agentLoop").def());

        let loader =
            stage.start("[{ id: cli, name: cli }, { id: loop, name: agent-loop }]").await.unwrap();

        let chain = "`cli` waits for `agentLoop`; `loop` waits for `llm`, which no entry provides";
        assert_eq!(loader.problem().as_deref(), Some(chain));
    });
}

#[test]
fn failures_are_named_before_the_waits_that_they_cause() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("loop", test.probe("loop").needs("llm").def());
        stage.module("llm", test.probe("llm").fails("no such host").gives("llm").def());

        let loader =
            stage.start("[{ id: loop, name: loop }, { id: llm, name: llm }]").await.unwrap();

        assert_eq!(test.reports.take_one().what, What::BodyFailed);
        let problem = "entry `llm`: no such host; `loop` waits for `llm`";
        assert_eq!(loader.problem().as_deref(), Some(problem));
    });
}

#[test]
fn an_optional_entry_may_fail_or_wait() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("waits", test.probe("waits").needs("x").def());

        let list =
            "[{ id: a, name: waits, optional: true }, { id: b, name: nobody, optional: true }]";
        let loader = stage.start(list).await.unwrap();

        assert_eq!(loader.problem(), None);
        assert_eq!(stage.told(), ["entry `b`: no plugin is named `nobody`"]);
    });
}

#[test]
fn while_a_change_is_applied_that_is_the_problem() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("slow", test.probe("slow").cleanup_delay(1000).def());
        let loader = stage.start("[{ id: a, name: slow }]").await.unwrap();
        stage.write("cordis.yml", "[]");

        loader.reload();
        crate::support::pass(10).await;

        assert_eq!(loader.problem().as_deref(), Some("cordis.yml is being applied"));
    });
}

#[test]
fn only_the_first_of_many_problems_are_shown() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("waits", test.probe("waits").needs("x").def());
        let list: Vec<_> = (0..100).map(|it| format!("- {{ id: e{it}, name: waits }}\n")).collect();

        let loader = stage.start(list.concat()).await.unwrap();

        let problem = loader.problem().unwrap();
        assert!(
            problem.starts_with("`e0` waits for `x`, which no entry provides; `e1` waits"),
            "{problem}"
        );
        assert!(problem.ends_with("; and 92 more"), "{problem}");
    });
}

#[test]
fn who_waits_after_a_save_is_named_once_with_what_may_have_been_meant() {
    kernel(async |test| {
        let stage = Stage::new(&test);
        stage.module("lamp", test.probe("lamp").gives("lamp").def());
        stage.module("user", test.probe("user").needs("lamp").def());
        stage.module("typo", test.probe("typo").needs("lamps").def());
        let [lamp, user, typo] =
            ["lamp", "user", "typo"].map(|it| format!("- {{ id: {it}, name: {it} }}\n"));
        stage.start(&format!("{lamp}{user}")).await.unwrap();

        let mut told = Vec::new();
        for list in
            [format!("{lamp}{user}{typo}"), format!("{lamp}{user}{typo}#"), format!("{user}{typo}")]
        {
            stage.save(list).await.unwrap();
            crate::support::pass(1).await;
            told.push(stage.told());
        }

        let hint = "`typo` waits for `lamps`, which no entry provides (did you mean `lamp`?)";
        assert_eq!(told[0], ["applied cordis.yml", hint]);
        assert_eq!(told[1], ["applied cordis.yml (no entry changed)"]);
        assert_eq!(
            told[2],
            ["applied cordis.yml", "`user` waits for `lamp`, which no entry provides"]
        );
    });
}
