//! Dry runs: a snapshot, taken now or read from a file, and the forecast computed from it.

use stayput_restart::{Forecast, Request, Saved, Time, forecast};

use crate::args::{PlanArgs, ReconcilerArg, ScopeArgs};
use crate::reconciler_client;
use crate::reconciler_client::SnapshotError;
use crate::session::Session;
use crate::view::ClusterView;

/// A dry run, and the time at which its cluster was observed.
#[derive(Debug)]
pub(crate) struct DatedForecast {
    pub(crate) observed_at: Time,
    pub(crate) forecast: Forecast,
}

impl DatedForecast {
    /// The dry run of this request; without one, of the restart under way or to come.
    pub(crate) fn new(saved: &Saved, request: Option<&Request>) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        Self { observed_at: snapshot.now, forecast: forecast(snapshot, policy, request) }
    }
}

/// The dry run of `plan`, computed from a snapshot taken now.
pub(crate) async fn live(
    session: &Session,
    view: &ClusterView,
    args: &PlanArgs,
) -> Result<DatedForecast, SnapshotError> {
    let address = args.reconciler.address.as_deref();
    let saved = reconciler_client::snapshot(session, address, view).await?;
    Ok(from_saved(&saved, &args.scope))
}

/// The dry run of `plan`, computed from a saved snapshot.
pub(crate) fn from_saved(saved: &Saved, scope: &ScopeArgs) -> DatedForecast {
    DatedForecast::new(saved, dry_run_request(scope).as_ref())
}

/// The dry run of a request, computed from a snapshot taken now.
///
/// # Errors
/// If the reconciler gives no snapshot.
pub(crate) async fn of_request(
    session: &Session,
    view: &ClusterView,
    reconciler: &ReconcilerArg,
    request: &Request,
) -> Result<DatedForecast, SnapshotError> {
    let address = reconciler.address.as_deref();
    let saved = reconciler_client::snapshot(session, address, view).await?;
    Ok(DatedForecast::new(&saved, Some(request)))
}

/// The request for a dry run, if the command line names a scope.
fn dry_run_request(scope: &ScopeArgs) -> Option<Request> {
    let (strategy, target) = scope.strategy_and_target();
    let request = Request { id: "dry-run".into(), strategy, target, ..Request::default() };
    scope.is_given().then_some(request)
}
