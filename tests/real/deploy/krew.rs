//! What krew makes of a release.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::kubernetes::apiserver::part;
use crate::support::release;
use crate::support::skip;

#[test] // proves OPERATE-17
fn krew_installs_the_archive_of_a_release() {
    const NAME: &str = "deploy::krew::krew_installs_the_archive_of_a_release";
    let krew = match part("STAYPUT_KREW") {
        Ok(krew) => krew,
        Err(why) => return skip(NAME, &why),
    };
    let release = release::release();
    let (folder, home) = (release.path().join("release"), release.path().join("home"));
    let index = home.join("krew/index/default");
    fs::create_dir_all(&index).expect("a folder");
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let version = env!("CARGO_PKG_VERSION");
    let archive = folder.join(format!("kubectl-stayput-{version}-linux-{arch}.tar.gz"));
    let ask = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        // Nobody listens there: what is installed comes from the archive alone.
        let nowhere = "http://127.0.0.1:9";
        command.args(words).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
        command.env("KREW_ROOT", home.join("krew")).env("KREW_NO_UPGRADE_CHECK", "1");
        command.env("HTTP_PROXY", nowhere).env("HTTPS_PROXY", nowhere);
        let output = command.output().expect("it can be executed");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(output.status.success(), "{program:?} {words:?}: {printed}");
        printed
    };
    // An index without plugins: krew does nothing without any.
    let index = index.to_str().expect("UTF-8");
    for words in [&["init", "--quiet"][..], &["remote", "add", "origin", "https://index.invalid"]] {
        ask(Path::new("git"), &[&["-C", index], words].concat());
    }
    let manifest = folder.join("krew-stayput.yaml");
    let [manifest, archive] = [&manifest, &archive].map(|path| path.to_str().expect("UTF-8"));
    let printed = ask(&krew, &["install", "--manifest", manifest, "--archive", archive]);
    assert!(printed.contains("Installed plugin: stayput"), "{printed}");
    let listed = ask(&krew, &["list"]);
    assert!(listed.contains("stayput"), "{listed}");
    let program = home.join("krew/bin/kubectl-stayput");
    assert_eq!(ask(&program, &[]), format!("kubectl-stayput for {arch}\n"));
    let store = home.join(format!("krew/store/stayput/v{version}"));
    assert!(store.join("LICENSE").is_file(), "{store:?}");
    ask(&krew, &["uninstall", "stayput"]);
    assert!(!program.exists(), "{program:?}");
}
