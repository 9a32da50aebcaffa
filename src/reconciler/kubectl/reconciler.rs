//! Asking the reconciler what it sees. It tells on its loopback only, so that somebody has to
//! forward the port, who thereby is somebody that may.

use std::path::Path;
use std::time::Duration;

use http::{Request, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use tokio::time::timeout;

use super::apiserver::root_cause;
use super::failure::Failure;
use super::view::View;
use stayput_restart::Saved;

/// Where a forwarded port is.
const USUAL: &str = "http://127.0.0.1:9198";
/// It waits for a pass in hand, and looks at everything.
const PATIENCE: Duration = Duration::from_secs(90);
/// What lets us reach it.
const REMEDY: &str = "forward its port (you need get on leases and create on pods/portforward in its \
                      namespace) and try again: kubectl -n stayput port-forward \"pod/$(kubectl -n \
                      stayput get lease stayput-reconciler -o jsonpath={.spec.holderIdentity})\" \
                      9198; or say where it is with --reconciler URL";

/// What the reconciler at `url` sees of the SearchCluster in view.
pub(super) async fn snapshot(url: Option<&str>, view: &View) -> Result<Saved, Failure> {
    let url = url.unwrap_or(USUAL);
    let uri: Uri =
        url.parse().ok().filter(|uri: &Uri| uri.scheme_str() == Some("http")).ok_or_else(|| {
            Failure::Usage(format!(
                "{url:?} is no address of a reconciler: write for example {USUAL}"
            ))
        })?;
    let text = timeout(PATIENCE, get(uri, view)).await.unwrap_or_else(|_| {
        Err(Failure::NotReachable(format!("the reconciler at {url} does not answer in time")))
    })?;
    let saved = Saved::parse(&text)
        .map_err(|why| Failure::Failed(format!("what the reconciler at {url} says: {why}")))?;
    is_same(&saved, view, url)?;
    Ok(saved)
}

async fn get(url: Uri, view: &View) -> Result<String, Failure> {
    let silent = |error: &dyn std::error::Error| {
        Failure::NotReachable(format!(
            "the reconciler cannot be asked at {url}: {}; {REMEDY}",
            root_cause(error)
        ))
    };
    let path = format!("/snapshots/{}/{}", view.namespace, view.name);
    let request = Request::get(path).body(Body::empty());
    let request = request.map_err(|error| Failure::Usage(error.to_string()))?;
    // What it refuses it says why: that is not to be asked again and again.
    let mut config = Config::new(url.clone());
    config.default_retry = false;
    let client = Client::try_from(config).map_err(|error| silent(&error))?;
    let response = client.send(request).await.map_err(|error| silent(&error))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| silent(&error))?;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    if status.is_success() {
        return Ok(text);
    }
    let why = text.lines().next().unwrap_or_default();
    Err(Failure::Failed(format!("the reconciler at {url} answers {status}: {why}")))
}

/// A forwarded port may lead to another Kubernetes than the kubeconfig does.
fn is_same(saved: &Saved, view: &View, url: &str) -> Result<(), Failure> {
    let seen = &saved.snapshot.pods;
    let ours = |uid: &String| view.pods.iter().any(|pod| pod.uid == *uid);
    if seen.is_empty() || view.pods.is_empty() || seen.iter().any(|pod| ours(&pod.uid)) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "the reconciler at {url} sees other pods in {}/{} than the apiserver has: it looks after \
         another Kubernetes",
        view.namespace, view.name
    )))
}

/// Reads a snapshot that was saved.
pub(super) fn saved(file: &Path) -> Result<Saved, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Saved::parse(&text).map_err(|error| wrong(error.to_string()))
}
