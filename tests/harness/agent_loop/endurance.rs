//! Two hundred reloads of a whole agent: as many plugins and listeners as after twenty.

use nano_cordis::harness::builtins;

use super::composed::composed_in_real_time;

/// Every event of the agent and of the loader.
const EVENTS: [&str; 14] = [
    "agent/request",
    "approval/request",
    "assistant/delta",
    "console/signal",
    "cordis/notice",
    "llm-fake/request",
    "loader/applied",
    "loader/before-apply",
    "session/event",
    "shell/env",
    "tools/changed",
    "tools/post-execute",
    "tools/pre-execute",
    "trust/confirm",
];

#[test]
fn listeners_and_plugins_after_two_hundred_reloads_are_those_after_twenty() {
    let list = include_str!("../../fixtures/agent.cordis.yml");
    composed_in_real_time(list, builtins(), async |it| {
        let held = || {
            let plugins: Vec<_> =
                it.root.fibers().into_iter().map(|it| (it.path, it.state)).collect();
            (plugins, EVENTS.map(|event| it.root.listener_count(event)))
        };
        let reload = async |number: usize| {
            // Everything is unmounted and mounted: each entry has another id.
            it.save(&list.replace("- id: ", &format!("- id: v{number}-"))).await;
        };

        for number in 1..=20 {
            reload(number).await;
        }
        let (plugins, listeners) = held();
        for number in 21..=200 {
            reload(number).await;
        }
        let (plugins_later, listeners_later) = held();

        assert_eq!(listeners, listeners_later);
        assert_eq!(plugins.len(), plugins_later.len());
    });
}
