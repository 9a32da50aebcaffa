//! `docs/certificate-by-hand.md`, on a real apiserver.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::kubernetes::apiserver::{ApiServer, part};
use crate::support::programs::write_program;

/// The blocks under "Keys" of `docs/certificate-by-hand.md`, as they stand.
pub(super) fn follows_the_document(server: &ApiServer) {
    let directory = tempfile::tempdir().expect("a directory");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::os::unix::fs::symlink(examples, directory.path().join("examples")).expect("a link");
    let program = part("STAYPUT_KUBE").expect("the apiserver was started with it");
    let kubectl = directory.path().join("kubectl");
    let line = format!("#!/bin/sh\nexec '{}' kubectl \"$@\"\n", program.display());
    write_program(&kubectl, line.as_bytes());
    let path = std::env::var("PATH").expect("a PATH");
    let script = |text: &str| {
        let mut child = Command::new("sh")
            .args(["-eu", "-c", text])
            .current_dir(directory.path())
            .env("PATH", format!("{}:{path}", directory.path().display()))
            .env("HOME", directory.path())
            .env("KUBECONFIG", server.admin().kubeconfig())
            .spawn()
            .expect("a shell");
        assert!(child.wait().expect("ours").success(), "{text}");
    };
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/certificate-by-hand.md");
    let document = fs::read_to_string(document).expect("the document");
    let keys = document.split("\n## ").find(|part| part.starts_with("Keys")).expect("Keys");
    let blocks: Vec<&str> = keys.split("```sh\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        script(block.split("```").next().expect("a block"));
    }
    let jwks = server.admin().json(&["get", "configmap", "cluster-jwks", "--namespace", "search"]);
    assert_eq!(jwks["data"]["issuer"], server.url());
    assert!(jwks["data"]["jwks.json"].as_str().is_some_and(|keys| keys.contains("RS256")));
    let certificates = || {
        script(
            "for part in logs-manager-ca:ca logs-manager-tls:tls; do
               kubectl --namespace search get secret ${part%:*} \
                 -o \"go-template={{index .data \\\"${part#*:}.crt\\\" | base64decode}}\" > ${part#*:}.pem
             done
             openssl verify -CAfile ca.pem -purpose sslserver -verify_hostname stayput tls.pem",
        );
        ["ca.pem", "tls.pem"].map(|file| fs::read(directory.path().join(file)).expect("written"))
    };
    let [authority, certificate] = certificates();
    script(&renewal(&document));
    let [same, renewed] = certificates();
    assert!(authority == same && certificate != renewed, "another certificate of the same CA");
    let left: Vec<_> = fs::read_dir(directory.path()).expect("ours").flatten().collect();
    assert!(left.iter().all(|entry| entry.path().extension().is_none_or(|kind| kind != "key")));
}

/// The block under "Renew the certificate".
fn renewal(document: &str) -> String {
    let part = document.split("\n## ").find(|part| part.starts_with("Renew the certificate"));
    let block = part.and_then(|part| part.split("```sh\n").nth(1)).expect("a block");
    block.split("```").next().expect("its end").to_owned()
}
