//! A folder to run in: a configuration that asks the server of this program, and logs as the program would have left them.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nano_cordis::harness::llm::Growing;
use nano_cordis::harness::session::message::{AssistantMessage, Header, Message};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Gone when dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(address: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let list = include_str!("../../cordis.yml");
        fs::write(folder.path().join("scripted.yml"), list).expect("the folder is ours");
        let model =
            format!("name: llm-openai\n  config: {{baseUrl: '{address}', model: loopback}}");
        let list = list.replace("name: llm-fake", &model).replace("maxSteps: 25", "maxSteps: 1000");
        assert!(list.contains("llm-openai") && list.contains("maxSteps: 1000"));
        fs::write(folder.path().join("cordis.yml"), list).expect("the folder is ours");
        Self(folder)
    }

    /// Adds entries to the list.
    pub(crate) fn mount(&self, entries: &str) {
        let file = self.path().join("cordis.yml");
        let list = fs::read_to_string(&file).expect("it is ours") + entries;
        fs::write(file, list).expect("it is ours");
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the log of a session that had so many turns, each with an answer like this; returns its id.
    pub(crate) fn log(&self, turns: usize, answer: &str) -> String {
        let id = "20260101-000000-aaaaaa".to_owned();
        let path = self.log_path(&id);
        let sessions = path.parent().expect("a file in a folder");
        fs::create_dir_all(sessions).expect("the folder is ours");
        for folder in [sessions, sessions.parent().expect(".nano")] {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).expect("it is ours");
        }
        let file = BufWriter::new(File::create(&path).expect("a new file"));
        let request = Growing::new(&Header::new("loopback", "", Vec::new()));
        let mut log = Log { file, seq: 0, request };
        for turn in 1..=turns {
            log.turn(turn, &self.path().to_string_lossy(), answer);
        }
        log.file.flush().expect("room on the disk");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        id
    }

    #[expect(clippy::cast_precision_loss, reason = "no log is that large")]
    pub(crate) fn log_mib(&self, id: &str) -> f64 {
        fs::metadata(self.log_path(id)).expect("a log").len() as f64 / f64::from(1 << 20)
    }

    fn log_path(&self, id: &str) -> PathBuf {
        self.path().join(".nano/sessions").join(format!("{id}.jsonl"))
    }
}

struct Log {
    file: BufWriter<File>,
    seq: usize,
    /// What the program would have sent.
    request: Growing,
}

impl Log {
    fn turn(&mut self, turn: usize, cwd: &str, answer: &str) {
        let at = |mut rest: Value| {
            rest["turn"] = turn.into();
            rest["step"] = 1.into();
            rest
        };
        self.event("turn/start", &json!({"turn": turn, "format": 1, "cwd": cwd}));
        self.event("step/start", &at(json!({})));
        let said = format!("question {turn}");
        self.request.push(&Message::user(&said));
        let question = json!({"role": "user", "content": said});
        self.event("user/message", &at(json!({"message": question})));
        if turn == 1 {
            self.event("request/header", &at(json!({"header": {"model": "loopback"}})));
        }
        let hash = self.request.hash();
        let content = Some(answer.to_owned());
        let reply = AssistantMessage { content, ..AssistantMessage::default() };
        self.request.push(&Message::Assistant(Rc::new(reply)));
        let answer = json!({"role": "assistant", "content": answer});
        self.event("assistant/message", &at(json!({"message": answer, "requestHash": hash})));
        self.event("step/end", &at(json!({})));
        self.event("turn/end", &json!({"turn": turn, "reason": "completed"}));
    }

    fn event(&mut self, kind: &str, data: &Value) {
        let mut line = String::new();
        let time = 1_796_054_400_000_usize + self.seq;
        let seq = self.seq;
        write!(line, r#"{{"seq":{seq},"time":{time},"type":"{kind}","data":{data}}}"#)
            .expect("a string takes all");
        writeln!(self.file, "{line}").expect("room on the disk");
        self.seq += 1;
    }
}
