//! What is seen ahead: a snapshot, live or saved, and the dry run made from it.

use super::args::{Eye, Meant, PlanArgs};
use super::connect::Session;
use super::failure::Failure;
use super::view::View;
use super::{find, reconciler};
use stayput_restart::{Forecast, Request, Saved, Time, forecast};

/// A dry run, and when its cluster was looked at.
#[derive(Debug)]
pub(super) struct Ahead {
    pub(super) seen: Time,
    pub(super) forecast: Forecast,
}

impl Ahead {
    pub(super) fn of(saved: &Saved, request: Option<&Request>) -> Self {
        let Saved { snapshot, policy, .. } = saved;
        Self { seen: snapshot.now, forecast: forecast(snapshot, policy, request) }
    }
}

/// A cluster in view, what is seen ahead of it, and if nothing is, why not.
pub(super) struct Planned {
    pub(super) view: View,
    pub(super) ahead: Result<Ahead, String>,
}

/// What `plan` shows.
pub(super) async fn plan(session: Option<&Session>, args: &PlanArgs) -> Result<Planned, Failure> {
    let request = args.meant.request();
    let request = request.as_ref();
    let (Some(session), None) = (session, &args.snapshot) else {
        let saved = args.snapshot.as_deref().map(reconciler::saved).transpose()?;
        let saved = saved.ok_or_else(|| Failure::Usage("name a file with --snapshot".into()))?;
        let view = View::replayed(&saved);
        return Ok(Planned { view, ahead: Ok(Ahead::of(&saved, request)) });
    };
    let view = find::view(session, args.which.cluster.as_deref()).await?;
    let ahead = match reconciler::snapshot(args.eye.reconciler.as_deref(), &view).await {
        Ok(saved) => Ok(Ahead::of(&saved, request)),
        // Somebody who says where it is, or asks what it alone can tell, wants to know.
        Err(failure) if args.eye.reconciler.is_some() || request.is_some() => return Err(failure),
        Err(failure) => Err(failure.to_string()),
    };
    Ok(Planned { view, ahead })
}

/// What a request would do, if the reconciler can be asked.
pub(super) async fn of_request(view: &View, eye: &Eye, request: &Request) -> Option<Ahead> {
    let saved = reconciler::snapshot(eye.reconciler.as_deref(), view).await.ok()?;
    Some(Ahead::of(&saved, Some(request)))
}

impl Meant {
    /// What is asked about; none if nothing was said.
    fn request(&self) -> Option<Request> {
        let (strategy, target) = self.split();
        let request = Request { id: "dry-run".into(), strategy, target, ..Request::default() };
        self.is_given().then_some(request)
    }
}
