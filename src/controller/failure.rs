//! Failures of the steps of a reconcile.

use super::apiserver::ApiError;
use stayput_certificates::issue::IssueError;
use stayput_engine::EngineError;
use stayput_http::manager_client::{ClientError, Refused};
use stayput_kube_access::names::NoRandomNumbers;

/// Failure of a step of a reconcile; the cause is its source.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A call of the apiserver failed.
    #[error(transparent)]
    Apiserver(#[from] ApiError),
    /// The status is not the one that the decision was made from.
    #[error("another client has written the status of the SearchCluster")]
    StatusOvertaken,
    /// A request to a manager failed.
    #[error(transparent)]
    Manager(#[from] ClientError),
    /// A manager does not take a request: it is older, or our credentials do not allow it.
    #[error("the manager of {pod} does not take a {request} request: {source}")]
    NotTaken { pod: String, request: &'static str, source: Refused },
    /// A request to the engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No client of the engine: the observation that the plan was made from has none.
    #[error("the engine could not be reached at the last observation")]
    EngineNotObserved,
    /// The Lease is lost: another replica may be the leader, and its changes must stay.
    #[error(
        "the Lease was not renewed in time: nothing is changed on the engine, or of a declared \
         cluster, without it"
    )]
    LeaseLost,
    /// The pod of an action is gone.
    #[error("the pod with uid {0} is gone")]
    PodGone(String),
    /// No client of a manager: it has no address, or our credentials cannot be read.
    #[error("no request can be sent to the manager of {pod}: {why}")]
    NoClient { pod: String, why: String },
    /// The container of a changed image or size is gone.
    #[error("{pod} has no container {container} any more, or its cluster does not update pods")]
    NoContainer { pod: String, container: String },
    /// A certificate of the managers cannot be made.
    #[error("a certificate of the managers cannot be made: {0}")]
    Certificate(#[source] IssueError),
    /// A value cannot be encoded.
    #[error("cannot encode {what}: {source}")]
    Encode {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
    /// No random id for a request.
    #[error(transparent)]
    NoRandomNumbers(#[from] NoRandomNumbers),
    /// Each observation required another one.
    #[error("{0} observations in one reconcile, and each required another one")]
    NotSettled(usize),
    /// Each write of the ledger required another one.
    #[error("the ledger was written {0} times in one reconcile")]
    LedgerNotSettled(usize),
}

impl Failure {
    /// True if another client wrote first: then everything is read again.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            Self::StatusOvertaken => true,
            Self::Apiserver(error) => error.is_conflict(),
            _ => false,
        }
    }

    /// True if the object is gone: the watch will show it.
    pub(super) fn is_not_found(&self) -> bool {
        match self {
            Self::PodGone(_) | Self::NoContainer { .. } => true,
            Self::Apiserver(error) => error.is_not_found(),
            _ => false,
        }
    }
}

/// Result of a step: true if it changed anything outside.
pub(super) type Outcome = Result<bool, Failure>;

/// The outcome of two steps. Of two failures the one that is no conflict wins, because a conflict is only a
/// reason to read again; then the choice does not depend on their order.
pub(super) fn both(one: Outcome, other: Outcome) -> Outcome {
    let weight = |failure: &Failure| (failure.is_conflict(), failure.to_string());
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one || other),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
        (Err(one), Err(other)) => Err(if weight(&one) <= weight(&other) { one } else { other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_failures_the_one_that_is_no_conflict_is_reported() {
        let conflict = || Err(Failure::StatusOvertaken);
        let engine = || Err(Failure::EngineNotObserved);
        for outcome in [both(conflict(), engine()), both(engine(), conflict())] {
            assert!(matches!(outcome, Err(Failure::EngineNotObserved)));
        }
        assert!(matches!(both(Ok(false), Ok(true)), Ok(true)));
        assert!(both(Ok(true), conflict()).is_err_and(|failure| failure.is_conflict()));
    }
}
