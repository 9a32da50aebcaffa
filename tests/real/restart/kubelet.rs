//! The kubelet's part: it updates the volumes of a changed pod, and makes a pod ready when its
//! manager is. Nothing else is synced: a Secret arrives only if its pod is changed after the write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::json;

use crate::support::cluster::Cluster;
use crate::support::http::exchange;
use crate::support::kubelet::Payload;
use crate::support::kubernetes::client::Kube;

/// How often pods are checked.
const PACE: Duration = Duration::from_millis(200);
/// How long a readiness probe may take, as in a pod's spec.
const PROBE: Duration = Duration::from_secs(1);

/// This many failures in a row make a pod unready: about three probes of a pod's spec.
const FAILURES: u32 = 10;

/// A thread that ends with its guard.
pub(crate) struct Kubelet {
    ended: Arc<AtomicBool>,
    frozen: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    /// For these pods of the cluster, with their addresses.
    pub(crate) fn start(
        kubeconfig: PathBuf,
        cluster: Arc<Mutex<Cluster>>,
        addresses: BTreeMap<String, String>,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let frozen = Arc::<Mutex<BTreeSet<String>>>::default();
        let (is_over, skipped) = (ended.clone(), frozen.clone());
        let thread = thread::spawn(move || {
            let (seen, failures) = (BTreeMap::new(), BTreeMap::new());
            let kube = Kube::new(&kubeconfig);
            let mut work = Work { kube, cluster, addresses, seen, failures };
            while !is_over.load(Ordering::Relaxed) {
                work.sync(&skipped.lock().expect("a lock").clone());
                thread::sleep(PACE);
            }
        });
        Self { ended, frozen, thread: Some(thread) }
    }

    /// From now on nothing arrives in the volumes of this pod; or everything arrives again.
    pub(crate) fn set_frozen(&self, pod: &str, is_frozen: bool) {
        let mut frozen = self.frozen.lock().expect("a lock");
        if is_frozen {
            frozen.insert(pod.to_owned());
        } else {
            frozen.remove(pod);
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    kube: Kube,
    cluster: Arc<Mutex<Cluster>>,
    addresses: BTreeMap<String, String>,
    /// Each pod's annotations when its volumes were last updated.
    seen: BTreeMap<String, BTreeMap<String, String>>,
    /// Failures of the readiness probe, in a row.
    failures: BTreeMap<String, u32>,
}

impl Work {
    fn sync(&mut self, frozen: &BTreeSet<String>) {
        let Ok(pods) = self.kube.list::<Pod>() else { return };
        for pod in pods {
            let name = pod.metadata.name.clone().expect("a name");
            let Some(address) = self.addresses.get(&name).cloned() else { continue };
            let annotations = pod.metadata.annotations.clone().unwrap_or_default();
            if !frozen.contains(&name) && self.seen.get(&name) != Some(&annotations) {
                // The volume has its first content before the pod's container starts.
                let is_new = !self.seen.contains_key(&name);
                if is_new || self.mount(&name) {
                    self.seen.insert(name.clone(), annotations);
                }
            }
            let socket = {
                let cluster = self.cluster.lock().expect("a lock");
                cluster.member(&name).work().join("s.sock")
            };
            self.probe(&pod, &name, &address, &socket);
        }
    }

    /// Writes the Secret to the volume, if it has changed; returns whether the Secret was read.
    fn mount(&self, name: &str) -> bool {
        let Ok(secret) = self.kube.get::<Secret>(&format!("{name}-config")) else { return false };
        let files: Payload = secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, String::from_utf8(value.0).expect("UTF-8")))
            .collect();
        let mut cluster = self.cluster.lock().expect("a lock");
        let member = cluster.member_mut(name);
        let has = |(path, content): (&String, &String)| {
            std::fs::read_to_string(member.mount().join(path)).is_ok_and(|now| now == *content)
        };
        if !files.iter().all(has) {
            member.swap(&files);
        }
        true
    }

    fn probe(&mut self, pod: &Pod, name: &str, address: &str, socket: &Path) {
        let failures = self.failures.entry(name.to_owned()).or_insert(FAILURES);
        *failures = if is_ready(socket) { 0 } else { failures.saturating_add(1) };
        let ready = match *failures {
            0 => "True",
            FAILURES.. => "False",
            _ => return,
        };
        let shown = pod.status.as_ref().and_then(|status| {
            let condition = status.conditions.iter().flatten().find(|one| one.type_ == "Ready")?;
            Some((condition.status.as_str(), status.pod_ip.as_deref()?))
        });
        if shown == Some((ready, address)) {
            return;
        }
        let status = json!({ "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{ "ip": address }],
            "conditions": [{ "type": "Ready", "status": ready }],
        } });
        // If this fails, it is tried again in the next round.
        let _ = self.kube.merge_status::<Pod>(name, &status);
    }
}

/// The result of a readiness probe at the manager's `/readyz`.
fn is_ready(socket: &Path) -> bool {
    let ask = || -> io::Result<u16> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PROBE))?;
        exchange(stream, ("GET", "/readyz"), None).map(|answer| answer.status)
    };
    ask().is_ok_and(|code| code == 200)
}
