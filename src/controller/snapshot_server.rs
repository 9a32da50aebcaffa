//! `GET /snapshots/{namespace}/{name}`: the snapshot that the next decision would be made from. Only on the
//! loopback address: its clients are on this machine, or may forward a port of this pod.

use std::net::IpAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::http_server::text;
use super::snapshot_requests::SnapshotQueues;

const PREFIX: &str = "/snapshots/";

/// Answers one request.
pub(super) async fn answer(
    request: Request<Incoming>,
    queues: SnapshotQueues,
) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    if !is_local(&request) {
        let message = "only for requests to localhost by name\n";
        return text(StatusCode::FORBIDDEN, message);
    }
    let path = request.uri().path().strip_prefix(PREFIX).and_then(|path| path.split_once('/'));
    let Some((namespace, name)) = path.filter(|(_, name)| !name.contains('/')) else {
        return text(
            StatusCode::NOT_FOUND,
            "not found: the path is /snapshots/{namespace}/{name}\n",
        );
    };
    match queues.request(namespace, name).await {
        Ok(saved) => json(&saved),
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
    }
}

/// True if the request names the loopback address as its host. A web page may make a browser send requests
/// here, but under the name of its own host.
fn is_local(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<http::uri::Authority>().ok()) else {
        return false;
    };
    let host = authority.host().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn json(saved: &impl Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_vec(saved) {
        Ok(body) => {
            let mut response = Response::new(Full::new(Bytes::from(body)));
            let content_type = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        }
        Err(error) => {
            let message = format!("cannot encode the snapshot: {error}\n");
            text(StatusCode::INTERNAL_SERVER_ERROR, &message)
        }
    }
}
