//! Carries out an upgrade: asks the other program, executes it, or goes on.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use super::actor::Supervisor;
use super::hand_over::{CAN_TAKE_OVER, HandOver};
use crate::errors::ErrorCode;
use crate::lifecycle::{Checked, Event};
use crate::process::{self, Checking, ExitStatus, Program, Tree};

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
        Some(self.asked.as_ref()?.checking.as_ref()?.pid)
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
