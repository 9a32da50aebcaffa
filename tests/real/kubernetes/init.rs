//! `kubectl stayput init` on a real apiserver, by a person with all rights in one
//! namespace only; and the reconciler, with its own rights, which renews what was made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use stayput_certificates::issue::{Pair, serving};
use stayput_controller::{Settings, run};

use super::plain_set::plain_set;
use super::{cert_manager, completion};
use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip;
use crate::support::wait::eventually;

const ACCOUNT: &str = "system:serviceaccount:stayput:stayput-reconciler";
const DAY: u64 = 24 * 3600;
const OPTIONS: [&str; 2] = ["--namespace", "search"];

#[test] // proves RESTART-5, RESTART-8, OPERATE-15, OPERATE-21
fn made_by_a_person_and_renewed_by_the_reconciler() {
    const TEST: &str = "kubernetes::init::made_by_a_person_and_renewed_by_the_reconciler";
    let mut server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => return skip(TEST, &why),
    };
    let admin = &server.admin().clone();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    admin.run(&["apply", "-k", deploy.to_str().expect("a path in UTF-8")]);
    let name = "customresourcedefinition/searchclusters.stayput.dev";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    admin.run(&["create", "namespace", "search"]);
    admin.apply(&plain_set("search"));
    let user = ["--user=alice", "--clusterrole=cluster-admin", "--namespace=search"];
    admin.run(&[&["create", "rolebinding", "alice"][..], &user].concat());
    let discovery = "--clusterrole=system:service-account-issuer-discovery";
    admin.run(&["create", "clusterrolebinding", "alice", "--user=alice", discovery]);

    let alice = server.user("alice", "people");
    for right in [&["get", "secrets", "-n", "search"][..], &["get", "--raw", "/openid/v1/jwks"]] {
        eventually("the binding counts", || alice.attempt(right, "").ok());
    }
    let made = init(&alice, &OPTIONS).expect("it succeeds");
    assert!(all_are(&made, "made"), "{made:#}");
    let again = init(&alice, &OPTIONS).expect("it succeeds");
    assert!(all_are(&again, "unchanged"), "{again:#}");
    let keys = admin.json(&["get", "configmap", "cluster-jwks", "--namespace", "search"]);
    assert_eq!(keys["data"]["issuer"], server.url());
    assert!(keys["data"]["jwks.json"].as_str().is_some_and(|keys| keys.contains("RS256")));
    verified(&server);
    rights(admin);
    completion::completed(&server);
    cert_manager::ordered(admin, |options| init(admin, options).expect("it succeeds"));
    server.rotate_token_key();
    renewed(&server);
}

fn init(person: &Kubectl, options: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"))
        .args(["init", "logs", "--output", "json"])
        .args(options)
        .env("KUBECONFIG", person.kubeconfig())
        .output()
        .expect("kubectl-stayput can be executed");
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).expect("JSON"))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn all_are(output: &Value, result: &str) -> bool {
    let objects = output["objects"].as_array().expect("a list");
    objects.len() == 8 && objects.iter().all(|object| object["result"] == result)
}

/// A Secret's file, as text.
fn file(admin: &Kubectl, secret: &str, key: &str) -> String {
    let template = format!("go-template={{{{index .data \"{key}\" | base64decode}}}}");
    admin.run(&["get", "secret", secret, "--namespace", "search", "--output", &template])
}

/// OpenSSL accepts the certificate.
fn verified(server: &ApiServer) {
    let at = |name: &str| server.directory().join(name);
    for (secret, key, name) in
        [("logs-manager-ca", "ca.crt", "ca.pem"), ("logs-manager-tls", "tls.crt", "tls.pem")]
    {
        fs::write(at(name), file(server.admin(), secret, key)).expect("a file");
    }
    let verified = Command::new("openssl")
        .args(["verify", "-purpose", "sslserver", "-verify_hostname", "stayput", "-CAfile"])
        .args([at("ca.pem"), at("tls.pem")])
        .status();
    assert!(verified.expect("openssl can be executed").success());
}

/// The reconciler may change these objects, and no others.
fn rights(admin: &Kubectl) {
    let may = |verb: &str, what: &str| {
        let account = format!("--as={ACCOUNT}");
        let args = ["auth", "can-i", verb, what, "--namespace", "search", &account];
        admin.attempt(&args, "").is_ok()
    };
    let ours =
        ["secrets/logs-manager-ca", "secrets/logs-manager-ca-key", "secrets/logs-manager-tls"];
    for what in ours.into_iter().chain(["configmaps/cluster-jwks"]) {
        assert!(may("patch", what), "{what}");
        assert!(!may("delete", what) && !may("update", what), "{what}");
    }
    assert!(!may("patch", "secrets/other") && !may("patch", "configmaps/other"));
    assert!(!may("create", "secrets") && !may("list", "secrets"));
}

/// A certificate that is 300 days old, in the place of the new one, and a key that the apiserver has signed
/// tokens with since then.
fn renewed(server: &ApiServer) {
    let admin = server.admin();
    let ca = Pair {
        certificate: file(admin, "logs-manager-ca-key", "tls.crt"),
        key: file(admin, "logs-manager-ca-key", "tls.key"),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let old = serving(&ca, "logs", "stayput", now - 300 * DAY).expect("a certificate");
    let patch = |object: &str, patch: Value| {
        let patch = patch.to_string();
        let args = ["patch", object, "--namespace", "search", "--type=merge", "--patch", &patch];
        admin.run(&args);
    };
    let data = json!({"tls.crt": old.certificate, "tls.key": old.key});
    patch("secret/logs-manager-tls", json!({"stringData": data}));
    let token = server.token("stayput", "stayput-reconciler", "stayput");
    let signed_by = key_id(&token);
    assert!(!keys(admin).contains(&signed_by), "the ConfigMap has the keys of before");

    let account = server.user(ACCOUNT, "system:serviceaccounts");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let kubeconfig = Kubeconfig::read_from(account.kubeconfig()).expect("a kubeconfig");
    let reconciler = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let client = kube::Client::try_from(config.expect("usable")).expect("a client");
            let settings = Settings { name: "test".into(), ..Settings::default() };
            run(client, settings, async move { drop(stopped.await) }).await
        })
    });
    eventually("certificate and keys are renewed", || {
        let is_new = file(admin, "logs-manager-tls", "tls.crt") != old.certificate;
        (is_new && keys(admin).contains(&signed_by)).then_some(())
    });
    // Tokens of the key before are still accepted.
    assert_eq!(keys(admin).matches("RS256").count(), 2);
    verified(server);
    let valid = "--for=condition=CertificatesValid";
    admin.run(&["wait", "searchcluster/logs", "--namespace=search", valid, "--timeout=60s"]);
    // The one of cert-manager is watched, and no part of it is missed.
    let namespace = format!("--namespace={}", cert_manager::NAMESPACE);
    admin.run(&["wait", "searchcluster/logs", &namespace, valid, "--timeout=60s"]);
    drop(stop);
    reconciler.join().expect("no panic").expect("no error");
}

/// The keys that managers have.
fn keys(admin: &Kubectl) -> String {
    let keys = admin.json(&["get", "configmap/cluster-jwks", "--namespace=search"]);
    keys["data"]["jwks.json"].as_str().expect("text").to_owned()
}

/// Which key signed a token.
fn key_id(token: &str) -> String {
    let (header, _) = token.split_once('.').expect("a token");
    let header = BASE64_URL_SAFE_NO_PAD.decode(header).expect("base64");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    header["kid"].as_str().expect("a name").to_owned()
}
