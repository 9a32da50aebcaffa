//! State of a manager, as far as decisions need it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;
use stayput_api::{self as api, ConfigChoice, Desired, ExitReason, RequestKind, State};

/// A manager's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// Version of its binary.
    pub version: String,
    /// The version that it has taken over from, if its container was started with another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded_from: Option<String>,
    /// Uid of the pod it runs in, as it reports it.
    pub pod_uid: Option<String>,
    /// True if the manager's journal survives a crash.
    pub durable: bool,
    /// The desired state of its engine.
    #[schemars(with = "String")]
    pub desired: Desired,
    /// The actual state of its engine.
    #[schemars(with = "String")]
    pub state: State,
    /// True if the manager is unready on purpose, and has not sent the stop signal yet.
    pub draining: bool,
    /// The last result of its readiness probe.
    pub ready: Option<bool>,
    /// Since when its engine has served without a break in this run, as far as looks have shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<Time>,
    /// The highest sequence it has decided on.
    pub sequence: u64,
    /// The last request it has decided on.
    pub last_request: Option<LastRequest>,
    /// The current run of its engine.
    pub run: Option<Run>,
    /// How the last run ended.
    pub last_exit: Option<LastExit>,
    /// Checksum of the mounted config, if it can be read and is watched.
    pub mounted: Option<String>,
    /// A mounted file that differs from its source, for messages.
    pub lagging: Option<String>,
    /// How its live globs differ from those of the spec, for people (`live_mismatch`).
    pub live_mismatch: Option<String>,
    /// The archive of classes that its engine was told to use and does not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored_archive: Option<String>,
    /// By how many seconds its clock is ahead of the reconciler's; negative if it is behind.
    #[serde(default)]
    pub clock_ahead: i64,
    /// Digest of the variables that it would give its engine now, if it gives it any: the SHA-256 of the annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<String>,
    /// Checksum of the config it keeps as last good.
    pub last_good: Option<String>,
    /// Why its engine does not simply run.
    pub reason: Option<String>,
}

/// The last request a manager has decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRequest {
    /// Sequence of the request.
    pub sequence: u64,
    /// Stop or start.
    #[schemars(with = "String")]
    pub kind: RequestKind,
    /// True if the request was accepted.
    pub accepted: bool,
    /// Who sent it.
    pub by: String,
}

/// One run of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Random id.
    pub id: String,
    /// Checksum of the config that the run was started with, if it is certain.
    pub checksum: Option<String>,
    /// Where that config came from.
    #[schemars(with = "String")]
    pub config: ConfigChoice,
    /// Time at which the first process of the run was made, by the manager's clock, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// Digest of the variables that the run was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastExit {
    /// Id of the run.
    pub run: String,
    /// The exit code as a shell shows it, if a manager saw the end.
    pub code: Option<i32>,
    /// Reason of the end.
    #[schemars(with = "String")]
    pub reason: ExitReason,
    /// Time of the end, for messages, if a manager saw it.
    pub ended: Option<Time>,
}

impl Manager {
    /// True if the engine runs and serves, as far as the manager probes that.
    pub fn is_ready(&self) -> bool {
        self.state == State::Running && self.ready != Some(false)
    }

    /// True if the manager gives its engine the variables of the annotation.
    pub(crate) fn gives_variables(&self) -> bool {
        let run = self.run.as_ref().and_then(|run| run.variables.as_ref());
        self.variables.as_ref().or(run).is_some()
    }

    /// Checksum of the config of the engine's current run, if it is certain.
    pub(crate) fn runs_on(&self) -> Option<&String> {
        self.run.as_ref()?.checksum.as_ref()
    }

    /// A time of the manager's clock, by the clock of the reconciler.
    pub(crate) fn in_our_time(&self, at: Time) -> Time {
        Time(at.0.saturating_add_signed(self.clock_ahead.saturating_mul(-1000)))
    }

    /// Start of the engine's current run, by the clock of the reconciler.
    pub(crate) fn run_began(&self) -> Option<Time> {
        Some(self.in_our_time(self.run.as_ref()?.started?))
    }

    /// The client that sent the last request that the manager has decided on, for messages.
    pub(crate) fn last_client(&self) -> &str {
        self.last_request.as_ref().map_or("another client", |last| last.by.as_str())
    }

    /// The manager with `ready_since` from this observation and the one before.
    #[must_use]
    pub fn seen_after(self, before: Option<&Self>, now: Time) -> Self {
        let same = before.filter(|before| before.run == self.run);
        let since = same.and_then(|before| before.ready_since).unwrap_or(now);
        Self { ready_since: self.is_ready().then_some(since), ..self }
    }
}

impl From<&api::Status> for Manager {
    /// `lagging` and `live_mismatch` need the sources and the spec, `clock_ahead` the time of the
    /// answer, `ready_since` the observation before: they are left empty.
    fn from(status: &api::Status) -> Self {
        let config = status.config.as_ref();
        Self {
            version: status.manager.version.clone(),
            upgraded_from: status.manager.upgraded_from.clone(),
            pod_uid: status.manager.pod.uid.clone(),
            durable: status.manager.durable,
            desired: status.desired,
            state: status.state,
            draining: status.reason.as_ref().is_some_and(|reason| reason.code == "draining"),
            ready: status.ready,
            ready_since: None,
            sequence: status.sequence,
            last_request: status.last_request.as_ref().map(|last| LastRequest {
                sequence: last.sequence,
                kind: last.kind,
                accepted: last.accepted,
                by: last.by.clone(),
            }),
            run: status.run.as_ref().map(|run| Run {
                id: run.id.clone(),
                checksum: run.checksum.clone().filter(|_| !run.config_uncertain),
                config: run.config,
                started: Time::parse(&run.started_at).ok(),
                variables: run.environment.clone(),
            }),
            last_exit: status.last_exit.as_ref().map(|exit| LastExit {
                run: exit.run.clone(),
                code: exit.shell_code(),
                reason: exit.reason,
                ended: exit.shell_code().and_then(|_| Time::parse(&exit.at).ok()),
            }),
            mounted: config.and_then(|config| config.checksum.clone()),
            lagging: None,
            live_mismatch: None,
            ignored_archive: status
                .archive
                .as_ref()
                .and_then(|archive| (!archive.used).then(|| archive.path.clone())),
            clock_ahead: 0,
            variables: status.environment.clone(),
            last_good: config.and_then(|config| config.last_good.clone()),
            reason: status.reason.as_ref().map(|why| why.message.clone()),
        }
    }
}
