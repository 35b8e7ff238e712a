//! Approval rules: what is allowed, asked about or denied without a question each time, and a yes that is remembered.
//!
//! Needs `tools`. Provides `approvalMemory`. Listens to `tools/pre-execute`, `approval/request`, `loader/applied`. Raises
//! `approval/request`, `cordis/notice` and `cordis/warning`.
//! Full-size counterpart: the permission rules of the user-approval package.
//! Watch for: rules are a guard-rail and not a wall. `deny` beats `ask`, which beats `allow`; and an allowed call is one
//! whose question is answered here, so whoever else denies it or must ask is not passed by.

mod always;
mod command;
mod coverage;
mod remembered;
mod rule;

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;

use self::{
    command::Command,
    remembered::Remembered,
    rule::{Fit, Rule},
};
use crate::{
    cordis::{BoxError, Context, Next, Notice, Svc},
    extras::asking::Asking,
    harness::{
        approval::{Answer, ApprovalRequest, Memory, Remember},
        tools::{Call, Order, PreExecute, Tools, Verdict},
    },
};

/// Before all who ask a person, behind those who only notice.
const BEFORE_PEOPLE: i32 = i32::MIN + 1;
/// What a command may be given beside its words and still be the command that a rule allows.
const HARMLESS: [&str; 2] = ["command", "timeoutMs"];

/// Config of `approval-rules`. A rule is `TOOL` or `TOOL: WORDS`; a `*` as the last word stands for any further ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Lists")]
#[schemars(!try_from, rename = "Config")]
pub struct Config {
    /// Calls that run unasked.
    #[serde(default)]
    allow: Vec<Rule>,
    /// Calls that a person is asked about each time, also if `approval` would not ask.
    #[serde(default)]
    ask: Vec<Rule>,
    /// Calls that are refused.
    #[serde(default)]
    deny: Vec<Rule>,
}

/// The same as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Lists {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
}

impl TryFrom<Lists> for Config {
    type Error = String;

    fn try_from(Lists { allow, ask, deny }: Lists) -> Result<Self, String> {
        let pairs = [
            ("allow", &allow, "deny", &deny),
            ("allow", &allow, "ask", &ask),
            ("ask", &ask, "deny", &deny),
        ];
        for (one, rules, other, others) in pairs {
            if let Some(rule) = rules.iter().find(|it| others.contains(it)) {
                return Err(format!(
                    "`{rule}` is in `{one}` and in `{other}`; take one of them out"
                ));
            }
        }
        let line = |rule: &Rule| rule.line.as_ref().and_then(|it| always::in_words(&it.words));
        match allow.iter().find_map(|rule| Some((rule, line(rule)?))) {
            Some((rule, name)) => {
                Err(format!("allow: `{rule}` would never hold: `{name}` always asks"))
            }
            None => Ok(Self { allow, ask, deny }),
        }
    }
}

impl Config {
    fn all(&self) -> impl Iterator<Item = &Rule> {
        self.allow.iter().chain(&self.ask).chain(&self.deny)
    }
}

/// The plugin. It decides before anybody is asked, and answers before a person does.
pub async fn apply(ctx: Context, config: Config, tools: Svc<Tools>) -> Result<(), BoxError> {
    let config = Rc::new(config);
    coverage::watch(&ctx, &config, tools.clone())?;
    let asking = Asking::watch(&ctx)?;
    let rules = Rc::new(Rules { config, tools, remembered: Rc::default() });
    ctx.provide::<dyn Memory>(rules.clone())?;
    let answers = rules.clone();
    ctx.intercept_at::<PreExecute>(Order::DECIDING, async move |ctx, call, next| {
        rules.decide(&ctx, &asking, call, next).await
    })?;
    ctx.answer_at::<ApprovalRequest>(BEFORE_PEOPLE, async move |_, call| {
        Ok(answers.allows(&call).then_some(Answer::Yes))
    })?;
    Ok(())
}

struct Rules {
    config: Rc<Config>,
    tools: Svc<Tools>,
    remembered: Rc<Remembered>,
}

/// What follows from the rules for a call.
enum Ruling {
    Deny(String),
    /// A person is asked each time: why.
    Ask(String),
    /// A person is asked once.
    Unclear,
    Allow,
    /// Nothing: it is as if there were no rules.
    Open,
}

impl Rules {
    fn allows(&self, call: &Call) -> bool {
        !call.must_ask.get() && matches!(self.ruling(call), Ruling::Allow)
    }

    async fn decide(
        &self,
        ctx: &Context,
        asking: &Asking,
        call: Rc<Call>,
        next: Next<PreExecute>,
    ) -> Result<Verdict, BoxError> {
        // A call with a problem never runs, so there is nothing to rule.
        if call.problem.is_some() {
            return next.run().await;
        }
        match self.ruling(&call) {
            Ruling::Deny(why) => {
                let advice = "do not try the same in another way, ask the user how to go on";
                return Ok(Verdict::Deny(format!("{why}; {advice}")));
            }
            Ruling::Ask(why) => {
                ctx.emit(&Notice(format!("approval-rules: {why}")));
                call.must_ask.set(true);
                asking.wants(&call, why);
            }
            Ruling::Unclear => asking.wants(&call, "the rules cannot tell what it does".into()),
            Ruling::Allow | Ruling::Open => {}
        }
        next.run().await
    }

    fn ruling(&self, call: &Call) -> Ruling {
        let command = command_of(call);
        let best = |rules| best(rules, call, command.as_ref());
        let (denied, asked) = (best(&self.config.deny), best(&self.config.ask));
        match (denied, asked) {
            (Some((Fit::Yes, rule)), _) => {
                Ruling::Deny(format!("the rule `{rule}` denies this call"))
            }
            (_, Some((Fit::Yes, rule))) => {
                Ruling::Ask(format!("the rule `{rule}` has it asked about"))
            }
            (denied, asked) => {
                let found = denied.into_iter().chain(asked);
                let likely = found.filter(|it| it.0 == Fit::Maybe).map(|it| it.1).next();
                self.in_doubt(call, command.as_ref(), likely)
            }
        }
    }

    /// No rule denies for certain, and none asks.
    fn in_doubt(&self, call: &Call, command: Option<&Command>, likely: Option<&Rule>) -> Ruling {
        if let Some(name) = command.and_then(always::asks) {
            return Ruling::Ask(format!("`{name}` is always asked about"));
        }
        if let Some(rule) = likely {
            return Ruling::Ask(format!("it may do what the rule `{rule}` is about"));
        }
        let Config { allow, ask, deny } = &*self.config;
        let is_ruled = ask.iter().chain(deny).any(|it| it.line.is_some() && it.is_of(&call.name));
        match command {
            _ if self.remembered.has(call, &self.tools) => Ruling::Allow,
            Some(command) if is_ruled && !command.is_clear => Ruling::Unclear,
            _ if allow.iter().any(|it| allows(it, call, command)) => Ruling::Allow,
            _ => Ruling::Open,
        }
    }
}

impl Memory for Rules {
    fn offer(&self, call: &Call) -> Option<Remember> {
        let remember = self.remembered.offer(call, &self.tools).filter(|_| !call.must_ask.get())?;
        let (ctx, name) = (self.tools.ctx().clone(), call.name.clone());
        Some(Box::new(move || {
            remember();
            let line =
                format!("exactly this call of `{name}` is not asked about again in this session");
            ctx.emit(&Notice(line));
        }))
    }
}

/// The rule that fits best.
fn best<'a>(rules: &'a [Rule], call: &Call, command: Option<&Command>) -> Option<(Fit, &'a Rule)> {
    let about = rules.iter().filter(|it| it.is_of(&call.name));
    about.map(|it| (it.fit(command), it)).max_by_key(|it| it.0)
}

/// The command of a call, if it has any. One that is no text says nothing to a rule.
fn command_of(call: &Call) -> Option<Command> {
    let command = call.arguments.get("command")?;
    Some(Command::read(command.as_str().unwrap_or("$")))
}

// Another folder makes another command of the same words.
fn allows(rule: &Rule, call: &Call, command: Option<&Command>) -> bool {
    let is_alone = || call.arguments.keys().all(|it| HARMLESS.contains(&it.as_str()));
    rule.is_of(&call.name) && rule.allows(command) && (rule.line.is_none() || is_alone())
}
