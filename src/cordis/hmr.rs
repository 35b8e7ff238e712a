//! Hmr: sees that a file was saved and tells the loader which.
//!
//! Needs `loader`. Raises `cordis/notice`. Listens to nothing, provides nothing.
//! Full-size counterpart: plugin-hmr, which follows the imports of a module as well. Here the files that the loader names
//! count, and nothing else.
//! Watch for: an event is only a reason to look. What counts is whether a file is another one than the loader last read,
//! so a lost event, a doubled one, or a save from before the watch began are no cases of their own. And: this plugin
//! never waits for the loader, because the loader may be waiting for it to stop.

mod changes;
mod watch;

use std::{
    any::Any,
    future::{pending, ready},
    rc::Rc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    sync::{
        mpsc::{self, Receiver, Sender},
        watch as state,
    },
    time::{Duration, Instant, sleep},
};

use self::changes::{Change, Kind, Memory};
pub use self::watch::{Places, System, Watch};
use super::{BoxError, Context, Loader, Notice, PluginDef, Svc};

/// How long a save may take, and how long busy writers can put off that it is seen.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often files are looked at where the system cannot watch.
const POLL: Duration = Duration::from_secs(1);

/// The config of the plugin.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// A save counts when nothing more has happened to the file for so long.
    #[serde(default = "default_debounce_ms")]
    debounce_ms: u64,
}

fn default_debounce_ms() -> u64 {
    100
}

/// The plugin, on the watcher of the system.
pub async fn apply(ctx: Context, config: Config, loader: Svc<Loader>) -> Result<(), BoxError> {
    follow(&ctx, &config, loader, Rc::new(System))
}

/// The plugin, on another watcher.
pub fn plugin(watch: Rc<dyn Watch>) -> PluginDef {
    let body = move |ctx: Context, config: Config, loader: Svc<Loader>| {
        ready(follow(&ctx, &config, loader, watch.clone()))
    };
    super::plugin(body).named("hmr")
}

fn follow(
    ctx: &Context,
    config: &Config,
    loader: Svc<Loader>,
    watch: Rc<dyn Watch>,
) -> Result<(), BoxError> {
    let (stirred, stirs) = mpsc::channel(1);
    let follower = Follower {
        relisted: loader.relisted(),
        loader,
        watch,
        stirred,
        stirs,
        debounce: Duration::from_millis(config.debounce_ms),
        places: Places::default(),
        watching: None,
        memory: Memory::default(),
    };
    ctx.spawn("watch", async move |_| follower.run().await)?;
    Ok(())
}

struct Follower {
    loader: Svc<Loader>,
    watch: Rc<dyn Watch>,
    stirred: Sender<()>,
    stirs: Receiver<()>,
    relisted: state::Receiver<()>,
    debounce: Duration,
    places: Places,
    watching: Option<Box<dyn Any>>,
    memory: Memory,
}

impl Follower {
    async fn run(mut self) {
        loop {
            // First the watch, then the look: what is saved between the two is seen by one of them.
            self.watch();
            for change in self.settle().await {
                self.tell(change);
            }
            self.next_reason().await;
        }
    }

    async fn next_reason(&mut self) {
        let poll = async {
            match &self.watching {
                None if !self.places.folders.is_empty() => sleep(POLL).await,
                _ => pending().await,
            }
        };
        tokio::select! {
            _ = self.stirs.recv() => {}
            _ = self.relisted.changed() => {}
            () = poll => {}
        }
    }

    /// Watches the folders that the files are in now: a link may have been turned, a module added.
    fn watch(&mut self) {
        let places = Places::of(&self.loader.watched());
        if places == self.places {
            return;
        }
        self.watching = match self.watch.start(&places, self.stirred.clone()) {
            Ok(watching) => Some(watching),
            Err(problem) => {
                let line =
                    format!("files cannot be watched ({problem}), so they are read every second");
                self.loader.ctx().emit(&Notice(line));
                None
            }
        };
        self.places = places;
    }

    /// What has changed, once nothing more happens to it. A file that is gone or empty is one that is being written.
    async fn settle(&mut self) -> Vec<Change> {
        let (begin, patience) = (Instant::now(), PATIENCE.max(self.debounce.saturating_mul(4)));
        let mut before = self.memory.changes(&self.loader);
        while !before.is_empty() {
            sleep(self.debounce).await;
            let now = self.memory.changes(&self.loader);
            let quiet = now == before && !now.iter().any(Change::is_unsettled);
            if quiet || begin.elapsed() >= patience {
                return now;
            }
            before = now;
        }
        before
    }

    fn tell(&mut self, change: Change) {
        match change.kind {
            Kind::Other => self.loader.saved(&change.path),
            // The same bytes are another try for what could not be loaded.
            Kind::Same => self.loader.reload(),
        }
        self.memory.keep(change);
    }
}
