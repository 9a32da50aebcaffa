//! Server-sent events: the changes of a page since the browser's version of it.
//!
//! Nothing is queued for a slow reader. When it has taken one event, the next one has all changes
//! until then.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use super::answer::Body;
use super::feed::Seen;
use super::page::{Change, Page, changes};

pub(super) const KIND: &str = "text/event-stream";

/// Interval of a comment while nothing changes, so that a reader that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// All events from now on. `version` is the version that the reader has.
pub(super) fn events(seen: Receiver<Seen>, version: Option<u64>) -> Body {
    let has = |seen: &Seen| version == Some(seen.version);
    let sent = Some(seen.borrow().clone()).filter(has).map(|seen| seen.page);
    let stream = unfold((seen, sent, false), |(mut seen, sent, waits)| async move {
        if waits {
            match timeout(KEEP_ALIVE, seen.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some((frame(":\n\n".into()), (seen, sent, true))),
            }
        }
        let now = seen.borrow_and_update().clone();
        let text = event(sent.as_deref(), &now);
        Some((frame(text), (seen, Some(Arc::clone(&now.page)), true)))
    });
    StreamBody::new(stream).boxed_unsync()
}

fn frame(text: String) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(text.into()))
}

/// One event; a comment if nothing has changed.
fn event(before: Option<&Page>, now: &Seen) -> String {
    let changed: Vec<Change<'_>> = changes(before, &now.page);
    match serde_json::to_string(&changed) {
        Ok(json) if !changed.is_empty() => format!("id: {}\ndata: {json}\n\n", now.version),
        Ok(_) | Err(_) => ":\n\n".to_owned(),
    }
}
