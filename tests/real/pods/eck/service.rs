//! Which pods the Service of the engines sends requests to, at every moment.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::pods::fixture::Fixture;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::process::Process;
use crate::support::wait::eventually;

const NAME: &str = "slices";

/// A watch of the Service `logs-es-http`.
pub(super) struct Service {
    _watch: Process,
    directory: TempDir,
}

impl Service {
    /// Returns once all three pods are in the Service.
    pub(super) fn watch(fixture: &Fixture) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let kubectl = part("STAYPUT_KUBE").expect("it runs the cluster");
        let line = [
            kubectl.to_str().expect("UTF-8"),
            "kubectl",
            "--kubeconfig",
            fixture.admin().kubeconfig().to_str().expect("UTF-8"),
            "--namespace=search",
            "get",
            "endpointslices",
            "--selector=kubernetes.io/service-name=logs-es-http",
            "--watch",
            "--output=json",
        ];
        let service = Self { _watch: Process::start(NAME, directory.path(), &line), directory };
        eventually("all pods are in the Service", || {
            (service.ready().last() == Some(&3)).then_some(())
        });
        service
    }

    /// How many pods were ready, from version to version.
    pub(super) fn ready(&self) -> Vec<usize> {
        let path = self.directory.path().join(format!("{NAME}.log"));
        let log = fs::read(path).expect("the watch has a log");
        let versions = serde_json::Deserializer::from_slice(&log).into_iter::<Value>();
        versions.map_while(Result::ok).map(|slice| ready(&slice)).collect()
    }
}

fn ready(slice: &Value) -> usize {
    let endpoints = slice["endpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    endpoints.iter().filter(|endpoint| endpoint["conditions"]["ready"] == true).count()
}
