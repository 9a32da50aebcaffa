//! An archive of the engine's classes for the nodes, as an image would hold it: made in a pod, because
//! the path of the engine there is part of it.

use std::fs;
use std::path::Path;

use super::super::fixture::{Fixture, MANAGER};
use super::super::nodes::NODES;

/// What the nodes start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jvm {
    Cold,
    Warm,
}

impl Jvm {
    /// What is added to `jvm.options`.
    pub(super) const fn options(self) -> &'static str {
        match self {
            Self::Cold => "",
            Self::Warm => "13-:-XX:SharedArchiveFile=/data/warm.jsa\n",
        }
    }
}

/// Makes the archive in the first pod, and puts it into every pod's storage.
pub(super) fn archive(fixture: &Fixture, storage: &Path) {
    let script = format!(
        "mkdir -p /tmp/w/jvm.options.d && cp /config/jvm.options /config/log4j2.properties /tmp/w && \
         : > /tmp/w/opensearch.yml && OPENSEARCH_PATH_CONF=/tmp/w {MANAGER} warm \
         --archive /data/warm.jsa --options /tmp/w/jvm.options.d/warm.options -- /engine/bin/opensearch"
    );
    let printed = fixture.run(&["exec", NODES[0], "--", "/bin/sh", "-c", &script]);
    assert!(printed.contains("The engine uses it"), "{printed}");
    let made = storage.join(NODES[0]).join("warm.jsa");
    for name in &NODES[1..] {
        fs::copy(&made, storage.join(name).join("warm.jsa")).expect("a copy");
    }
}

/// How many nodes have mapped the archive.
pub(super) fn used(fixture: &Fixture) -> usize {
    let has = |name: &&&str| {
        let look = "cat /proc/[0-9]*/maps | grep -q /data/warm.jsa && echo mapped || echo without";
        fixture.run(&["exec", name, "--", "/bin/sh", "-c", look]).contains("mapped")
    };
    NODES.iter().filter(has).count()
}
