//! A cluster with a node that runs pods.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::container::manager_image;
use crate::support::curl::Curl;
use crate::support::kubernetes::cluster::Cluster;
use crate::support::kubernetes::image::Image;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip;
use crate::support::wait::eventually;

const IMAGE: &str = "stayput.test/manager:1";

#[test] // proves OPERATE-18, DOCTOR-12
fn a_pod_of_the_manager() {
    const TEST: &str = "kubernetes::cluster::a_pod_of_the_manager";
    let Some(binary) = std::env::var_os("STAYPUT_STATIC_BIN") else {
        return skip(TEST, "no STAYPUT_STATIC_BIN");
    };
    let began = Instant::now();
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return skip(TEST, &why),
    };
    println!("the cluster was there after {} ms", began.elapsed().as_millis());
    let files = [(Path::new(&binary), "/stayput")];
    cluster.images.load(&Image {
        name: IMAGE,
        files: &files,
        entrypoint: &["/stayput"],
        directory: "/",
        owner: 0,
    });
    let admin = cluster.api.admin();
    admin.apply(&json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "search",
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
        },
    }));
    let kubectl = Search(admin);
    // For localhost, the name with which the pod is called.
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let authority = cluster.api.directory().join("manager.crt");
    fs::write(&authority, made.cert.pem()).expect("a certificate");
    kubectl.secret(
        "keys",
        &[
            ("tls.crt", &made.cert.pem()),
            ("tls.key", &made.signing_key.serialize_pem()),
            ("jwt.key", &"k".repeat(32)),
        ],
    );
    kubectl.secret("config", &[("opensearch.yml", "first")]);
    admin.run(&["wait", "--for=create", "serviceaccount/default", "-n", "search"]);

    refuses_what_is_not_restricted(&kubectl);
    admin.apply(&pod(IMAGE));
    kubectl.run(&["wait", "--for=condition=Ready", "--timeout=120s", "pod/es-0"]);
    let address = kubectl.run(&["get", "pod", "es-0", "--output", "jsonpath={.status.podIP}"]);
    assert_eq!(Curl::tls_at(&address, 9199, &authority).get("/readyz").status, 200);
    assert!(kubectl.run(&["logs", "es-0"]).contains("\"message\""), "no log");
    let status = kubectl.run(&["exec", "es-0", "--", "/stayput", "status", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["state"], &status["manager"]["pid"]), (&json!("running"), &json!(1)));
    a_secret_changes_at_once_with_a_patch_of_the_pod(&kubectl);
    if let Err(why) = super::helm::installed_and_removed(&cluster) {
        skip("kubernetes::helm::installed_and_removed", &why);
    }
    super::orphans::stay(admin);
    match manager_image() {
        Ok(image) => an_image_of_the_docker_engine(&cluster, image),
        Err(why) => skip("kubernetes::cluster::an_image_of_the_docker_engine", &why),
    }
}

/// kubectl in the pods' namespace.
struct Search<'a>(&'a Kubectl);

impl Search<'_> {
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        self.0.run(&[&["--namespace", "search"], args].concat())
    }

    #[track_caller]
    fn secret(&self, name: &str, files: &[(&str, &str)]) {
        let data: Value =
            files.iter().map(|(file, text)| ((*file).to_owned(), json!(text))).collect();
        self.0.apply(&json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": "search" },
            "stringData": data,
        }));
    }
}

/// The manager of an engine that is ready when the pod can reach the apiserver.
fn pod(image: &str) -> Value {
    let server = "tcp://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)";
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "es-0", "namespace": "search" },
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 1000,
                "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "engine",
                "image": image,
                "imagePullPolicy": "Never",
                "args": ["run", "--state-dir", "/state", "--listen", ":9199", "--ready", server,
                    "--", "/stayput", "status", "--watch"],
                "env": [
                    { "name": "STAYPUT_SOCKET", "value": "/state/s.sock" },
                    { "name": "STAYPUT_TLS_CERT", "value": "/keys/tls.crt" },
                    { "name": "STAYPUT_TLS_KEY", "value": "/keys/tls.key" },
                    { "name": "STAYPUT_JWT_KEY", "value": "/keys/jwt.key" },
                    { "name": "STAYPUT_JWT_AUDIENCE", "value": "test" },
                ],
                "readinessProbe": {
                    "httpGet": { "path": "/readyz", "port": 9199, "scheme": "HTTPS" },
                    "periodSeconds": 1,
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
                "volumeMounts": [
                    { "name": "state", "mountPath": "/state" },
                    { "name": "keys", "mountPath": "/keys" },
                    { "name": "config", "mountPath": "/config" },
                ],
            }],
            "volumes": [
                { "name": "state", "emptyDir": {} },
                { "name": "keys", "secret": { "secretName": "keys" } },
                { "name": "config", "secret": { "secretName": "config" } },
            ],
        },
    })
}

fn refuses_what_is_not_restricted(kubectl: &Search<'_>) {
    let mut pod = pod(IMAGE);
    pod["spec"]["containers"][0]["securityContext"] = json!({ "privileged": true });
    let refused = kubectl.0.attempt(&["apply", "--filename", "-"], &pod.to_string());
    assert!(refused.is_err_and(|reason| reason.contains("violates PodSecurity")));
}

/// The kubelet updates a pod's volumes when the pod changes, otherwise after a minute or more.
fn a_secret_changes_at_once_with_a_patch_of_the_pod(kubectl: &Search<'_>) {
    let checksum = || kubectl.run(&["exec", "es-0", "--", "/stayput", "checksum", "/config"]);
    let before = checksum();
    kubectl.secret("config", &[("opensearch.yml", "second")]);
    let written = Instant::now();
    let mut touches = 0;
    eventually("the volume changes", || {
        // As the reconciler does: at the first touch the kubelet may have read the old secret.
        if written.elapsed() >= Duration::from_secs(10) * touches {
            touches += 1;
            let touched = format!("test.stayput.dev/touched={touches}");
            kubectl.run(&["annotate", "--overwrite", "pod", "es-0", &touched]);
        }
        (checksum() != before).then_some(())
    });
    let waited = written.elapsed();
    println!("the volume had changed {} ms after the secret", waited.as_millis());
    assert!(waited < Duration::from_secs(40), "{waited:?}: the patch did not do it");
}

fn an_image_of_the_docker_engine(cluster: &Cluster, image: &str) {
    cluster.images.load_from_docker(image);
    let kubectl = cluster.api.admin();
    let image = format!("--image={image}");
    let run = ["run", "version", &image, "--image-pull-policy=Never", "--restart=Never"];
    kubectl.run(&[&run[..], &["--", "version"]].concat());
    let done = "--for=jsonpath={.status.phase}=Succeeded";
    kubectl.run(&["wait", done, "--timeout=120s", "pod/version"]);
    assert!(kubectl.run(&["logs", "version"]).contains(env!("CARGO_PKG_VERSION")));
}
