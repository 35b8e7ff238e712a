//! What the tests of scripts share: a folder with scripts, and an agent that they run in.
//!
//! A script runs on a thread, so the clock is the real one: nothing here waits for time, everything for an event.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use nano_cordis::{
    cordis::{
        Builtins, Context, Loader, LoaderOptions, ModuleSource, Mount, Notice, PluginDef, Svc,
        Warning, hmr, loader, plugin,
    },
    extras::script::Scripts,
    harness::tools::{self, Tools},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{runtime::Builder, sync::Notify, task::LocalSet, time::timeout};

use crate::shared::call;

/// Whatever a test waits for comes sooner.
const FOREVER: Duration = Duration::from_mins(5);

/// Runs a test in a kernel of its own, and takes that down in order.
pub(crate) fn run(test: impl AsyncFnOnce(&App)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let app = App::new();
        timeout(FOREVER, Box::pin(test(&app))).await.expect("something waits for ever");
        let end = app.root.shutdown(FOREVER).await;
        assert_eq!(end.hung, Vec::<String>::new());
        assert_eq!(*app.reports.borrow(), [""; 0], "reports that the test did not expect");
    });
}

/// What a test works with.
pub(crate) struct App {
    pub(crate) root: Context,
    folder: TempDir,
    reports: Rc<RefCell<Vec<String>>>,
    told: Rc<RefCell<Vec<String>>>,
    heard: Rc<Notify>,
    mount: RefCell<Option<Mount>>,
}

impl App {
    fn new() -> Self {
        let reports: Rc<RefCell<Vec<String>>> = Rc::default();
        let (told, heard): (Rc<RefCell<Vec<String>>>, Rc<Notify>) = (Rc::default(), Rc::default());
        let (seen, bell) = (reports.clone(), heard.clone());
        let root = Context::root_with(move |report| {
            seen.borrow_mut().push(report.to_string());
            bell.notify_waiters();
        });
        let hear = {
            let (told, heard) = (told.clone(), heard.clone());
            move |line: &String| {
                told.borrow_mut().push(line.clone());
                heard.notify_waiters();
            }
        };
        let warned = hear.clone();
        root.on(move |_: &Context, Notice(line): &Notice| hear(line)).unwrap();
        root.on(move |_: &Context, Warning(line): &Warning| warned(line)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { root, folder, reports, told, heard, mount: RefCell::default() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A list with `tools` and these scripts; hmr with a short debounce. Mounts it.
    pub(crate) async fn start(&self, scripts: &[&str]) -> Svc<Loader> {
        self.try_start(scripts).await.unwrap()
    }

    pub(crate) async fn try_start(&self, scripts: &[&str]) -> Result<Svc<Loader>, String> {
        self.start_on(&list(scripts)).await
    }

    /// Writes this list and mounts it.
    pub(crate) async fn start_on(&self, list: &str) -> Result<Svc<Loader>, String> {
        self.write("cordis.yml", list);
        let file = Some(self.file("cordis.yml"));
        let options = LoaderOptions {
            file,
            text: "",
            modules: Rc::new(Scripts::new(builtins())),
            env: Rc::new(|_| None),
            set: Vec::new(),
            disable: Vec::new(),
        };
        let mount = self.root.plugin(&loader::plugin(options), Value::Null).unwrap();
        mount.ready().await.map_err(|err| err.to_string())?;
        self.mount.replace(Some(mount));
        let loader: Svc<Loader> = self.root.get().unwrap();
        loader.applied().await.map_err(|err| err.to_string())?;
        Ok(loader)
    }

    /// Mounts one script without a loader; it must start.
    pub(crate) async fn mount(&self, source: &str) -> Mount {
        let def = self.def(source).unwrap();
        self.mount_def(&def).await
    }

    pub(crate) async fn mount_def(&self, def: &PluginDef) -> Mount {
        let mount = self.root.plugin_named("probe", def, Value::Null).unwrap();
        mount.ready().await.unwrap();
        mount
    }

    /// Loads one script.
    pub(crate) fn def(&self, source: impl AsRef<[u8]>) -> Result<PluginDef, String> {
        self.write("probe.ts", source);
        self.load("./probe.ts")
    }

    /// Loads the script of this name.
    pub(crate) fn load(&self, name: &str) -> Result<PluginDef, String> {
        let scripts = Scripts::new(builtins());
        let key = scripts.resolve(name, self.folder()).map_err(|err| err.to_string())?;
        scripts.load(&key).map_err(|err| err.to_string())
    }

    /// The tools service, on the root.
    pub(crate) async fn tools(&self) {
        let mount = self.root.plugin(&plugin(tools::apply), Value::Null).unwrap();
        mount.ready().await.unwrap();
    }

    /// Calls a tool without arguments and gives the text of its result.
    pub(crate) async fn call(&self, tool: &str) -> String {
        self.call_with(tool, "{}").await
    }

    pub(crate) async fn call_with(&self, tool: &str, arguments: &str) -> String {
        let tools: Svc<Tools> = self.root.get().expect("tools are mounted");
        tools.execute(call(tool, arguments)).await.content
    }

    /// Waits until a line was told or reported that contains this, and takes all.
    pub(crate) async fn hears(&self, part: &str) -> Vec<String> {
        loop {
            let heard = self.heard.notified();
            let is_there =
                |lines: &RefCell<Vec<String>>| lines.borrow().iter().any(|it| it.contains(part));
            if is_there(&self.told) {
                return self.told.take();
            }
            if is_there(&self.reports) {
                return self.reports.take();
            }
            let waited = timeout(Duration::from_secs(20), heard).await;
            assert!(waited.is_ok(), "nobody says `{part}`, but {:?} {:?}", self.told, self.reports);
        }
    }

    /// What was told so far.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.take()
    }

    /// What was reported so far.
    pub(crate) fn reports(&self) -> Vec<String> {
        self.reports.take()
    }
}

/// The list that names these scripts, after the tools and a quick watcher.
pub(crate) fn list(scripts: &[&str]) -> String {
    let entry = |(at, name): (usize, &&str)| format!("- {{ id: s{at}, name: {name} }}\n");
    let first =
        "- { id: tools, name: tools }\n- { id: hmr, name: hmr, config: { debounceMs: 20 } }\n";
    first.to_owned() + &scripts.iter().enumerate().map(entry).collect::<String>()
}

fn builtins() -> Builtins {
    Builtins::new().with("tools", plugin(tools::apply)).with("hmr", plugin(hmr::apply))
}

/// A script whose tool `probe` does this.
pub(crate) fn tool(body: &str) -> String {
    format!(
        "export const inject = ['tools']
export function apply(ctx) {{
  ctx.tools.register('probe', 'Does it.', {{ type: 'object' }}, async (args) => {{ {body} }})
}}"
    )
}
