//! Waits for a definition that was applied a moment ago.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::apiserver::clusters;
use crate::apiserver::server::definition;
use crate::session::Session;

/// Maximum wait. Several apiservers serve a new definition after five seconds, so that each of them
/// knows it.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until SearchClusters are served, if their definition exists. The calls that follow report any
/// other problem.
pub(crate) async fn until_served(session: &Session) {
    let deadline = Instant::now() + SERVED_WITHIN;
    while clusters(session).await.is_err_and(|error| error.is_not_found())
        && definition(&session.client).await.is_ok_and(|there| there.is_some())
        && Instant::now() < deadline
    {
        sleep(PAUSE).await;
    }
}
