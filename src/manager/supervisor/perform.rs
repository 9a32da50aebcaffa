//! Carries out the lifecycle's effects; among them the preparation of a start.

use std::ffi::OsString;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::journal::Record;
use super::upgrade::Serving;
use super::{Ended, Supervisor, random_id};
use crate::config_watch::{self, ConfigWatch};
use crate::errors::{ErrorCode, Errors};
use crate::lifecycle::{self, Effect, Event, ExitStatus, KeepAs, Millis};
use crate::process::{
    self, Archive, Launch, Launched, LeftBehind, Member, RUN_VARIABLE, TempDir, TempDirError, Tree,
    end_leftovers, oom,
};
use crate::variables::Variables;
use crate::worker::Worker;
use stayput_api as api;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, ExitReason, Refusal};

/// How long a JVM that did not let itself be read in time is left alone, in milliseconds.
const READ_AGAIN: Millis = 1_000;

impl Supervisor {
    /// Carries out one effect; a result that is known at once is returned.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Prepare { choice, expected, pinned } => {
                return self.prepare(choice, expected, pinned);
            }
            Effect::Persist(version) => return self.persist(version),
            Effect::Spawn(_) => return Some(self.spawn()),
            Effect::SignalLeader(signal) => self.with_tree(|tree| {
                tree.signal_leader(signal);
            }),
            Effect::SignalServer(signal) => self.with_tree(|tree| {
                for server in tree.scan().server {
                    tree.signal(&server, signal);
                }
            }),
            Effect::TermStragglers => self.with_tree(|tree| {
                tree.signal_stragglers(libc::SIGTERM);
            }),
            Effect::DumpThreads => self.with_tree(|tree| {
                let asked = tree.dump_threads();
                tracing::warn!(
                    ?asked,
                    "grace period over; requesting a thread dump before SIGKILL"
                );
            }),
            Effect::KillTree => self.with_tree(|tree| {
                let killed = tree.kill_all();
                tracing::warn!(killed, "the engine's processes were sent KILL");
            }),
            Effect::ScanTree => return self.scan(),
            Effect::Keep(kept) => self.keep(kept),
            Effect::CheckProgram => return self.check_program(),
            Effect::EndCheck => self.end_check(),
            Effect::CloseServer => {
                self.parts.serving.send_replace(Serving::Closed);
                self.waiting.refuse_while_another_takes_over();
            }
            Effect::Execute => return Some(self.execute()),
            Effect::OpenServer(error) => self.open_server(error),
            Effect::Reply(answer) => {
                // The caller may read the status as soon as it has the answer, so the status comes
                // first.
                self.publisher.touch();
                self.publish();
                if let Some(reply) = self.reply.take() {
                    // If the caller has closed its connection, only the answer is lost.
                    let _ = reply.send(answer);
                }
            }
            Effect::Exit(code) => self.exit(code),
        }
        None
    }

    /// Begins to prepare a start; returns the result at once if there is nothing to do.
    fn prepare(
        &mut self,
        choice: ConfigChoice,
        expected: Option<String>,
        pinned: Option<String>,
    ) -> Option<Event> {
        let (config, temp_dir) = (self.parts.config.clone(), self.parts.temp_dir.clone());
        let unseen_end = self.unseen_end();
        let variables = self.parts.variables.clone();
        if config.is_none() && temp_dir.is_none() && variables.is_none() && unseen_end.is_none() {
            return Some(Event::Prepared(without_config(choice, expected)));
        }
        let errors = self.parts.errors.clone();
        let prepared = prepare(config, temp_dir, choice, expected, pinned, errors);
        self.preparing = Some(Box::pin(async {
            if let Some((run, worker)) = unseen_end {
                nothing_left(run, worker).await?;
            }
            let ready = prepared.await?;
            // Last, so that they are the newest.
            match variables {
                Some(file) => Ok(Ready { variables: Some(file.prepare().await?), ..ready }),
                None => Ok(ready),
            }
        }));
        None
    }

    /// The last run, if its manager was killed and may have left processes, and the thread to look for them.
    fn unseen_end(&self) -> Option<(String, Worker)> {
        let last = self.lifecycle.last_exit()?;
        let may_be_left = last.reason == ExitReason::EndedWithManager && !process::is_pid_1();
        may_be_left.then_some(last.run.clone()).zip(self.parts.reader.clone())
    }

    fn persist(&mut self, version: u64) -> Option<Event> {
        let Some(journal) = &mut self.journal else {
            return Some(Event::Persisted(version));
        };
        let record = Record::new(
            self.publisher.boot_id().to_owned(),
            self.parts.pod.uid.clone(),
            self.lifecycle.journaled_intent().clone(),
            self.lifecycle.run(),
            self.lifecycle.last_exit().cloned(),
        );
        journal.write(version, record);
        None
    }

    fn spawn(&mut self) -> Event {
        if let Some(prepared) = &self.prepared
            && !prepared.is_current()
        {
            return Event::ConfigOutdated;
        }
        (self.archive, self.read_again) = (None, None);
        let id = random_id();
        let (environment, mut set_env) = match self.variables.clone() {
            Some(Variables { digest, changes }) => (Some(digest), changes),
            None => (None, Vec::new()),
        };
        set_env.push((RUN_VARIABLE.into(), Some(OsString::from(&id))));
        if let Some((temp_dir, _)) = &self.parts.temp_dir {
            set_env.extend(temp_dir.variables());
        }
        self.oom_kills = self.count_oom_kills();
        let launch = Launch { argv: self.parts.command.clone(), set_env };
        match process::launch(&launch) {
            Ok(launched) => {
                let pid = launched.pid;
                self.late = Some(launched).filter(Launched::is_late);
                if self.late.is_some() {
                    tracing::warn!(
                        pid,
                        "the engine's program is not executed yet: its disk is slow"
                    );
                }
                tracing::info!(pid, run = %id, "the engine was spawned");
                let tree = Tree::new(pid, &id, !process::is_pid_1());
                let tree = tree.beside(&self.inherited).reading_on(self.parts.reader.clone());
                self.tree = Some(tree);
                self.readiness.run_began();
                Event::Spawned { id, pid, environment }
            }
            Err(error) => {
                tracing::error!(%error, "the engine was not spawned");
                Event::SpawnFailed {
                    code: error.shell_code(),
                    shortage: error.is_shortage(),
                    message: error.to_string(),
                }
            }
        }
    }

    /// Scans the remaining processes of the engine. `None` also if a child has to be reaped before
    /// the result is certain: its SIGCHLD brings the next scan.
    pub(super) fn scan(&mut self) -> Option<Event> {
        let scan = self.tree.as_mut()?.scan();
        if scan.unreaped {
            return None;
        }
        if let Some(reason) = &scan.unseen {
            tracing::error!(reason, "processes are left that cannot be seen");
        }
        let jvm = scan.members().any(|member| member.jvm);
        Some(Event::Tree(lifecycle::Tree {
            jvm,
            server: named(scan.server),
            stragglers: named(scan.stragglers),
            strangers: named(scan.strangers),
            unseen: scan.unseen,
        }))
    }

    /// Checks whether the engine uses the archive of classes that it was told to use: nobody else
    /// says why it starts slower. Bare, nothing is read from processes. A JVM that does not let itself
    /// be read in time is read again a second later.
    pub(super) fn check_archive(&mut self) {
        self.read_again = None;
        if !self.parts.policy.api || self.lifecycle.state() != api::State::Running {
            return;
        }
        let read = self.tree.as_mut().map_or(Ok(None), Tree::archive);
        self.read_again = read.is_err().then(|| self.clock.now() + READ_AGAIN);
        self.publisher.touch();
        let found = read.ok().flatten();
        self.archive =
            found.map(|Archive { path, is_used, .. }| api::Archive { path, used: is_used });
        if let Some(api::Archive { path, used: false }) = &self.archive {
            tracing::warn!(
                archive = path,
                "the server JVM does not use the archive of classes that its options name, and starts \
                 slower: the file is missing or unreadable, or was made by another JVM or with other \
                 files, or in another order of files, in the engine's lib; make it again with `stayput warm`"
            );
        }
    }

    fn with_tree(&mut self, act: impl FnOnce(&mut Tree)) {
        if let Some(tree) = &mut self.tree {
            act(tree);
        }
    }

    /// True for a KILL, whoever sent it, if the kernel's out-of-memory count rose since the launch.
    /// A launcher of Elasticsearch reports its server's death as code 137.
    pub(super) fn was_out_of_memory(&self, status: ExitStatus) -> bool {
        status.shell_code() == 128 + libc::SIGKILL
            && match (self.oom_kills, self.count_oom_kills()) {
                (Some(before), Some(after)) => after > before,
                (None, _) | (_, None) => false,
            }
    }

    fn count_oom_kills(&self) -> Option<u64> {
        self.oom_counter.as_ref().and_then(oom::Counter::read)
    }

    fn keep(&mut self, kept: KeepAs) {
        let (Some(config), Some(prepared)) = (self.parts.config.clone(), self.prepared.clone())
        else {
            return;
        };
        let keeping = tokio::spawn(async move {
            if let Err(error) = config.keep(&prepared, kept).await {
                tracing::error!(%error, ?kept, "the config is not kept");
            }
        });
        if kept == KeepAs::LastGood {
            self.keeping = Some(keeping);
        }
    }

    fn exit(&mut self, code: i32) {
        let message = match (self.lifecycle.reason(), self.lifecycle.last_exit()) {
            _ if self.lifecycle.is_terminating() => format!("TERM received; exit code {code}"),
            (Some(reason), _) => reason.message,
            (None, _) => format!("exit code {code}"),
        };
        self.ended = Some(Ended { code, message });
    }
}

/// The processes, for users: with a warning if KILL does not end one now.
fn named(members: Vec<Member>) -> Vec<api::Process> {
    members
        .into_iter()
        .map(|Member { pid, mut command, uninterruptible, .. }| {
            if uninterruptible {
                command.push_str(" (in uninterruptible wait)");
            }
            api::Process { pid, command }
        })
        .collect()
}

// Preparation of a start before its spawn: what an earlier run has left is ended, the config verified and
// staged, the temporary directory emptied. On threads of their own: a slow disk must not keep the
// supervisor from answering.

/// How long emptying the temporary directory may take: it may have large files. Shorter than the
/// limit for all of a start, so that its cause can be said.
const EMPTYING_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a start waits for work that an earlier one has begun.
const HANGING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the processes of an earlier run may take to end after KILL.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look whether they have ended.
const LEFTOVERS_INTERVAL: Duration = Duration::from_millis(20);

/// The work of [`prepare`]: what the spawn needs, or why there is no spawn.
pub(super) type Preparing = Pin<Box<dyn Future<Output = Result<Ready, Refusal>> + Send + 'static>>;

/// Result of the preparation of a start.
pub(super) struct Ready {
    pub(super) known: lifecycle::Prepared,
    /// The prepared config, to be compared with the mounts later; `None` without `--config`.
    pub(super) config: Option<config_watch::Prepared>,
    /// The variables of the engine; `None` without `--environment`.
    pub(super) variables: Option<Variables>,
}

/// Prepares a start: verifies and stages the config, empties the temporary directory.
pub(super) async fn prepare(
    config: Option<Arc<ConfigWatch>>,
    temp_dir: Option<(Arc<TempDir>, Worker)>,
    choice: ConfigChoice,
    expected: Option<String>,
    pinned: Option<String>,
    errors: Errors,
) -> Result<Ready, Refusal> {
    let ready = match config {
        Some(config) => verified(&config, choice, expected, pinned).await?,
        None => Ready { known: without_config(choice, expected)?, config: None, variables: None },
    };
    if let Some((temp_dir, worker)) = temp_dir {
        emptied(temp_dir, &worker, &errors).await?;
    }
    Ok(ready)
}

/// Ends what is left of a run, and waits until it is gone.
pub(super) async fn nothing_left(run: String, worker: Worker) -> Result<(), Refusal> {
    let deadline = Instant::now() + LEFTOVERS_TIMEOUT;
    let mut logged = false;
    loop {
        let of = run.clone();
        let ended = worker.run(move || end_leftovers(&of)).await;
        let Ok(Err(left)) = ended else { return Ok(()) };
        let may_end = matches!(left, LeftBehind::Killed(_));
        if may_end && !std::mem::replace(&mut logged, true) {
            tracing::warn!(%run, "{left}; they are killed before the engine is started");
        }
        if !may_end || Instant::now() >= deadline {
            return Err(Refusal::new(Code::SpawnFailed, format!("no engine is started: {left}")));
        }
        sleep(LEFTOVERS_INTERVAL).await;
    }
}

async fn verified(
    config: &ConfigWatch,
    choice: ConfigChoice,
    expected: Option<String>,
    pinned: Option<String>,
) -> Result<Ready, Refusal> {
    let expected = expected
        .map(|text| Checksum::parse(&text))
        .transpose()
        .map_err(|error| Refusal::new(Code::ChecksumMismatch, error.to_string()))?;
    // What is not a checksum in the journal is no generation that could be kept.
    let pinned = pinned.and_then(|text| Checksum::parse(&text).ok());
    let prepared = match pinned {
        Some(pinned) => config.prepare_pinned(&pinned, choice).await?,
        None => config.prepare(choice, expected.as_ref()).await?,
    };
    let known = lifecycle::Prepared {
        checksum: prepared.checksum.as_ref().map(ToString::to_string),
        choice: prepared.choice,
    };
    Ok(Ready { known, config: Some(prepared), variables: None })
}

async fn emptied(temp_dir: Arc<TempDir>, worker: &Worker, errors: &Errors) -> Result<(), Refusal> {
    let path = temp_dir.path().to_owned();
    let limit = if temp_dir.is_busy() { HANGING_TIMEOUT } else { EMPTYING_TIMEOUT };
    let emptied = match timeout(limit, worker.run(move || temp_dir.prepare())).await {
        Ok(emptied) => emptied,
        Err(_) => {
            return Err(Refusal::new(
                Code::TempDirFailed,
                format!(
                    "the engine's temporary directory {} was not emptied within {} s: its volume is \
                     slow or does not answer; repair the volume behind --tmp-dir, or try again later",
                    path.display(),
                    limit.as_secs()
                ),
            ));
        }
    };
    match emptied {
        Ok(Ok(())) => {
            errors.resolve(ErrorCode::TempDir);
            Ok(())
        }
        Ok(Err(error @ TempDirError::NotEmptied { .. })) => {
            // A directory with old files in it is still as good as /tmp.
            errors.report(ErrorCode::TempDir, error.to_string());
            Ok(())
        }
        Ok(Err(error @ TempDirError::Unusable { .. })) => {
            Err(Refusal::new(Code::TempDirFailed, error.to_string()))
        }
        Err(error) => Err(Refusal::new(
            Code::TempDirFailed,
            format!("the engine's temporary directory was not emptied: {error}"),
        )),
    }
}

/// The result for a manager without `--config`.
pub(super) fn without_config(
    choice: ConfigChoice,
    expected: Option<String>,
) -> Result<lifecycle::Prepared, Refusal> {
    let refuse = |code, message: &str| Err(Refusal::new(code, message));
    match (choice, expected) {
        (ConfigChoice::LastGood, _) => refuse(
            Code::NoLastGood,
            "no config is kept: the manager runs without --config, --stage and --keep-last-good",
        ),
        (ConfigChoice::Mounted, Some(_)) => refuse(
            Code::ConfigUnknown,
            "the manager runs without --config, so it does not know the mounted config",
        ),
        (ConfigChoice::Mounted, None) => Ok(lifecycle::Prepared { checksum: None, choice }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test] // proves STOP-16
    async fn a_temporary_directory_that_cannot_be_emptied_is_an_error_until_it_is() {
        let parent = tempfile::tempdir().unwrap();
        let temp_dir = Arc::new(TempDir::new(parent.path()));
        let errors = Errors::default();
        let worker = Worker::start("test", &errors).unwrap();
        emptied(Arc::clone(&temp_dir), &worker, &errors).await.unwrap();
        let deep = temp_dir.path().join("d/".repeat(300));
        std::fs::create_dir_all(deep).unwrap();
        emptied(Arc::clone(&temp_dir), &worker, &errors).await.unwrap();
        assert_eq!(errors.list()[0].code, "temp_dir");
        assert!(errors.list()[0].message.contains("by hand"), "{errors:?}");
        std::fs::remove_dir_all(temp_dir.path().join("d")).unwrap();
        emptied(temp_dir, &worker, &errors).await.unwrap();
        assert_eq!(errors.list(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_temporary_directory_that_hangs_is_named_before_the_time_of_the_start_is_over() {
        let parent = tempfile::tempdir().unwrap();
        let temp_dir = Arc::new(TempDir::new(parent.path()));
        let worker = Worker::start("test", &Errors::default()).unwrap();
        let (go, gate) = channel::<()>();
        let hanging = worker.run(move || gate.recv());
        let began = Instant::now();
        let refusal = emptied(temp_dir.clone(), &worker, &Errors::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::TempDirFailed);
        let path = temp_dir.path().to_str().unwrap();
        assert!(refusal.message.contains(path), "{refusal:?}");
        let limit = Duration::from_millis(lifecycle::Limits::PREPARE_TIMEOUT);
        assert!(began.elapsed() < limit, "{:?}", began.elapsed());
        drop(go);
        let _ = hanging.await;
        // The worker needs real time.
        tokio::time::resume();
        emptied(temp_dir, &worker, &Errors::default()).await.unwrap();
    }
}
