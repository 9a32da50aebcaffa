//! `GET /snapshots/{namespace}/{name}`: what the next decision would be made from. On the loopback
//! alone: who reaches it may forward a port of this pod, or is on this machine.

use std::net::IpAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::listen::text;
use super::window::Windows;

const PREFIX: &str = "/snapshots/";

/// Answers one request.
pub(super) async fn answer(request: Request<Incoming>, windows: Windows) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    if !is_local(&request) {
        let message = "only for localhost: this is not what a browser was sent here for\n";
        return text(StatusCode::FORBIDDEN, message);
    }
    let path = request.uri().path().strip_prefix(PREFIX).and_then(|path| path.split_once('/'));
    let Some((namespace, name)) = path.filter(|(_, name)| !name.contains('/')) else {
        return text(StatusCode::NOT_FOUND, "here is /snapshots/{namespace}/{name}\n");
    };
    match windows.look(namespace, name).await {
        Ok(saved) => json(&saved),
        Err(message) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{message}\n")),
    }
}

/// Whether it was sent to the loopback by name: a page in a browser may make others send us.
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
            let message = format!("the snapshot cannot be written: {error}\n");
            text(StatusCode::INTERNAL_SERVER_ERROR, &message)
        }
    }
}
