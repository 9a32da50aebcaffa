//! The engine client with real engines: every call, every field.

mod by_hand;
mod secured;
mod three;

use std::time::Duration;

use stayput_engine::{Access, Endpoint, EngineClient};

/// Longer than any answer of these engines takes on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

pub(crate) fn client(endpoints: &[(String, u16)], access: &Access) -> EngineClient {
    let endpoints: Vec<Endpoint> =
        endpoints.iter().map(|(host, port)| Endpoint { host: host.clone(), port: *port }).collect();
    EngineClient::new(&endpoints, access, BOUND).expect("a client")
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
