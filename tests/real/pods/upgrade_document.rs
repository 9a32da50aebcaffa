//! `docs/upgrade.md`, word for word: the CRD, and another version of the manager in a pod of `inject`.

use std::fs::File;
use std::process::Command;

use super::document::Document;
use super::first_ten_minutes::STAYPUT;
use super::fixture::Fixture;
use super::nodes::observe_all;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::image::Image;

/// The document's sections with blocks.
const CRD: &str = "In this order";
const MANAGERS: &str = "The managers";

/// Needs an injected `logs-0`.
pub(super) fn upgrade_the_manager(fixture: &Fixture) {
    let document = Document::read(fixture, "upgrade.md", &[CRD, MANAGERS]);
    let printed = document.section(CRD);
    assert!(printed.contains("serverside-applied"), "{printed}");
    load(fixture);
    // A config proves itself in a minute. Until then it is refused; then the program is the same.
    let upgrade = "kubectl --namespace search exec logs-0 -- /stayput/stayput upgrade";
    fixture.people.run(&format!("until {upgrade}; do sleep 2; done"));
    let node = || observe_all(fixture, STAYPUT).remove("logs-0").expect("it is there");
    let before = node();
    let printed = document.section(MANAGERS);
    assert!(printed.contains("version 0.2.0 has taken over from version 0.1.0"), "{printed}");
    let after = node();
    assert_eq!(after.status["manager"]["version"], "0.2.0", "{:#}", after.status);
    assert_eq!(after.status["run"], before.status["run"], "the engine runs on");
    assert_eq!(after.stays, before.stays, "the same pod and container");
}

/// The image with the other version: the same program, with another version in it.
fn load(fixture: &Fixture) {
    let directory = tempfile::tempdir().expect("a temp dir");
    let program = directory.path().join("stayput");
    let mut sed = Command::new("sed");
    sed.arg("s/0\\.1\\.0/0.2.0/g").arg(part("STAYPUT_STATIC_BIN").expect("it was there"));
    sed.env("LC_ALL", "C").stdout(File::create(&program).expect("a file"));
    assert!(sed.status().expect("sed").success());
    fixture.cluster.images.load(&Image {
        name: "docker.io/stayput/manager:0.2.0",
        files: &[(&program, "/stayput")],
        entrypoint: &["/stayput"],
        directory: "/",
        owner: 0,
    });
}
