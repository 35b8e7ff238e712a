//! Scripts that the agent may have written: what cannot be loaded when it is saved stays suspect until it is mended.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;

use nano_cordis::cordis::loader::{self, LoadError};
use nano_cordis::cordis::{
    Applied, Context, Loader, LoaderOptions, ModuleError, ModuleKey, ModuleSource, PluginDef,
};
use nano_cordis::harness::approval::Answer;
use nano_cordis::harness::trust::{Acting, Confirm, ConfirmChange, Trust};

use crate::agent_loop::rig::{kernel, mount};

/// Scripts: each is its file and what the lines `import …` of it name. One that says `broken` cannot be loaded.
struct Scripts {
    folder: PathBuf,
    started: Rc<RefCell<Vec<String>>>,
}

impl ModuleSource for Scripts {
    fn resolve(&self, name: &str, _base: &Path) -> Result<ModuleKey, ModuleError> {
        Ok(ModuleKey(name.into()))
    }

    fn load(&self, key: &ModuleKey) -> Result<PluginDef, ModuleError> {
        let texts =
            self.files(key).into_iter().map(|it| fs::read_to_string(it).unwrap_or_default());
        let text = texts.collect::<Vec<_>>().join(" + ");
        if text.contains("broken") {
            let (name, problem) = (key.to_string(), "it is broken".to_owned());
            return Err(ModuleError::Broken { name, problem });
        }
        let started = self.started.clone();
        let body = move |_, _| {
            started.borrow_mut().push(text.clone());
            Box::pin(async { Ok(None) }) as _
        };
        Ok(PluginDef::dynamic(&key.0, &json!([]), None, body).unwrap())
    }

    fn files(&self, key: &ModuleKey) -> Vec<PathBuf> {
        let file = self.folder.join(&*key.0);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let imports = text.lines().filter_map(|it| it.strip_prefix("import "));
        imports.map(|it| self.folder.join(it)).chain([file.clone()]).collect()
    }
}

/// A list of one script, and a person who says no until told otherwise.
struct Desk {
    root: Context,
    folder: TempDir,
    started: Rc<RefCell<Vec<String>>>,
    asked: Rc<RefCell<Vec<String>>>,
    says_yes: Rc<Cell<bool>>,
}

fn desk(script: &str, test: impl AsyncFnOnce(Desk)) {
    kernel(Builder::new_current_thread().enable_all().start_paused(true), async |root, _| {
        let folder = tempfile::tempdir().unwrap();
        let (started, asked) = (Rc::<RefCell<_>>::default(), Rc::<RefCell<Vec<String>>>::default());
        Trust::watch(&root).unwrap();
        let says_yes = Rc::new(Cell::new(false));
        let (questions, yes) = (asked.clone(), says_yes.clone());
        let answer = async move |_, it: Rc<Confirm>| {
            questions.borrow_mut().push(it.text.clone());
            Ok(Some(if yes.get() { Answer::Yes } else { Answer::No }))
        };
        root.answer::<ConfirmChange>(answer).unwrap();
        fs::write(folder.path().join("x.ts"), script).unwrap();
        let modules = Scripts { folder: folder.path().to_owned(), started: started.clone() };
        let options = LoaderOptions {
            file: Some(folder.path().join("cordis.yml")),
            text: "",
            modules: Rc::new(modules),
            env: Rc::new(|_| None),
            set: Vec::new(),
            disable: Vec::new(),
        };
        fs::write(folder.path().join("cordis.yml"), "- {id: x, name: x.ts, optional: true}")
            .unwrap();
        mount(&root, "loader", &loader::plugin(options), Value::Null).await;
        let desk = Desk { root, folder, started, asked, says_yes };
        desk.loader().applied().await.unwrap();
        test(desk).await;
    });
}

impl Desk {
    fn loader(&self) -> Rc<Loader> {
        self.root.get::<Loader>().unwrap().shared()
    }

    fn turn(&self) -> Acting {
        self.root.get::<Trust>().unwrap().shared().turn()
    }

    /// Writes a file, and does not say so.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    async fn save(&self, name: &str, text: &str) -> Result<Applied, LoadError> {
        self.write(name, text);
        self.loader().saved(&self.folder.path().join(name));
        let outcome = self.loader().applied().await;
        // The clock is paused, so this is over when all else is: what was applied has been told.
        tokio::time::sleep(Duration::from_millis(1)).await;
        outcome
    }
}

#[test]
fn d_22_a_script_saved_with_a_fault_during_a_turn_is_asked_about_when_it_is_mended_after_it() {
    desk("one", async |desk| {
        let turn = desk.turn();
        desk.save("x.ts", "broken two").await.unwrap();
        drop(turn);
        let is_behind = desk.loader().is_behind();

        let mended = desk.save("x.ts", "three").await;

        assert!(is_behind && mended.is_err());
        assert_eq!(*desk.asked.borrow(), ["x.ts changed while a turn ran: `x` would run x.ts"]);
        assert_eq!(*desk.started.borrow(), ["one"]);
    });
}

#[test]
fn d_22_the_same_holds_for_a_script_of_which_nothing_runs_and_for_what_a_script_takes_in() {
    for (script, file) in [("broken", "x.ts"), ("import y.ts\none", "y.ts")] {
        desk(script, async |desk| {
            let started = desk.started.take();
            let turn = desk.turn();
            desk.save(file, "broken two").await.unwrap();
            drop(turn);

            let mended = desk.save(file, "three").await;

            assert!(mended.is_err(), "{started:?}");
            assert_eq!((desk.asked.borrow().len(), desk.started.borrow().len()), (1, 0));
        });
    }
}

#[test]
fn d_22_it_stays_suspect_over_further_faults_and_turns_until_a_yes() {
    desk("one", async |desk| {
        let turn = desk.turn();
        desk.save("x.ts", "broken two").await.unwrap();
        drop(turn);
        desk.save("x.ts", "broken three").await.unwrap();
        drop(desk.turn());

        let refused = desk.save("x.ts", "four").await;
        desk.says_yes.set(true);
        desk.save("x.ts", "five").await.unwrap();
        desk.save("x.ts", "six").await.unwrap();

        assert!(refused.is_err() && desk.asked.borrow().len() == 2);
        assert_eq!(*desk.started.borrow(), ["one", "five", "six"]);
    });
}

#[test]
fn d_22_a_script_that_the_user_broke_and_mends_is_not_asked_about_whatever_turns_ran_between() {
    for script in ["one", "broken one"] {
        desk(script, async |desk| {
            desk.save("x.ts", "broken two").await.unwrap();
            drop(desk.turn());

            desk.save("x.ts", "three").await.unwrap();

            assert!(desk.asked.borrow().is_empty() && !desk.loader().is_behind());
            assert_eq!(desk.started.borrow().last().unwrap(), "three");
        });
    }
}

#[test]
fn d_22_a_fault_that_was_not_noticed_before_the_turn_ended_counts_as_made_in_it() {
    desk("one", async |desk| {
        let turn = desk.turn();
        desk.write("x.ts", "broken two");
        drop(turn);
        desk.save("x.ts", "broken two").await.unwrap();

        let mended = desk.save("x.ts", "three").await;

        assert!(mended.is_err() && desk.asked.borrow().len() == 1);
    });
}
