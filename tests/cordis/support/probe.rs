//! Plugins for tests: one that does what its body says, one that says when it starts and stops.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use nano_cordis::cordis::{BoxError, Cleanup, Context, Error, Mount, PluginDef, Undo};

use super::{Gate, Journal};

/// The service behind every name that a probe gives; it says who provided it.
pub(crate) struct Label(pub(crate) String);

/// Provides a [`Label`] under a name.
pub(crate) fn give(ctx: &Context, name: &str, label: &str) -> Result<Undo, Error> {
    ctx.provide_named(name, Rc::new(Label(label.to_owned())))
}

/// The checked read of a [`Label`].
pub(crate) fn read(ctx: &Context, name: &str) -> Result<String, Error> {
    Ok(ctx.service_named::<Label>(name)?.0.clone())
}

/// The optional read of a [`Label`].
pub(crate) fn get(ctx: &Context, name: &str) -> Option<String> {
    Some(ctx.get_named::<Label>(name)?.0.clone())
}

/// A plugin that needs services by name and does what its body says.
pub(crate) fn define<const N: usize>(
    name: &str,
    needs: [&str; N],
    body: impl AsyncFn(Context) -> Result<(), BoxError> + 'static,
) -> PluginDef {
    let body = Rc::new(body);
    PluginDef::dynamic(name, &json!(needs.to_vec()), None, move |ctx, _config| {
        let body = body.clone();
        Box::pin(async move { body(ctx).await.map(|()| None) })
    })
    .expect("a list of names")
}

/// A plugin for tests: says when it starts and stops, needs and gives labels, waits at gates, fails on request.
///
/// It writes `name start` first thing in its body and `name stop` in its cleanup. A cleanup that takes time writes
/// `name stopping` before and `name stop` after. It registers the cleanup first, so that it is the last to be undone.
#[derive(Clone)]
pub(crate) struct Probe {
    name: String,
    journal: Journal,
    needs: Vec<String>,
    gives: Vec<String>,
    body_gate: Option<Gate>,
    cleanup_gate: Option<Gate>,
    cleanup_delay: Duration,
    failure: Option<String>,
}

impl Probe {
    pub(crate) fn new(name: &str, journal: &Journal) -> Probe {
        Probe {
            name: name.to_owned(),
            journal: journal.clone(),
            needs: Vec::new(),
            gives: Vec::new(),
            body_gate: None,
            cleanup_gate: None,
            cleanup_delay: Duration::ZERO,
            failure: None,
        }
    }

    pub(crate) fn needs(mut self, service: &str) -> Probe {
        self.needs.push(service.to_owned());
        self
    }

    /// Provides a label with the name of the probe, from the start of its body on.
    pub(crate) fn gives(mut self, service: &str) -> Probe {
        self.gives.push(service.to_owned());
        self
    }

    /// After everything is registered its body waits here.
    pub(crate) fn body_gate(mut self, gate: &Gate) -> Probe {
        self.body_gate = Some(gate.clone());
        self
    }

    pub(crate) fn cleanup_gate(mut self, gate: &Gate) -> Probe {
        self.cleanup_gate = Some(gate.clone());
        self
    }

    pub(crate) fn cleanup_delay(mut self, milliseconds: u64) -> Probe {
        self.cleanup_delay = Duration::from_millis(milliseconds);
        self
    }

    /// Its body ends with this error.
    pub(crate) fn fails(mut self, message: &str) -> Probe {
        self.failure = Some(message.to_owned());
        self
    }

    pub(crate) fn def(self) -> PluginDef {
        let needs = json!(self.needs);
        let name = self.name.clone();
        PluginDef::dynamic(&name, &needs, None, move |ctx, _config| {
            Box::pin(self.clone().start(ctx))
        })
        .expect("a list of names")
    }

    pub(crate) fn mount(self, ctx: &Context) -> Mount {
        ctx.plugin(&self.def(), Value::Null).expect("the context of a running plugin")
    }

    async fn start(self, ctx: Context) -> Result<Option<Cleanup>, BoxError> {
        self.journal.push(format!("{} start", self.name));
        let cleanup = self.clone();
        ctx.effect(move || cleanup.cleanup())?;
        for service in &self.gives {
            give(&ctx, service, &self.name)?;
        }
        if let Some(gate) = &self.body_gate {
            gate.pass().await;
        }
        match self.failure {
            Some(message) => Err(message.into()),
            None => Ok(None),
        }
    }

    fn cleanup(self) -> Cleanup {
        if self.cleanup_gate.is_none() && self.cleanup_delay.is_zero() {
            let stop = self.journal.line(&format!("{} stop", self.name));
            return Cleanup::sync(|| {
                stop();
                Ok(())
            });
        }
        Cleanup::future(async move || {
            self.stop_slowly().await;
            Ok(())
        })
    }

    async fn stop_slowly(self) {
        self.journal.push(format!("{} stopping", self.name));
        sleep(self.cleanup_delay).await;
        if let Some(gate) = &self.cleanup_gate {
            gate.pass().await;
        }
        self.journal.push(format!("{} stop", self.name));
    }
}
