//! The program that serves until SIGTERM.

use std::process::Command;

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use nix::sys::signal::Signal;

use crate::support::programs::program;
use crate::support::standin::Engine;

#[test]
fn it_writes_a_kubeconfig_and_ends_when_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let mut program = Engine::spawn(Command::new(program("standin-apiserver")).arg(&file));
    program.expect_line("http://127.0.0.1:");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let version = runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(&file).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Client::try_from(config).unwrap().apiserver_version().await.unwrap()
    });
    assert!(version.git_version.contains("standin"), "{version:?}");
    program.signal(Signal::SIGTERM);
    assert_eq!(program.wait(), 0);
}
