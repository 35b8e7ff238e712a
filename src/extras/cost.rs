//! Cost: after each turn a line that says what it took: tokens, time, and money if there is a table of prices.
//!
//! Needs `session`. Listens to `session/event`. Raises `cordis/notice`.
//! Full-size counterpart: the token counters of the agent bundle, which know no money.
//! Watch for: what a service did not tell is unknown, and never 0. A request that failed may have cost as well, so it makes
//! the sum of its turn unknown.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;

use super::compaction::ASKED;
use crate::{
    cordis::{BoxError, Context, Notice, Svc},
    harness::{
        approval::pattern::fits,
        cli::{
            text::seconds,
            usage::{Usage, count},
        },
        session::{SessionEvent, Sessions, event::EventBody},
    },
};

/// Config of `cost`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// What the prices are in: a sign or a word.
    #[serde(default = "default_currency")]
    currency: String,
    /// The first one whose model fits counts; without any no money is named.
    #[serde(default)]
    prices: Vec<Price>,
}

fn default_currency() -> String {
    "$".into()
}

/// Of a million tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Price {
    /// Name of the model, in which `*` stands for any text.
    model: String,
    /// Of input that was not cached.
    #[schemars(range(min = 0.0))]
    input: f64,
    /// Of input that was; without it the same as of other input.
    #[schemars(range(min = 0.0))]
    cached: Option<f64>,
    /// Of output.
    #[schemars(range(min = 0.0))]
    output: f64,
}

/// The plugin.
pub async fn apply(ctx: Context, config: Config, _sessions: Svc<Sessions>) -> Result<(), BoxError> {
    let turns: RefCell<HashMap<String, Turn>> = RefCell::default();
    ctx.on(move |ctx, SessionEvent { session, event }: &SessionEvent| match &event.body {
        EventBody::TurnStart { .. } => {
            let turn = Turn { began: event.time, ..Turn::default() };
            turns.borrow_mut().insert(session.id().to_owned(), turn);
        }
        EventBody::StepStart { .. } => {
            let mut turns = turns.borrow_mut();
            turns.entry(session.id().to_owned()).and_modify(|it| it.requests += 1);
        }
        EventBody::Ignorable { kind, .. } if kind == ASKED => {
            if let Some(turn) = turns.borrow_mut().get_mut(session.id()) {
                turn.requests += 1;
            }
        }
        EventBody::AssistantMessage { usage, .. } | EventBody::CompactionSummary { usage, .. } => {
            let model = session.header().map(|it| it.model).unwrap_or_default();
            let usage = Usage::of(usage.as_ref());
            let money = config.money(&model, usage);
            if let Some(turn) = turns.borrow_mut().get_mut(session.id()) {
                turn.add(usage, money);
            }
        }
        EventBody::TurnEnd { .. } => {
            let turn = turns.borrow_mut().remove(session.id());
            if let Some(turn) = turn {
                ctx.emit(&Notice(turn.line(&config, event.time)));
            }
        }
        _ => {}
    })?;
    Ok(())
}

/// An amount, and whether it is certain or the most that it can be.
type Money = (f64, bool);

/// What a turn took so far.
#[derive(Default)]
struct Turn {
    began: u64,
    requests: u32,
    replies: u32,
    /// Nothing before the first reply.
    sum: Option<(Usage, Option<Money>)>,
}

impl Turn {
    fn add(&mut self, usage: Usage, money: Option<Money>) {
        self.replies += 1;
        let sum = match self.sum.take() {
            None => (usage, money),
            Some((before, paid)) => {
                let both = paid.zip(money).map(|(one, two)| (one.0 + two.0, one.1 && two.1));
                (before.plus(usage), both)
            }
        };
        self.sum = Some(sum);
    }

    fn line(&self, config: &Config, now: u64) -> String {
        let (usage, money) = match &self.sum {
            Some(sum) if self.replies == self.requests => *sum,
            _ => (Usage::default(), None),
        };
        let time = seconds(Duration::from_millis(now.saturating_sub(self.began)));
        let input = match (usage.input, usage.cached) {
            (Some(0), _) => "0".to_owned(),
            (Some(input), Some(cached)) => {
                let share = u128::from(cached.min(input)) * 100 / u128::from(input);
                format!("{} ({share} % cached)", count(input))
            }
            (Some(input), None) => format!("{} (? cached)", count(input)),
            (None, _) => "?".to_owned(),
        };
        let output = usage.output.map_or_else(|| "?".to_owned(), count);
        let money = if config.prices.is_empty() {
            String::new()
        } else {
            format!(", {}", config.shown(money))
        };
        format!("in {input}, out {output}, {time}{money}")
    }
}

impl Config {
    /// The price of one reply, if all is known that it takes.
    #[expect(clippy::cast_precision_loss, reason = "no reply has that many tokens")]
    fn money(&self, model: &str, usage: Usage) -> Option<Money> {
        let price = self.prices.iter().find(|it| fits(&it.model, model))?;
        let (input, output) = (usage.input?, usage.output?);
        let cached = usage.cached.unwrap_or_default().min(input);
        let of_cached = price.cached.unwrap_or(price.input);
        let amount = (input - cached) as f64 * price.input
            + cached as f64 * of_cached
            + output as f64 * price.output;
        // What is cached may only be cheaper.
        let is_certain = usage.cached.is_some() || price.cached.is_none();
        Some((amount / 1e6, is_certain))
    }

    fn shown(&self, money: Option<Money>) -> String {
        let gap = if self.currency.ends_with(char::is_alphanumeric) { " " } else { "" };
        let with = |amount: String| format!("{}{gap}{amount}", self.currency);
        match money {
            None => with("?".into()),
            Some((amount, is_certain)) => {
                let digits = if amount >= 1.0 { 2 } else { 4 };
                let sign = if is_certain { "" } else { "≤ " };
                format!("{sign}{}", with(format!("{amount:.digits$}")))
            }
        }
    }
}
