//! What a manager says, as far as decisions need it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stayput_api::{self as api, ConfigChoice, Desired, ExitReason, RequestKind, State};

/// A manager's status.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// Version of its binary.
    pub version: String,
    /// The pod it says it is in.
    pub pod_uid: Option<String>,
    /// What it was asked would survive a crash.
    pub durable: bool,
    /// What its engine was asked to be.
    #[schemars(with = "String")]
    pub desired: Desired,
    /// What its engine is.
    #[schemars(with = "String")]
    pub state: State,
    /// Its probe's last answer.
    pub ready: Option<bool>,
    /// The highest sequence it has judged.
    pub sequence: u64,
    /// The last request it has judged.
    pub last_request: Option<LastRequest>,
    /// The life its engine is in.
    pub run: Option<Run>,
    /// How the last life ended.
    pub last_exit: Option<LastExit>,
    /// Checksum of the mounted config; none if it cannot be read, or is not watched.
    pub mounted: Option<String>,
    /// Which mounted file differs from its source, if one does, for sentences.
    pub lagging: Option<String>,
    /// How its live globs differ from the spec's, in a sentence (`live_mismatch`).
    pub live_mismatch: Option<String>,
    /// Checksum of the config it keeps as last good.
    pub last_good: Option<String>,
    /// Why its engine does not simply run.
    pub reason: Option<String>,
}

/// The last request a manager has judged.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct LastRequest {
    /// Its sequence.
    pub sequence: u64,
    /// Stop or start.
    #[schemars(with = "String")]
    pub kind: RequestKind,
    /// Whether it was accepted.
    pub accepted: bool,
    /// Who sent it.
    pub by: String,
}

/// One life of an engine.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Random id.
    pub id: String,
    /// Checksum of the config it was started with; none if that is not certain.
    pub checksum: Option<String>,
    /// Where that config came from.
    #[schemars(with = "String")]
    pub config: ConfigChoice,
}

/// How a life ended.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct LastExit {
    /// Id of the life.
    pub run: String,
    /// The code a shell would show.
    pub code: i32,
    /// Whose doing it was.
    #[schemars(with = "String")]
    pub reason: ExitReason,
}

impl From<&api::Status> for Manager {
    /// Takes what a status says by itself; what needs the sources or the spec for comparison
    /// (`lagging`, `live_mismatch`) is left empty.
    fn from(status: &api::Status) -> Self {
        let config = status.config.as_ref();
        Self {
            version: status.manager.version.clone(),
            pod_uid: status.manager.pod.uid.clone(),
            durable: status.manager.durable,
            desired: status.desired,
            state: status.state,
            ready: status.ready,
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
            }),
            last_exit: status.last_exit.as_ref().map(|exit| LastExit {
                run: exit.run.clone(),
                code: exit.shell_code(),
                reason: exit.reason,
            }),
            mounted: config.and_then(|config| config.checksum.clone()),
            lagging: None,
            live_mismatch: None,
            last_good: config.and_then(|config| config.last_good.clone()),
            reason: status.reason.as_ref().map(|why| why.message.clone()),
        }
    }
}
