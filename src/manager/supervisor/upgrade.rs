//! Carries out an upgrade: asks the other program, hands the state over and executes it, or goes on.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Supervisor;
use super::status::StartedOn;
use crate::errors::ErrorCode;
use crate::lifecycle::{Checked, Event, TakenOver};
use crate::process::{
    self, Checking, ExitStatus, HAND_OVER_VARIABLE, Inherited, KeptListener, Program, Seen, Tree,
};

/// How long the last lines of the log may take.
const LAST_LINES: Duration = Duration::from_millis(500);

/// State of serving the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Open,
    /// Another program is about to take over.
    Closed,
    /// The manager ends.
    Ended,
}

/// A program that is asked, or has said that it can take over.
pub(super) struct Asked {
    checking: Option<Checking>,
    /// The program's file, held open, so that the executed program is the one that was asked.
    file: OwnedFd,
    said: String,
}

/// A program that is being opened; `None` if it is the one that runs. Its volume may hang, so a
/// thread opens it.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<Option<OwnedFd>, String>> + Send>>;

fn opened(path: &Path) -> Result<Option<OwnedFd>, String> {
    let named = |error: io::Error| format!("{}: {error}", path.display());
    let file = process::open_program(path).map_err(named)?;
    if process::is_own_program(&file).map_err(named)? {
        return Ok(None);
    }
    process::only_ours_to_write(&file).map_err(|why| format!("{}: {why}", path.display()))?;
    if !process::is_for_this_machine(&file).map_err(named)? {
        let path = path.display();
        return Err(format!("{path}: it is no program, or one for another kind of machine"));
    }
    Ok(Some(file))
}

impl Supervisor {
    /// Begins to open the program. Returns the answer if that is known at once.
    pub(super) fn check_program(&mut self) -> Option<Event> {
        self.parts.errors.resolve(ErrorCode::Upgrade);
        let failed = |why: &str| Some(Event::ProgramChecked(Err(why.to_owned())));
        let Some(program) = &self.parts.program else { return failed("/proc cannot be used") };
        let Some(opener) = &self.parts.opener else { return failed("there is no API") };
        let path = program.path.clone();
        let opened = opener.run(move || opened(&path));
        self.opening = Some(Box::pin(async move {
            opened.await.unwrap_or_else(|panicked| Err(panicked.to_string()))
        }));
        None
    }

    /// Asks the program, which is open now.
    pub(super) fn program_opened(&mut self, opened: Result<Option<OwnedFd>, String>) {
        let checked = match opened {
            Ok(None) => Ok(Checked::Same),
            Ok(Some(file)) => match self.ask(file) {
                Ok(asked) => {
                    self.asked = Some(asked);
                    return;
                }
                Err(message) => Err(message),
            },
            Err(message) => Err(message),
        };
        self.feed(Event::ProgramChecked(checked));
    }

    fn ask(&self, file: OwnedFd) -> Result<Asked, String> {
        let program = self.parts.program.as_ref().ok_or("/proc cannot be used")?;
        let named = |error: io::Error| format!("{}: {error}", program.path.display());
        let state = self.hand_over(program).in_memory().map_err(|error| error.to_string())?;
        let number = state.as_raw_fd().to_string();
        let own = ["check-upgrade", "--state", &number, "--"].map(OsString::from);
        let args: Vec<_> = own.into_iter().chain(program.args.iter().skip(1).cloned()).collect();
        let checking = process::check(file.as_fd(), &args, state.as_fd()).map_err(named)?;
        Ok(Asked { checking: Some(checking), file, said: String::new() })
    }

    /// Stops waiting for the program's answer.
    pub(super) fn end_check(&mut self) {
        self.opening = None;
        if let Some(checking) = self.asked.take().and_then(|asked| asked.checking) {
            checking.kill();
        }
    }

    /// Pid of the program that is asked.
    pub(super) fn asked_pid(&self) -> Option<u32> {
        Some(self.asked.as_ref()?.checking.as_ref()?.pid())
    }

    /// Takes the answer of the program that was asked, which has ended.
    pub(super) fn check_ended(&mut self, status: ExitStatus) {
        let Some(asked) = &mut self.asked else { return };
        let Some(checking) = asked.checking.take() else { return };
        let answer = match checking.answer(status) {
            Ok(answer) if answer.starts_with(CAN_TAKE_OVER) => {
                asked.said = answer;
                Ok(Checked::CanTakeOver)
            }
            Ok(_) => Err("the program is not a manager that can take over".to_owned()),
            Err(message) => Err(message),
        };
        if answer.is_err() {
            self.asked = None;
        }
        self.feed(Event::ProgramChecked(answer));
    }

    /// Executes the program. Returns only if that fails.
    pub(super) fn execute(&mut self) -> Event {
        let error = match self.try_to_execute() {
            Ok(error) | Err(error) => error,
        };
        Event::NotExecuted(format!("the other program was not executed: {error}"))
    }

    fn try_to_execute(&mut self) -> io::Result<io::Error> {
        let missing = || io::Error::other("it was not asked");
        let asked = self.asked.take().ok_or_else(missing)?;
        let program = self.parts.program.clone().ok_or_else(missing)?;
        let previous = process::own_program()?;
        let listener = self.parts.listener.descriptor()?;
        let mut hand_over = self.hand_over(&program);
        hand_over.previous = Some(previous.as_raw_fd());
        hand_over.listener = listener.as_ref().map(AsRawFd::as_raw_fd);
        let state = hand_over.in_memory()?;
        tracing::info!(program = %program.path.display(), said = asked.said, "the manager executes another version of itself");
        if let Some(log) = &self.parts.log {
            log.flush(LAST_LINES);
        }
        let kept: Vec<_> = [&previous].into_iter().chain(&listener).map(AsFd::as_fd).collect();
        let (file, state) = (asked.file.as_fd(), state.as_fd());
        Ok(process::execute(file, &program.args, state, &kept, &mut self.signals))
    }

    /// Opens the server again: this manager goes on.
    pub(super) fn open_server(&mut self, error: String) {
        self.asked = None;
        self.parts.errors.report(ErrorCode::Upgrade, error);
        self.parts.serving.send_replace(Serving::Open);
    }

    fn hand_over(&self, program: &Program) -> HandOver {
        HandOver {
            ready: self.readiness.ready(),
            seen: self.tree.as_ref().map(Tree::seen).unwrap_or_default(),
            inherited: self.inherited.clone(),
            oom_kills: self.oom_kills,
            started_on: self.started_on.clone(),
            clock_ahead: self.clock.ahead(),
            ..HandOver::new(program.path.clone(), self.lifecycle.hand_over())
        }
    }

    /// Takes over the state that does not belong to the lifecycle.
    pub(super) fn take_over(&mut self, taken: HandOver) {
        let HandOver { version, failed, lifecycle, ready, seen, inherited, oom_kills, .. } = taken;
        self.started_on = taken.started_on;
        match failed {
            None => tracing::info!(from = version, "the manager was upgraded; the engine runs on"),
            Some(why) => self.parts.errors.report(
                ErrorCode::Upgrade,
                format!("the other program could not start, and this one goes on: {why}"),
            ),
        }
        (self.inherited, self.oom_kills) = (inherited, oom_kills);
        if let Some(run) = lifecycle.run {
            let tree = Tree::new(run.pid, &run.id, !process::is_pid_1());
            let tree = tree.beside(&self.inherited).reading_on(self.parts.reader.clone());
            self.tree = Some(tree.having_seen(seen));
            self.readiness.take_over(ready);
        }
    }
}

// State that a manager hands over to the program that it executes: JSON, in a file in memory.
//
// A later version reads what an earlier one wrote, and the other way round: a field that is added has
// a default, and none is removed or changes its meaning. Otherwise the schema gets another number,
// and each says that it cannot take over from the other.

const SCHEMA: u32 = 1;

/// Beginning of the answer of a program that can take over; its version follows.
pub const CAN_TAKE_OVER: &str = "stayput can take over, version ";

/// The handed-over state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    pub(super) schema: u32,
    /// Version of the program that has written this.
    pub(super) version: String,
    /// Path of that program's file: executed by a descriptor, a program does not find its own.
    pub(super) program: PathBuf,
    /// Descriptor of the program itself, for the case that the other one cannot start.
    pub(super) previous: Option<RawFd>,
    /// Descriptor of the listener.
    pub(super) listener: Option<RawFd>,
    /// Reason why the program that was executed could not start: it has executed this one again.
    pub(super) failed: Option<String>,
    /// Milliseconds by which the program's clock is ahead of the time of day.
    pub(super) clock_ahead: i64,
    pub(super) lifecycle: TakenOver,
    /// Last result of the readiness probe.
    pub(super) ready: Option<bool>,
    pub(super) seen: Seen,
    pub(super) inherited: Inherited,
    pub(super) oom_kills: Option<u64>,
    /// Config that the engine was started on.
    pub(super) started_on: Option<StartedOn>,
}

fn other_format(error: serde_json::Error) -> String {
    format!("the handed-over state has another format: {error}")
}

impl HandOver {
    /// # Errors
    /// The state has another form.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let Head { schema } = serde_json::from_slice(bytes).map_err(other_format)?;
        if schema != SCHEMA {
            return Err(format!(
                "the handed-over state has schema {schema}, and this version knows {SCHEMA}"
            ));
        }
        serde_json::from_slice(bytes).map_err(other_format)
    }

    /// The program that runs now, and its arguments.
    pub fn program(&self) -> Program {
        Program { path: self.program.clone(), args: env::args_os().collect() }
    }

    /// The version that has handed over to another one; `None` if the same version goes on.
    pub(super) fn upgraded_from(&self) -> Option<String> {
        self.failed.is_none().then(|| self.version.clone())
    }

    pub(super) fn new(program: PathBuf, lifecycle: TakenOver) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program,
            previous: None,
            listener: None,
            failed: None,
            clock_ahead: 0,
            lifecycle,
            ready: None,
            seen: Seen::default(),
            inherited: Inherited::default(),
            oom_kills: None,
            started_on: None,
        }
    }

    /// # Errors
    /// A path is not UTF-8, or there is no memory.
    pub(super) fn in_memory(&self) -> io::Result<OwnedFd> {
        process::in_memory(&serde_json::to_vec(self)?)
    }
}

/// A hand-over with its descriptors.
#[derive(Debug)]
pub struct Taken {
    pub hand_over: HandOver,
    way_back: WayBack,
}

/// Everything needed to execute the previous program again.
#[derive(Debug)]
struct WayBack {
    /// State as it was handed over, with fields that only that program knows.
    state: Value,
    program: Option<OwnedFd>,
    listener: Option<OwnedFd>,
}

impl Taken {
    /// State that this process was executed with; `None` if it was started as any other program.
    ///
    /// # Errors
    /// Why the state cannot be used; only if the previous program cannot be executed again, either.
    pub fn find() -> Result<Option<Self>, String> {
        let Some(number) = env::var_os(HAND_OVER_VARIABLE) else { return Ok(None) };
        let number = number.to_str().and_then(|number| number.parse().ok());
        let state = number.and_then(|number| process::handed_over(number).ok());
        let state = state.ok_or_else(|| {
            format!(
                "{HAND_OVER_VARIABLE} is set by a manager that executes another version of itself: \
                 unset it"
            )
        })?;
        process::name_again();
        let way_back = WayBack::new(serde_json::from_slice(&state).map_err(other_format)?);
        match HandOver::parse(&state) {
            Ok(hand_over) => Ok(Some(Self { hand_over, way_back })),
            Err(error) => {
                way_back.go(&error);
                Err(error)
            }
        }
    }

    /// The listener that was handed over. Empty without a free descriptor: then the listener is bound again.
    pub fn listener(&self) -> KeptListener {
        let listener = self.way_back.listener.as_ref().and_then(|one| one.try_clone().ok());
        listener.map_or_else(KeptListener::default, KeptListener::of)
    }

    /// Executes the previous program again, which takes over in turn, because this one cannot
    /// start. Returns only if that is not possible, or if the previous program has executed this
    /// one because it cannot start.
    pub fn go_back(&self, why: &str) {
        self.way_back.go(why);
    }
}

impl WayBack {
    fn new(state: Value) -> Self {
        let descriptor = |name: &str| {
            let number = RawFd::try_from(state.get(name)?.as_i64()?).ok()?;
            process::inherited(number).ok()
        };
        Self { program: descriptor("previous"), listener: descriptor("listener"), state }
    }

    fn go(&self, why: &str) {
        let Some(program) = &self.program else { return };
        let mut state = self.state.clone();
        state["previous"] = Value::Null;
        state["failed"] = why.into();
        let error = match process::in_memory(state.to_string().as_bytes()) {
            Ok(state) => {
                let args: Vec<_> = env::args_os().collect();
                let kept: Vec<_> = self.listener.iter().map(AsFd::as_fd).collect();
                process::execute_again(program.as_fd(), &args, state.as_fd(), &kept)
            }
            Err(error) => error,
        };
        // There may be no log yet. If stderr is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "stayput: cannot go back to the version before: {error}");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use super::*;

    #[test] // proves JOURNAL-10
    fn it_is_read_as_it_was_written_and_fields_of_another_version_do_no_harm() {
        let state = include_str!("hand_over/first.json");
        let read = HandOver::parse(state.as_bytes()).unwrap();
        assert_eq!(read.schema, 1);
        assert_eq!(read.lifecycle.run.as_ref().map(|run| run.pid), Some(23));
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(state).unwrap());
        let mut newer = again.clone();
        newer["later"] = 1.into();
        assert_eq!(HandOver::parse(newer.to_string().as_bytes()).unwrap(), read);
        // In each part of the lifecycle's.
        for part in [
            "/lifecycle",
            "/lifecycle/intent",
            "/lifecycle/intent/fencing",
            "/lifecycle/intent/fencing/last",
            "/lifecycle/intent/fencing/last/request",
            "/lifecycle/run",
            "/lifecycle/last_exit",
        ] {
            newer.pointer_mut(part).unwrap()["later"] = 1.into();
        }
        assert_eq!(HandOver::parse(newer.to_string().as_bytes()).unwrap(), read);
        *newer.pointer_mut("/lifecycle/last_exit/reason").unwrap() = "later".into();
        let reason = HandOver::parse(newer.to_string().as_bytes()).unwrap();
        assert_eq!(
            reason.lifecycle.last_exit.map(|exit| exit.reason),
            Some(stayput_api::ExitReason::Unknown)
        );
        newer["schema"] = 2.into();
        let error = HandOver::parse(newer.to_string().as_bytes()).unwrap_err();
        assert!(error.contains("schema 2"), "{error}");
    }
}
