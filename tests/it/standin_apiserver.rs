//! The stand-in apiserver: the suite that the real one passes too, and its own controls.

use kube::Client;

use stayput_conformance::{apiserver as conformance, every_case};
use stayput_standin::apiserver::ApiServer;

mod controls;
mod program;

macro_rules! on_the_standin {
    ($($module:ident::$case:ident,)*) => { $(
        #[tokio::test]
        async fn $case() {
            let server = ApiServer::start().await.unwrap();
            conformance::$module::$case(plain(&server)).await;
        }
    )* };
}
every_case!(on_the_standin);

/// A client that returns every refusal instead of retrying.
fn plain(server: &ApiServer) -> Client {
    let mut config = server.config();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn forgotten_versions_are_expired() {
    let server = ApiServer::start().await.unwrap();
    let forget = async || {
        server.compact();
        plain(&server)
    };
    conformance::watches::forgotten_versions_are_expired(plain(&server), forget).await;
}
