//! A cluster with the images of this repository, and a namespace for engines.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::audit::{Counts, LogPosition};
use crate::support::kubernetes::client::{Kube, NAMESPACE};
use crate::support::kubernetes::cluster::Cluster;
use crate::support::kubernetes::image::Image;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::shell::Shell;
use crate::support::wait::eventually;

/// The stand-in engine at the path of the official image's entrypoint, and the manager beside it.
pub(super) const ENGINE: &str = "stayput.test/engine:1";
/// The same image under another name.
pub(super) const OTHER: &str = "stayput.test/engine:2";
/// The home directory in the official image.
pub(super) const HOME: &str = "/usr/share/opensearch";
/// Not the path at which the documents mount the volume with the manager.
pub(super) const MANAGER: &str = "/opt/stayput";
/// The account of the reconciler in `deploy/`.
pub(super) const ACCOUNT: &str = "stayput:stayput-reconciler";
/// How long the reconciler is observed while there is nothing to do.
const REST: Duration = Duration::from_secs(20);

/// A running cluster without a reconciler.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) cluster: Cluster,
    pub(super) people: Shell,
    reader: Kube,
}

impl Fixture {
    /// A cluster in which PodSecurity restricts engines to this level; `Err` names what is missing
    /// here.
    pub(super) fn lay(security: &str) -> Result<Self, String> {
        let manager = part("STAYPUT_STATIC_BIN")?;
        let reconciler = part("STAYPUT_STATIC_RECONCILER_BIN")?;
        let engine = part("STAYPUT_STATIC_ENGINE_BIN")?;
        let began = Instant::now();
        let cluster = Cluster::start()?;
        let entrypoint = format!("{HOME}/opensearch-docker-entrypoint.sh");
        let load = |name: &str, files: &[(&Path, &str)], entrypoint: &str| {
            cluster.images.load(&Image {
                name,
                files,
                entrypoint: &[entrypoint],
                directory: "/",
                owner: 0,
            });
        };
        // The image that users know as stayput/manager:0.1.0.
        load("docker.io/stayput/manager:0.1.0", &[(&manager, "/stayput")], "/stayput");
        let program = "/stayput-reconciler";
        load("docker.io/stayput/reconciler:0.1.0", &[(&reconciler, program)], program);
        load(ENGINE, &[(&engine, &entrypoint), (&manager, MANAGER)], &entrypoint);
        cluster.images.tag(ENGINE, OTHER);
        let people = Shell::new(cluster.api.admin(), &part("STAYPUT_KUBE")?);
        let reader = Kube::new(cluster.api.admin().kubeconfig());
        let fixture = Self { cluster, people, reader };
        fixture.admin().apply(&json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "search",
                "labels": { "pod-security.kubernetes.io/enforce": security },
            },
        }));
        fixture.run(&["wait", "--for=create", "serviceaccount/default"]);
        println!("the cluster was there after {} ms", began.elapsed().as_millis());
        Ok(fixture)
    }

    pub(super) fn admin(&self) -> &Kubectl {
        self.cluster.api.admin()
    }

    /// Runs kubectl in the engines' namespace.
    #[track_caller]
    pub(super) fn run(&self, args: &[&str]) -> String {
        self.admin().run(&[&["--namespace", "search"], args].concat())
    }

    /// An object in the engines' namespace, or several: `pods/logs-0`, `pods?labelSelector=…`. Not by kubectl,
    /// since tests look for changes all the time.
    #[track_caller]
    pub(super) fn read(&self, objects: &str) -> Value {
        let kind = objects.split(['/', '?']).next().unwrap_or_default();
        let api = match kind {
            "searchclusters" => "/apis/stayput.dev/v1alpha1",
            "statefulsets" => "/apis/apps/v1",
            _ => "/api/v1",
        };
        let read = self.reader.read(&format!("{api}/namespaces/{NAMESPACE}/{objects}"));
        read.unwrap_or_else(|error| panic!("{objects}: {error}"))
    }

    /// The SearchCluster.
    #[track_caller]
    pub(super) fn logs(&self) -> Value {
        self.read("searchclusters/logs")
    }

    /// The pods of the engines.
    #[track_caller]
    pub(super) fn pods(&self) -> Vec<Value> {
        let mut list = self.read("pods?labelSelector=app%3Dlogs");
        std::mem::take(list["items"].as_array_mut().expect("a list"))
    }

    /// Changes the SearchCluster's spec.
    pub(super) fn configure(&self, spec: &Value) {
        let patch = json!({ "spec": spec }).to_string();
        self.run(&["patch", "searchcluster", "logs", "--type=merge", "--patch", &patch]);
    }

    #[track_caller]
    pub(super) fn secret(&self, name: &str, files: &[(&str, &str)]) {
        let data: Value =
            files.iter().map(|(file, text)| ((*file).to_owned(), json!(text))).collect();
        self.admin().apply(&json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": "search" },
            "stringData": data,
        }));
    }

    /// The addresses with which nodes find each other: there is no DNS, and pods have any of the
    /// first addresses.
    pub(super) fn seeds(&self) -> String {
        let hosts = self.cluster.pod_addresses().take(64);
        hosts.map(|host| format!("\"{host}\"")).collect::<Vec<_>>().join(", ")
    }

    /// The checksum of a config with these files, by the shipped program.
    pub(super) fn checksum(&self, files: &[(&str, &str)]) -> String {
        let directory = tempfile::tempdir().expect("a temp dir");
        for (name, text) in files {
            fs::write(directory.path().join(name), text).expect("a file");
        }
        let path = directory.path().to_str().expect("UTF-8");
        let program = part("STAYPUT_STATIC_BIN").expect("it was there a moment ago");
        let line = format!("'{}' checksum '{path}'", program.display());
        self.people.run(&line).split_whitespace().next().expect("a checksum").to_owned()
    }

    /// The requests of the reconciler to the apiserver since `mark`.
    pub(super) fn asked_since(&self, mark: LogPosition) -> Counts {
        Counts::of(&self.cluster.audit.since(mark, ACCOUNT))
    }

    /// When the reconciler first changed a pod since `mark`.
    pub(super) fn first_patch(&self, mark: LogPosition, pod: &str) -> SystemTime {
        let events = self.cluster.audit.since(mark, ACCOUNT);
        let event = events.iter().find(|event| {
            (&event["verb"], &event["objectRef"]["name"]) == (&json!("patch"), &json!(pod))
        });
        let at = &event.expect("the pod was patched")["requestReceivedTimestamp"];
        humantime::parse_rfc3339(at.as_str().expect("a moment")).expect("a moment")
    }

    /// Prints the requests to the apiserver since `mark` for a restart of three nodes that was asked for then.
    pub(super) fn figures(&self, mark: LogPosition, asked: Instant) {
        let counts = self.asked_since(mark);
        println!(
            "three nodes restarted: {} requests to the apiserver, {} of them writes: {counts}",
            counts.all(),
            counts.writes(),
        );
        // Operators that replace the pods need 80 and more. On a slow machine there are also writes that only
        // update the status, at most one in five seconds.
        let most = 60 + asked.elapsed().as_secs() / 5;
        let writes = u64::try_from(counts.writes()).expect("a small number");
        assert!((1..=most).contains(&writes), "{counts}");
    }

    /// Prints what the reconciler does when there is nothing to do: it must write nothing.
    pub(super) fn at_rest(&self) {
        // A pod whose probe was slow once has been reported, and the finalizer of a restart is gone.
        eventually("all pods are ready, and nothing is left of a restart", || {
            let logs = self.logs();
            let counts = &logs["status"]["counts"];
            let is_ready = logs["status"]["phase"] == "Idle" && counts["ready"] == counts["pods"];
            (is_ready && logs["metadata"]["finalizers"].is_null()).then_some(())
        });
        // A probe that is late once more on a slow machine, and the end of a restart, are still to be reported.
        let counts = eventually("nothing is written for a while", || {
            let mark = self.cluster.audit.now();
            // This time is measured; it is not a wait for something.
            std::thread::sleep(REST);
            let counts = self.asked_since(mark);
            println!("{counts}");
            (counts.writes() == 0).then_some(counts)
        });
        println!(
            "at rest: {} requests to the apiserver in {} s by both replicas: {counts}",
            counts.all(),
            REST.as_secs()
        );
    }

    /// The name of the reconciler's active replica. The Lease names one that was killed until another
    /// takes over; this waits for that.
    pub(super) fn active_reconciler(&self) -> String {
        let get = |what: &[&str], path: &str| {
            let get = [&["get", "--namespace", "stayput", "--output", path], what].concat();
            self.admin().run(&get)
        };
        eventually("a reconciler is active", || {
            let holder = get(&["lease", "stayput-reconciler"], "jsonpath={.spec.holderIdentity}");
            let pods = get(&["pods"], "jsonpath={.items[*].metadata.name}");
            pods.split(' ').any(|pod| pod == holder).then_some(holder)
        })
    }

    /// Kills the active replica; returns its name.
    pub(super) fn kill_reconciler(&self) -> String {
        let holder = self.active_reconciler();
        let delete = ["delete", "pod", &holder, "--namespace", "stayput"];
        self.admin().run(&[&delete[..], &["--grace-period=0", "--force"]].concat());
        holder
    }

    /// Waits until the SearchCluster's phase is `Idle`.
    pub(super) fn until_idle(&self) {
        eventually("the SearchCluster is idle", || {
            let logs = self.logs();
            (logs["status"]["phase"] == "Idle").then_some(())
        });
    }

    /// Waits until this many pods are not as their template.
    pub(super) fn until_pending(&self, count: u32) {
        eventually(&format!("{count} pods wait for their template"), || {
            let logs = self.logs();
            (logs["status"]["counts"]["pendingUpdate"] == count).then_some(())
        });
    }

    /// Waits until the SearchCluster owes nothing: for nodes that leave, that is after they have gone.
    pub(super) fn until_nothing_is_owed(&self) {
        eventually("nothing is owed", || {
            let logs = self.logs();
            logs["status"]["ledger"]["debts"].is_null().then_some(())
        });
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        // What a user would check first.
        for line in [
            "get pods --all-namespaces --output wide",
            "get searchclusters --all-namespaces --output yaml",
            "get events --all-namespaces --sort-by=.lastTimestamp",
            "logs --namespace stayput --selector app.kubernetes.io/name=stayput-reconciler --tail 40",
            "logs --namespace search --selector app=logs --all-containers --tail 15 --prefix",
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            let printed = self.admin().attempt(&args, "").unwrap_or_else(|error| error);
            println!("--- kubectl {line}\n{printed}");
        }
    }
}
