//! One pod: its manager, its volume, its engine, and the requests that the demo shows.

use std::fmt;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use serde_json::{Value, json};
use stayput_api::{Code, Problem, Status};
use stayput_standin::harness::kubelet::{AtomicWriter, payload};

use crate::error::{Context, Result};
use crate::files::PodFiles;
use crate::http;
use crate::manager::Manager;
use crate::narrator::Narrator;
use crate::volume;

/// No single wait of the demo may take longer.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The pod, once its manager runs.
pub(crate) struct Pod<'a> {
    pub(crate) files: &'a PodFiles,
    pub(crate) narrator: &'a mut Narrator,
    pub(crate) volume: AtomicWriter,
    pub(crate) manager: Manager,
    /// The boot id in the first status; another one would mean another manager.
    boot_id: Option<String>,
    sequence: u64,
}

/// How the manager answered a request for a change.
pub(crate) enum Reply {
    /// Carried out: the status after it.
    Done(Box<Status>),
    /// Refused or failed.
    Refused(Box<Problem>),
}

impl<'a> Pod<'a> {
    /// The pod in which `manager` runs.
    pub(crate) fn new(
        files: &'a PodFiles,
        narrator: &'a mut Narrator,
        volume: AtomicWriter,
        manager: Manager,
    ) -> Self {
        Self { files, narrator, volume, manager, boot_id: None, sequence: 0 }
    }

    /// Mounts another config: `settings` for `elasticsearch.yml`. Returns its checksum.
    pub(crate) fn mount(&mut self, settings: &str) -> Result<String> {
        mount(&mut self.volume, self.files, settings)
    }

    /// `GET /es/status`.
    pub(crate) fn status(&mut self) -> Result<Status> {
        self.ask_status("/es/status")?.ok_or_else(|| "204 without a long poll".into())
    }

    /// Long-polls the status until `holds` is true.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        holds: impl Fn(&Status) -> bool,
    ) -> Result<Status> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut status = self.status()?;
        while !holds(&status) {
            let left = deadline.saturating_duration_since(Instant::now()).as_secs();
            if left == 0 {
                return Err(
                    format!("{WAIT_TIMEOUT:?} passed, and the status never showed {what}").into()
                );
            }
            let target = format!("/es/status?after={}&timeout={left}s", status.cursor.0);
            if let Some(next) = self.ask_status(&target)? {
                status = next;
            }
        }
        Ok(status)
    }

    /// `POST /es/stop` or `/es/start` with the next sequence and `fields`; waits until it is done.
    pub(crate) fn post(&mut self, verb: &str, fields: &Value) -> Result<Reply> {
        self.sequence += 1;
        let mut body = json!({"sequence": self.sequence});
        if let (Some(body), Some(fields)) = (body.as_object_mut(), fields.as_object()) {
            body.extend(fields.clone());
        }
        let target = format!("/es/{verb}?wait={}s", WAIT_TIMEOUT.as_secs());
        self.narrator.request("POST", &target, Some(&body));
        let answer = http::ask_manager(&self.files.socket(), "POST", &target, Some(&body))?;
        if answer.status == 202 {
            return Err(
                format!("the {verb} was accepted, and not done within {WAIT_TIMEOUT:?}").into()
            );
        }
        if answer.status == 200 {
            let status = self.read_status(answer.body)?;
            self.narrator.status(answer.status, &status);
            return Ok(Reply::Done(Box::new(status)));
        }
        let problem: Problem = serde_json::from_value(answer.body.clone()).map_err(|error| {
            format!("{} without a problem document ({error}): {}", answer.status, answer.body)
        })?;
        expect(problem.status, answer.status, "the status inside the problem document")?;
        self.narrator.problem(&problem);
        Ok(Reply::Refused(Box::new(problem)))
    }

    /// Stops the engine, which must succeed.
    pub(crate) fn stop(&mut self, fields: &Value) -> Result<Status> {
        self.post("stop", fields)?.done("the stop")
    }

    /// Starts the engine, which must succeed.
    pub(crate) fn start(&mut self, fields: &Value) -> Result<Status> {
        self.post("start", fields)?.done("the start")
    }

    /// Sends a request to the engine; shows and returns only `pointer` of its answer.
    pub(crate) fn engine(
        &self,
        method: &str,
        target: &str,
        body: Option<&Value>,
        pointer: &str,
    ) -> Result<Value> {
        let port = self.files.engine_port;
        self.narrator.request(method, &format!("http://127.0.0.1:{port}{target}"), body);
        let answer = http::ask_engine(("127.0.0.1", port), method, target, body)?;
        let found = answer.body.pointer(pointer).cloned();
        let found =
            found.ok_or_else(|| format!("the engine's answer lacks {pointer}: {}", answer.body))?;
        self.narrator.answer(answer.status, &found);
        Ok(found)
    }

    /// Pid of the manager.
    pub(crate) fn manager_pid(&self) -> Pid {
        self.manager.pid
    }

    fn ask_status(&mut self, target: &str) -> Result<Option<Status>> {
        self.narrator.request("GET", target, None);
        let answer = http::ask_manager(&self.files.socket(), "GET", target, None)?;
        match answer.status {
            200 => {
                let status = self.read_status(answer.body)?;
                self.narrator.status(answer.status, &status);
                Ok(Some(status))
            }
            204 => Ok(None),
            other => Err(format!("GET {target} was answered with {other}: {}", answer.body).into()),
        }
    }

    /// Every status must come from the manager that was started in the beginning.
    fn read_status(&mut self, body: Value) -> Result<Status> {
        let status: Status = serde_json::from_value(body).context("status")?;
        let boot_id = self.boot_id.get_or_insert_with(|| status.manager.boot_id.clone());
        expect(&status.manager.boot_id, boot_id, "manager.boot_id")?;
        expect(i64::from(status.manager.pid), i64::from(self.manager.pid.as_raw()), "manager.pid")?;
        Ok(status)
    }
}

impl Reply {
    /// The status after a request that had to succeed.
    pub(crate) fn done(self, what: &str) -> Result<Status> {
        match self {
            Self::Done(status) => Ok(*status),
            Self::Refused(problem) => Err(format!("{what} was refused: {}", problem.detail).into()),
        }
    }

    /// Succeeds only if the request was refused with `code`.
    pub(crate) fn refused(self, code: Code) -> Result<()> {
        match self {
            Self::Refused(problem) => expect(problem.code.as_str(), code.as_str(), "the refusal"),
            Self::Done(_) => {
                Err(format!("this should have been refused with {}", code.as_str()).into())
            }
        }
    }
}

/// Mounts `settings` in `volume`; returns the checksum that a shell would compute.
pub(crate) fn mount(volume: &mut AtomicWriter, files: &PodFiles, settings: &str) -> Result<String> {
    let settings = files.engine_settings(settings);
    let files = payload([("elasticsearch.yml", settings.as_str()), ("jvm.options", "-Xmx1g\n")]);
    volume::mount(volume, &files).context("the volume cannot be written")
}

/// Fails if what was observed is not what was promised; the message contains both.
pub(crate) fn expect<T: PartialEq + fmt::Debug>(seen: T, promised: T, what: &str) -> Result<()> {
    if seen == promised {
        Ok(())
    } else {
        Err(format!("{what} is {seen:?} and should be {promised:?}").into())
    }
}
