//! HTTP/1.1 on loopback, with injected faults.

use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Shared;
use super::answer::{self, Call, Reply, query};
use super::controls::How;
use super::failure::{Cause, Failure};

/// etcd's limit, with some space for the rest of the request.
const MOST_BYTES: usize = 3 * 1024 * 1024;

/// Accepts connections until it is dropped, which also ends the connections.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // If a client disconnects before it was accepted, the server continues.
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(connection(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // This option only makes answers faster.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| exchange(&shared, request));
    // The client, or a fault, has closed the connection: nothing to do.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn exchange(shared: &Arc<Shared>, request: Request<Incoming>) -> io::Result<Reply> {
    let call = match read(request).await {
        Ok(call) => call,
        Err(failure) => return Ok(answer::refusal(&failure)),
    };
    let (verb, resource) = answer::name(&call);
    let fault = shared.faults().take(verb, &resource, call.parameter("dryRun").is_some());
    let count = |code| shared.counts().add(verb, &resource, code);
    let reply = match fault {
        Some(How::Refuse(code)) => answer::refusal(&Failure::injected(code)),
        Some(How::Deny(code, message)) => answer::refusal(&Failure::denied(code, message)),
        Some(How::Forbid(field, message)) => answer::refusal(&Failure::invalid_kind(
            "",
            "Pod",
            "refused",
            &[Cause::forbidden(field, message)],
        )),
        Some(How::Rewrite(from, to)) => {
            let body = String::from_utf8_lossy(&call.body).replace(from, to);
            answer::answer(shared, &Call { body: body.into(), ..call })
        }
        Some(How::Delay(time)) => {
            sleep(time).await;
            answer::answer(shared, &call)
        }
        Some(How::Hold) => {
            let released = shared.released.acquire().await.map_err(io::Error::other)?;
            released.forget();
            answer::answer(shared, &call)
        }
        Some(How::LoseAnswer) => {
            answer::answer(shared, &call);
            count(0);
            return Err(io::Error::other("the answer is lost by a fault"));
        }
        Some(How::LoseRequest) => {
            count(0);
            return Err(io::Error::other("the request is lost by a fault"));
        }
        Some(How::Hang) => {
            count(0);
            return std::future::pending().await;
        }
        Some(How::HangAfter) => {
            answer::answer(shared, &call);
            count(0);
            return std::future::pending().await;
        }
        None => answer::answer(shared, &call),
    };
    count(reply.status().as_u16());
    Ok(reply)
}

async fn read(request: Request<Incoming>) -> Result<Call, Failure> {
    let (head, body) = request.into_parts();
    let text = |name: header::HeaderName| {
        let all = head.headers.get_all(name).iter();
        all.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
    };
    let body = Limited::new(body, MOST_BYTES).collect().await;
    let body = body.map_err(|error| Failure::bad_request(format!("the body: {error}")))?;
    Ok(Call {
        accept: text(header::ACCEPT),
        content_type: text(header::CONTENT_TYPE),
        path: head.uri.path().to_owned(),
        query: query(head.uri.query().unwrap_or_default()),
        method: head.method,
        body: body.to_bytes(),
    })
}
