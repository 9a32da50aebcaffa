//! Commands that change something: each writes an annotation (a request with our finalizer) or
//! `spec.paused`, and only onto objects that have not changed since they were read.

pub(crate) mod keep_stopped;
pub(crate) mod requests;

use std::io::{self, BufRead, IsTerminal, Write};

use json_patch::{Patch, PatchOperation};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::patch_operations::{
    add, annotation, is_at_version, place, remove, set_finalizers,
};
use stayput_restart::annotation::{FINALIZER, REQUEST};
use stayput_restart::{Request, Strategy};

use crate::apiserver::ApiError;
use crate::error::Exit;
use crate::format::{NOT_PROCESSED, names_are, node_count};
use crate::selection::SelectionError;
use crate::session::Session;
use crate::snapshot::DatedForecast;
use crate::view::ClusterView;

/// Result of a command, for people and for programs.
#[derive(Debug)]
pub(crate) struct ActionReport {
    pub(crate) page: String,
    pub(crate) output: ActionOutput,
}

impl ActionReport {
    /// The report without the fields that only some commands add.
    pub(crate) fn new(view: &ClusterView, result: ActionResult, page: String) -> Self {
        let output = ActionOutput {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            result,
            id: None,
            strategy: None,
            nodes: Vec::new(),
            steps: Vec::new(),
            forecast: None,
            no_forecast: None,
            reconciler: view.reconciler.warning(),
        };
        Self { page, output }
    }
}

/// `restart`, `cancel`, `pause`, `resume`, `stop`, `start` and `detach`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionOutput {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) result: ActionResult,
    /// Id of the restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<Strategy>,
    /// Names of the nodes concerned. For a restart: in its order, as far as that is known without the
    /// engine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Of `detach`: what is done, or would be, in its order; for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<String>,
    /// Of `restart --dry-run`: what the request would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<Box<DatedForecast>>,
    /// Of `restart --dry-run`: why the reconciler gave no snapshot to work that out from; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_forecast: Option<String>,
    /// Why no reconciler works, and what to read about that; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reconciler: Option<String>,
}

/// Result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ActionResult {
    /// The restart is requested.
    Requested,
    /// Nothing: a restart with this id was requested before.
    AlreadyRequested,
    /// The cancellation of the restart is requested.
    CancelRequested,
    /// The request was removed before the reconciler accepted it.
    Withdrawn,
    /// The nodes are marked to be kept stopped.
    StopRequested,
    /// The nodes are no longer marked to be kept stopped.
    StartRequested,
    /// The cluster is paused: no further node is stopped.
    Paused,
    /// The cluster is paused no longer.
    Resumed,
    /// Nothing: it was so already.
    Unchanged,
    /// The SearchCluster is gone, and nothing of ours is left on its pods.
    Detached,
    /// Nothing: a dry run.
    DryRun,
    /// Nothing: a dry run of a request that the reconciler would refuse.
    WouldBeRefused,
}

/// Maximum number of attempts for a patch.
const MAX_ATTEMPTS: usize = 5;

/// The attempts to patch one object.
#[derive(Default)]
pub(crate) struct Attempts {
    refused: usize,
    /// Resource version and answer of the last attempt, if the answer may be about the patch itself.
    last: Option<(String, ApiError)>,
}

impl Attempts {
    /// Patches the SearchCluster of this name and version. False if it has to be read again first.
    ///
    /// # Errors
    /// If reading it again cannot help, or others changed it too often.
    pub(crate) async fn patch_cluster(
        &mut self,
        session: &Session,
        name: &str,
        version: &str,
        patch: Patch,
    ) -> Result<bool, ActionError> {
        self.next("SearchCluster", name, version)?;
        self.taken(version, session.objects::<SearchCluster>().patch(name, patch).await)
    }

    /// Starts the next attempt, with kind, name and resource version of the object as it is now.
    ///
    /// # Errors
    /// If another attempt would be refused as the last one was, or there were too many.
    pub(crate) fn next(
        &mut self,
        kind: &str,
        name: &str,
        version: &str,
    ) -> Result<(), ActionError> {
        if let Some((refused, error)) = self.last.take()
            && refused == version
        {
            return Err(error.into());
        }
        if self.refused < MAX_ATTEMPTS {
            Ok(())
        } else {
            Err(ActionError::Conflict { object: format!("{kind} {name}") })
        }
    }

    /// Records the answer: `version` is the version that was read before. False if the attempt was refused.
    ///
    /// # Errors
    /// If reading the object again cannot help.
    pub(crate) fn taken<T>(
        &mut self,
        version: &str,
        answer: Result<T, ApiError>,
    ) -> Result<bool, ActionError> {
        let Err(error) = answer else { return Ok(true) };
        if !error.is_conflict() && !error.is_unprocessable() {
            return Err(error.into());
        }
        self.refused += 1;
        if error.is_unprocessable() {
            self.last = Some((version.to_owned(), error));
        }
        Ok(false)
    }
}

/// True if a restart needs to be confirmed.
pub(crate) fn may_be_outage(request: &Request) -> bool {
    request.allow_outage || request.strategy == Strategy::Coordinated
}

/// The question before a restart that may be an outage.
pub(crate) fn outage(view: &ClusterView, request: &Request) -> String {
    let count = match request.target.nodes.len() {
        0 => view.restart_order().len(),
        count => count,
    };
    let (nodes, name) = (node_count(count), &view.name);
    match request.strategy {
        Strategy::Coordinated => format!(
            "A coordinated restart is an outage: {nodes} of {name} are stopped together before any is \
             started."
        ),
        Strategy::Rolling | Strategy::Immediate => format!(
            "This restart of {nodes} of {name} may be an outage: a node is stopped even if no master \
             can be elected, or a shard has no copy, until it is back."
        ),
    }
}

/// An error unless the user types `yes`.
pub(crate) fn confirm(question: String) -> Result<(), ActionError> {
    if !io::stdin().is_terminal() {
        return Err(ActionError::NotInteractive { question });
    }
    // stdout may be read by a program.
    let mut stderr = io::stderr();
    write!(stderr, "{question}\nType yes to confirm: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(ActionError::NotConfirmed) }
}

/// Writes a request onto a SearchCluster, with our finalizer if the reconciler is known to work: it
/// needs both before the first stop, and would write the finalizer in a patch of its own.
pub(crate) fn request_patch(view: &ClusterView, text: &str, reconciler_works: bool) -> Patch {
    let (version, has_annotations) = (&view.resource_version, view.has_annotations);
    let mut patch = steps_of_annotation(version, has_annotations, REQUEST, Some(text));
    let is_there = view.finalizers.iter().any(|one| one == FINALIZER);
    if reconciler_works && !is_there {
        let all: Vec<String> = view.finalizers.iter().cloned().chain([FINALIZER.into()]).collect();
        patch.push(set_finalizers(&all));
    }
    Patch(patch)
}

/// Sets an annotation, or removes it if there is no value.
pub(crate) fn set_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Patch {
    Patch(steps_of_annotation(resource_version, has_annotations, key, value))
}

fn steps_of_annotation(
    resource_version: &str,
    has_annotations: bool,
    key: &str,
    value: Option<&str>,
) -> Vec<PatchOperation> {
    let mut patch = vec![is_at_version(Some(resource_version))];
    if !has_annotations {
        patch.push(add(place(["metadata", "annotations"]), json!({})));
    }
    patch.push(match value {
        Some(value) => add(annotation(key), value),
        None => remove(annotation(key)),
    });
    patch
}

/// Sets `spec.paused` of a SearchCluster.
pub(crate) fn set_paused(resource_version: &str, paused: bool) -> Patch {
    Patch(vec![is_at_version(Some(resource_version)), add(place(["spec", "paused"]), paused)])
}

/// Why a command changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("{object} was changed by others {MAX_ATTEMPTS} times meanwhile: try again")]
    Conflict { object: String },

    #[error("{message}")]
    InvalidRequest { message: String },
    #[error("the request cannot be encoded: {0}")]
    Encoding(#[source] serde_json::Error),
    #[error("the system gives no random numbers: choose an id with --id")]
    NoRandomId,
    #[error("{question} To confirm, add --yes")]
    NotInteractive { question: String },
    #[error("not confirmed; nothing was changed")]
    NotConfirmed,

    #[error("SearchCluster {0} is being deleted: no further restart begins")]
    Deleting(String),
    #[error("{NOT_PROCESSED}")]
    NotProcessed,
    #[error(
        "restart {id} was requested and is not accepted yet: wait, or withdraw it with `{cancel}`"
    )]
    OtherRequested { id: String, cancel: String },
    #[error(
        "{cluster} has no node {node}; there are: {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    UnknownNode { cluster: String, node: String, known: Vec<String> },
    #[error("{node} is kept stopped and is not restarted: start it with `{start}`")]
    NodeKeptStopped { node: String, start: String },
    #[error("{cluster} has no node that may be restarted: see `{status}`")]
    NoNodes { cluster: String, status: String },

    #[error(
        "restart {id} already stops no further node; it will end as {outcome}{}",
        next.as_ref().map(|next| format!("; {next}")).unwrap_or_default()
    )]
    AlreadyEnding { id: String, outcome: &'static str, next: Option<String> },
    #[error("cancellation of restart {id} is not accepted yet: wait")]
    OtherCancelled { id: String },
    #[error("restart {id} cannot be cancelled any more: {reason}")]
    NotCancellable { id: String, reason: String },
    #[error("restart {id} has ended: {outcome}")]
    AlreadyEnded { id: String, outcome: &'static str },
    #[error("{cluster} has no restart {id}: see `{status}`")]
    UnknownRestart { cluster: String, id: String, status: String },
    #[error("{0} has no restart under way and no request for one")]
    NoRestart(String),

    #[error("{} already asked for; {node}: {error}; to take that back: `{back}`", names_are(done))]
    Partly { done: Vec<String>, node: String, error: Box<Self>, back: String },
    #[error("the pod of {0} no longer exists")]
    PodGone(String),
    #[error(
        "spec.stopped of SearchCluster {cluster} names {node}: remove it there, `{edit}`; nothing was \
         changed"
    )]
    KeptStoppedBySpec { cluster: String, node: String, edit: String },
}

impl ActionError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Api(error) => error.into(),
            Self::Partly { error, .. } => error.exit(),
            Self::InvalidRequest { .. } | Self::NotInteractive { .. } => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::tests::watched_pods;

    fn error(code: u16) -> ApiError {
        let status = Status { code, message: "a webhook says no".into(), ..Status::default() };
        ApiError::of(&watched_pods(), kube::Error::Api(Box::new(status)))
    }

    fn next(attempts: &mut Attempts, version: &str) -> Result<(), ActionError> {
        attempts.next("SearchCluster", "logs", version)
    }

    #[tokio::test]
    async fn a_refusal_of_what_nobody_has_changed_is_the_apiservers_own() {
        let mut attempts = Attempts::default();
        next(&mut attempts, "1").unwrap();
        assert!(!attempts.taken::<()>("1", Err(error(422))).unwrap());
        let told = next(&mut attempts, "1").unwrap_err().to_string();
        assert!(told.contains("a webhook says no"), "{told}");
    }

    #[tokio::test]
    async fn what_others_change_again_and_again_is_named() {
        for code in [409, 422] {
            let mut attempts = Attempts::default();
            for version in 0..MAX_ATTEMPTS {
                next(&mut attempts, &version.to_string()).unwrap();
                assert!(!attempts.taken::<()>(&version.to_string(), Err(error(code))).unwrap());
            }
            let told = next(&mut attempts, "9").unwrap_err().to_string();
            let expected = "SearchCluster logs was changed by others 5 times meanwhile: try again";
            assert_eq!(told, expected);
        }
        assert!(Attempts::default().taken::<()>("1", Err(error(403))).is_err());
    }
}
