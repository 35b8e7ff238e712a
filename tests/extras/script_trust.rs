//! A script that changes while a turn runs may be the agent's own: it is not run without a person's yes.

use std::{cell::RefCell, rc::Rc};

use nano_cordis::harness::{
    approval::Answer,
    trust::{Confirm, ConfirmChange, Trust},
};

use crate::script::{App, run, tool};

/// A script with an import, in a list that trust watches over.
async fn start(app: &App) -> Rc<Trust> {
    Trust::watch(&app.root).unwrap();
    app.write("lib.ts", "export const what = 'mine'");
    app.write("probe.ts", format!("import {{ what }} from './lib.ts'\n{}", tool("return what")));
    app.start(&["./probe.ts"]).await;
    app.root.get::<Trust>().unwrap().shared()
}

/// From now on a person says yes; gives what was asked.
fn say_yes(app: &App) -> Rc<RefCell<Vec<String>>> {
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let questions = asked.clone();
    let answer = async move |_, it: Rc<Confirm>| {
        questions.borrow_mut().push(it.text.clone());
        Ok(Some(Answer::Yes))
    };
    app.root.answer::<ConfirmChange>(answer).unwrap();
    asked
}

#[test]
fn an_import_that_is_saved_in_a_turn_is_not_run_without_a_yes() {
    run(async |app| {
        let trust = start(app).await;
        let turn = trust.turn();
        app.write("lib.ts", "export const what = 'the agent\\'s'");
        let told = app.hears("not applied").await;
        let said = app.call("probe").await;
        drop(turn);
        let asked = say_yes(app);
        app.write("lib.ts", "export const what = 'read by a person'");
        app.hears("reloaded ./probe.ts").await;

        assert!(
            told[0].contains("changed while a turn ran: `s0` would run ./probe.ts"),
            "{told:?}"
        );
        assert_eq!(said, "mine");
        assert_eq!(
            *asked.borrow(),
            ["./probe.ts changed while a turn ran: `s0` would run ./probe.ts"]
        );
    });
}

#[test]
fn one_that_was_saved_with_a_fault_in_a_turn_is_asked_about_when_it_is_mended() {
    run(async |app| {
        let trust = start(app).await;
        let turn = trust.turn();
        app.write("lib.ts", "export const what = ; steal()");
        app.hears("lib.ts:1:").await;
        drop(turn);
        let asked = say_yes(app);
        app.write("lib.ts", "export const what = 'mended'; // steal()");
        app.hears("reloaded ./probe.ts").await;

        assert_eq!(asked.borrow().len(), 1);
    });
}

#[test]
fn one_that_is_saved_when_no_turn_runs_is_nobody_elses() {
    run(async |app| {
        let trust = start(app).await;
        drop(trust.turn());

        app.write("lib.ts", "export const what = 'mine again'");
        app.hears("reloaded ./probe.ts").await;
    });
}
