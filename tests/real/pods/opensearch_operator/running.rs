//! The operator on a thread of its own, and everything that it did.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use stayput_standin::opensearch_operator::{Action, Look, Operator};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::support::wait::eventually_briefly;

/// Namespace of the operator, as its chart and `deploy/keep-pods` name it.
const NAMESPACE: &str = "opensearch-operator-system";
/// Where the engine in the pods reads its config.
pub(super) const CONFIG_PATH: &str = "/config/opensearch.yml";

/// A running operator; it ends when this is dropped.
pub(super) struct Running {
    looks: Arc<Mutex<Vec<Look>>>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Running {
    /// The operator of the `OpenSearchCluster` `logs`, with `base` as the template of its pods. It is the account of
    /// its chart.
    pub(super) fn start(kubeconfig: &Path, base: Value) -> Self {
        let (kubeconfig, looks) = (kubeconfig.to_owned(), Arc::default());
        let (stop, stopped) = oneshot::channel();
        let seen = Arc::clone(&looks);
        let began = Instant::now();
        let task = spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let names = ["search", "logs"];
                let operator = Operator::new(client(&kubeconfig).await, names, base, CONFIG_PATH);
                let run = operator.run(|look| record(&seen, look, began));
                tokio::select! { () = run => {}, _ = stopped => {} }
            });
        });
        Self { looks, stop: Some(stop), task: Some(task) }
    }

    /// The number of looks until now.
    pub(super) fn looks(&self) -> usize {
        self.looks.lock().expect("a lock").len()
    }

    /// Everything that was done since that many looks.
    pub(super) fn done_since(&self, looks: usize) -> Vec<Action> {
        let all = self.looks.lock().expect("a lock");
        all[looks..].iter().flat_map(|look| look.done.clone()).collect()
    }

    /// Waits for the next look that is like this.
    pub(super) fn until(&self, what: &str, is_so: impl Fn(&Look) -> bool) {
        let known = self.looks();
        eventually_briefly(what, || {
            let all = self.looks.lock().expect("a lock");
            all[known..].iter().any(&is_so).then_some(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            // A test that has failed says why itself.
            let _ = task.join();
        }
    }
}

fn record(looks: &Mutex<Vec<Look>>, look: &Look, began: Instant) {
    let mut looks = looks.lock().expect("a lock");
    let is_news =
        looks.last().is_none_or(|last| (&last.done, &last.refused) != (&look.done, &look.refused));
    if is_news {
        let refused = look.refused.as_deref().unwrap_or_default();
        println!("operator, {} ms: {:?} {refused}", began.elapsed().as_millis(), look.done);
    }
    looks.push(look.clone());
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a config");
    config.auth_info.impersonate = Some(account());
    config.auth_info.impersonate_groups = Some(groups().into());
    Client::try_from(config).expect("a client")
}

/// The operator's account.
pub(super) fn account() -> String {
    format!("system:serviceaccount:{NAMESPACE}:opensearch-operator-controller-manager")
}

/// The groups that it is in.
pub(super) fn groups() -> [String; 3] {
    ["system:authenticated".into(), "system:serviceaccounts".into(), group()]
}

/// The group of the accounts in the operator's namespace.
pub(super) fn group() -> String {
    format!("system:serviceaccounts:{NAMESPACE}")
}
