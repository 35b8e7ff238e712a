//! What plugin code leaves behind is foreign too: a panic when it is dropped is an error of its plugin, and of nobody else.

use std::future::Future;
use std::panic::{catch_unwind, panic_any, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task;
use std::task::Poll;

use serde_json::json;

use nano_cordis::cordis::{BoxError, Cleanup, Context, PluginDef, State, Undo, What};

use super::{assert_report_keeps, panic_in};
use crate::support::{Kept, Ping, Test, define, kernel, rest};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb")
    }
}

/// A future that keeps a bomb when it has ended, as no `async` block does.
struct Keeping<T> {
    _bomb: Bomb,
    polls: usize,
    output: Option<T>,
}

impl<T> Keeping<T> {
    fn ends_at(polls: usize, output: T) -> Self {
        Keeping { _bomb: Bomb, polls, output: Some(output) }
    }
}

impl<T: Unpin> Future for Keeping<T> {
    type Output = Result<T, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        if self.polls > 0 {
            self.polls -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.output.take().expect("it ends once")))
    }
}

async fn assert_alive(test: &Test) {
    let other = test.mount(&define("other", [], async |_| Ok(())));
    assert_eq!(other.ready().await.unwrap(), State::Active);
}

#[test]
fn k_225_a_plugin_that_panics_when_it_is_dropped_ends_all_the_same() {
    kernel(async |test| {
        let bomb = Bomb;
        let plugin = test.mount(&define("p", [], async move |_| {
            let _bomb = &bomb;
            Ok(())
        }));
        plugin.ready().await.unwrap();

        plugin.dispose().await;
        rest().await;

        let report = test.reports.take_one();
        assert_eq!((report.plugin.as_str(), &report.what), ("p", &What::CleanupFailed));
        assert_report_keeps(&report, "bomb");
        assert_alive(&test).await;
    });
}

#[test]
fn k_225_a_body_that_panics_when_it_is_dropped_has_failed() {
    for polls in [0, 2] {
        kernel(async |test| {
            let def = PluginDef::dynamic("p", &json!([]), None, move |_, _| {
                Box::pin(Keeping::ends_at(polls, None::<Cleanup>))
            });
            let plugin = test.mount(&def.unwrap());

            let failure = plugin.ready().await.unwrap_err();

            assert_eq!(panic_in(&failure).message, "bomb");
            assert_eq!(test.reports.take_one().what, What::BodyFailed);
            assert_alive(&test).await;
        });
    }
}

#[test]
fn k_225_a_cleanup_that_panics_when_it_is_dropped_has_failed() {
    for polls in [0, 2] {
        kernel(async |test| {
            let (ctx, plugin) = test.host("p").await;
            ctx.effect(|| Cleanup::future(move || Keeping::ends_at(polls, ()))).unwrap();

            plugin.dispose().await;

            assert_report_keeps(&test.reports.take_one(), "bomb");
            assert_alive(&test).await;
        });
    }
}

#[test]
fn k_225_a_task_that_panics_when_it_is_aborted_is_one_report() {
    kernel(async |test| {
        let (ctx, plugin) = test.host("p").await;
        let task = async |_| {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        };
        ctx.spawn("task", task).unwrap();
        rest().await;

        plugin.dispose().await;

        assert!(test.reports.take_one().to_string().contains("bomb"));
    });
}

#[test]
fn k_225_a_listener_that_undoes_itself_and_panics_when_it_is_dropped_is_one_report() {
    kernel(async |test| {
        let (own, bomb) = (Kept::<Undo>::default(), Bomb);
        let undo = own.clone();
        let listener = move |_: &Context, _: &Ping| {
            let _bomb = &bomb;
            drop(undo.last().call());
        };
        own.keep(test.root.on(listener).unwrap());

        test.root.emit(&Ping);

        assert_report_keeps(&test.reports.take_one(), "bomb");
    });
}

#[test]
fn k_225_what_a_panic_carries_may_panic_when_it_is_dropped() {
    kernel(async |test| {
        let plugin = test.mount(&define("p", [], async |_| panic_any(Bomb)));

        let failure = plugin.ready().await.unwrap_err();

        assert_eq!(panic_in(&failure).message, "a panic without a message");
        assert_report_keeps(&test.reports.take_one(), "a panic without a message");
        assert_alive(&test).await;
    });
}

/// The place of a panic that was resumed is not known; that of one that was caught before is another's.
#[test]
fn k_225_a_panic_that_is_resumed_is_told_in_its_own_words() {
    kernel(async |test| {
        let plugin = test.mount(&define("p", [], async |_| {
            let caught = catch_unwind(|| panic!("caught before"));
            assert!(caught.is_err());
            resume_unwind(Box::new("resumed"))
        }));

        let failure = plugin.ready().await.unwrap_err();

        assert_eq!(panic_in(&failure).to_string(), "panicked: resumed");
        test.reports.take_one();
    });
}

/// What a plugin provided is dropped when it is withdrawn, and not before its users have stopped.
#[test]
fn k_225_a_service_that_panics_when_it_is_dropped_is_a_cleanup_that_failed() {
    kernel(async |test| {
        let (ctx, provider) = test.host("provider").await;
        ctx.provide_named("x", Rc::new(Bomb)).unwrap();
        let consumer = test.mount(&define("consumer", ["x"], async |_| Ok(())));
        consumer.ready().await.unwrap();

        provider.dispose().await;

        let report = test.reports.take_one();
        assert_eq!((report.plugin.as_str(), &report.what), ("provider", &What::CleanupFailed));
        assert_eq!(consumer.state(), State::Pending);
    });
}
