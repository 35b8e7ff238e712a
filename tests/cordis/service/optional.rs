//! Optional needs: declared, never waited for, read at each use.

use std::cell::RefCell;
use std::rc::Rc;

use nano_cordis::cordis::{BoxError, Context, Optional, PluginDef, plugin};
use serde_json::Value;

use super::{Desk, mount, mount_desk};
use crate::support::{Journal, kernel, rest};

type Kept = Rc<RefCell<Option<Optional<Desk>>>>;

/// A plugin that may use the desk: it writes each start and keeps its need.
fn guest(journal: &Journal, kept: &Kept) -> PluginDef {
    let (journal, kept) = (journal.clone(), kept.clone());
    let body = move |_: Context, _: Value, desk: Optional<Desk>| {
        journal.push("start");
        kept.replace(Some(desk));
        async { Ok::<(), BoxError>(()) }
    };
    plugin(body).named("guest")
}

#[test]
fn k_221_an_optional_need_is_declared_and_not_waited_for() {
    kernel(async |test| {
        let kept = Kept::default();
        let def = guest(&test.journal, &kept);

        let guest = mount(&test, def.clone()).await;

        let [need] = def.needs() else { panic!("one need") };
        assert_eq!((&*need.name, need.required), ("desk", false));
        assert_eq!(guest.state().to_string(), "ACTIVE");
        assert!(kept.take().unwrap().get().is_none());
    });
}

#[test]
fn k_221_an_optional_service_that_comes_and_goes_is_seen_without_a_restart() {
    kernel(async |test| {
        let kept = Kept::default();
        let guest = mount(&test, guest(&test.journal, &kept)).await;
        let need = kept.take().unwrap();

        let front = mount_desk(&test, []).await;
        rest().await;
        let there = need.get().is_some();
        front.dispose().await;
        rest().await;
        let gone = need.get().is_none();
        mount_desk(&test, []).await;
        rest().await;

        assert!(there && gone && need.get().is_some());
        assert_eq!(guest.state().to_string(), "ACTIVE");
        assert_eq!(test.journal.lines(), ["start"]);
    });
}

#[test]
fn k_221_the_view_of_an_optional_service_belongs_to_the_caller() {
    kernel(async |test| {
        let kept = Kept::default();
        mount_desk(&test, []).await;
        let guest = mount(&test, guest(&test.journal, &kept)).await;
        let desk = kept.take().unwrap().get().unwrap();
        let before = guest.effect_count();

        super::AtDesk::sign_up(&desk, "guest").unwrap();
        let registered = guest.effect_count();
        guest.dispose().await;

        assert_eq!(registered, before + 1);
        assert_eq!(desk.names(), Vec::<String>::new());
    });
}
