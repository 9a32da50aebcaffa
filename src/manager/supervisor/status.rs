//! Builds the status and publishes it when it changed.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::readiness::Readiness;
use super::{Supervisor, random_id};
use crate::config_watch::{Observed, Prepared};
use crate::lifecycle::{Lifecycle, Millis, timestamp};
use stayput_api as api;
use stayput_api::{Config, ConfigFile, Cursor, Manager, State, Status};

/// The config that the last start was prepared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedOn {
    checksum: Option<String>,
    files: Vec<ConfigFile>,
}

impl From<&Prepared> for StartedOn {
    fn from(prepared: &Prepared) -> Self {
        let checksum = prepared.checksum.as_ref().map(ToString::to_string);
        Self { checksum, files: prepared.files.clone() }
    }
}

/// Publishes the status.
#[derive(Debug)]
pub(super) struct Publisher {
    manager: Manager,
    /// Number of statuses that were published.
    count: u64,
    touched: bool,
    sender: watch::Sender<Arc<Status>>,
}

impl Publisher {
    pub(super) fn new(
        pod: api::Pod,
        now: Millis,
        lifecycle: &Lifecycle,
        readiness: &Readiness,
        upgraded_from: Option<String>,
    ) -> (Self, watch::Receiver<Arc<Status>>) {
        let manager = Manager {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            upgraded_from,
            boot_id: random_id(),
            pid: std::process::id(),
            since: timestamp(now),
            durable: true,
            pod,
            log_lines_lost: 0,
            errors: Vec::new(),
        };
        let status = build(&manager, 0, lifecycle, None, readiness);
        let (sender, receiver) = watch::channel(Arc::new(status));
        (Self { manager, count: 0, touched: true, sender }, receiver)
    }

    pub(super) fn boot_id(&self) -> &str {
        &self.manager.boot_id
    }

    /// Notes that something happened that may show in the status.
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// Changes the count in the published status without waking receivers that wait for a change:
    /// each answer may log a line, which is lost, too.
    fn count_lost_lines(&mut self, lost: u64) {
        if self.manager.log_lines_lost == lost {
            return;
        }
        self.manager.log_lines_lost = lost;
        self.sender.send_if_modified(|status| {
            Arc::make_mut(status).manager.log_lines_lost = lost;
            false
        });
    }
}

impl Supervisor {
    /// Publishes the present status, if something happened and it differs from the last one.
    pub(super) fn publish(&mut self) {
        let publisher = &mut self.publisher;
        if !std::mem::take(&mut publisher.touched) {
            return;
        }
        // Not borrowed while something is logged, which may change it.
        let lines_lost = *self.parts.lines_lost.borrow();
        publisher.count_lost_lines(lines_lost);
        publisher.manager.errors = self.parts.errors.list();
        let (lifecycle, started_on) = (&self.lifecycle, self.started_on.as_ref());
        let observed = self.config.as_ref().map(|config| config.borrow().clone());
        let config =
            observed.map(|observed| config(&observed, lifecycle.run().as_ref(), started_on));
        let mut status =
            build(&publisher.manager, publisher.count, lifecycle, config, &self.readiness);
        status.environment = self.environment.borrow().clone();
        status.archive = self.archive.clone().filter(|_| status.run.is_some());
        let last = publisher.sender.borrow().clone();
        if status == *last {
            return;
        }
        if status.state != last.state {
            announce(&status);
        }
        publisher.count += 1;
        status.cursor = cursor(&publisher.manager, publisher.count);
        publisher.sender.send_replace(Arc::new(status));
    }
}

fn cursor(manager: &Manager, count: u64) -> Cursor {
    Cursor(format!("{}:{count}", manager.boot_id))
}

fn build(
    manager: &Manager,
    count: u64,
    lifecycle: &Lifecycle,
    config: Option<Config>,
    readiness: &Readiness,
) -> Status {
    Status {
        manager: Manager {
            durable: lifecycle.is_durable() && lifecycle.end_is_recorded(),
            ..manager.clone()
        },
        cursor: cursor(manager, count),
        desired: lifecycle.desired(),
        state: lifecycle.state(),
        ready: if lifecycle.drains_ahead() { Some(false) } else { readiness.ready() },
        ready_error: readiness.error().map(str::to_owned),
        since: timestamp(lifecycle.since()),
        sequence: lifecycle.intent().fencing.sequence,
        run: lifecycle.run(),
        archive: None,
        starts: lifecycle.starts(),
        last_exit: lifecycle.last_exit().cloned(),
        last_request: lifecycle.last_request(),
        config,
        environment: None,
        reason: lifecycle.reason(),
        resume: lifecycle.resume(),
    }
}

fn config(observed: &Observed, run: Option<&api::Run>, started_on: Option<&StartedOn>) -> Config {
    let mounted = observed.checksum.as_ref().map(ToString::to_string);
    let running = run.and_then(|run| run.checksum.as_ref());
    let drift = match (&mounted, running) {
        (Some(mounted), Some(running)) => Some(mounted != running),
        (None, _) | (_, None) => None,
    };
    let of_run = started_on.filter(|started_on| {
        let checksum = started_on.checksum.as_ref();
        drift != Some(false) && checksum.is_some() && checksum == running
    });
    Config {
        checksum: mounted,
        drift,
        files: observed.files.clone(),
        run_files: of_run.map(|started_on| started_on.files.clone()),
        last_good: observed.last_good.as_ref().map(ToString::to_string),
        errors: observed.errors.clone(),
        observed_at: observed
            .observed_at
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| Millis::try_from(since.as_millis()).ok())
            .map(timestamp),
    }
}

fn announce(status: &Status) {
    let reason = status.reason.as_ref().map_or("", |reason| reason.message.as_str());
    let state = status.state.as_str();
    match status.state {
        State::Failed | State::Stuck | State::Backoff => {
            tracing::warn!(state, reason, "engine state changed")
        }
        State::Stopped | State::Starting | State::Running | State::Stopping | State::Killing => {
            tracing::info!(state, reason, "engine state changed");
        }
    }
}
