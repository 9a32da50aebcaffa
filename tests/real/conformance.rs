//! The real apiserver passes the suite of the stand-in, so the stand-in behaves like it.

#![allow(clippy::unwrap_used, reason = "a test ends with a panic")]

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio::task::LocalSet;

use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::skip;
use stayput_conformance::apiserver as suite;
use stayput_conformance::every_case;

macro_rules! all_at_once {
    ($($module:ident::$case:ident,)*) => {
        /// Starts every case and returns the names of those that failed.
        async fn failures(client: &Client) -> Vec<&'static str> {
            let cases = LocalSet::new();
            let running = [$((
                stringify!($case),
                cases.spawn_local(suite::$module::$case(client.clone())),
            )),*];
            cases.await;
            let mut failed = Vec::new();
            for (name, case) in running {
                if case.await.is_err() {
                    failed.push(name);
                }
            }
            failed
        }
    };
}
every_case!(all_at_once);

#[test]
fn the_real_apiserver_does_what_the_standin_does() {
    let mut server = match ApiServer::start() {
        Ok(server) => server,
        Err(reason) => {
            return skip("conformance::the_real_apiserver_does_what_the_standin_does", &reason);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(&server).await;
        let failed = failures(&client).await;
        assert!(failed.is_empty(), "{failed:?}");
        suite::watches::forgotten_versions_are_expired(client, async || {
            // etcd drops old versions, and the caches of the apiserver start again.
            server.compact_store();
            server.start_again();
            self::client(&server).await
        })
        .await;
    });
}

async fn client(server: &ApiServer) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.admin().kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    // Every refusal must be visible.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
