//! A release of programs that are small scripts. Tests with real parts use it, too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const PROGRAMS: [&str; 3] = ["stayput", "stayput-reconciler", "kubectl-stayput"];
pub(crate) const URL: &str = "https://example.org/v1";
pub(crate) const COMMIT: &str = "0123456789012345678901234567890123456789";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// Where cargo puts what `cargo build --examples` makes.
pub(crate) fn built() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_stayput")).parent().expect("a folder").into()
}

/// Runs one of our scripts; its output.
#[track_caller]
pub(crate) fn script(name: &str, words: &[&str]) -> String {
    let mut command = Command::new(root().join("release").join(name));
    // The moment of a commit.
    let output =
        command.args(words).env("SOURCE_DATE_EPOCH", "1790000000").output().expect("a script");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {words:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The folder `release` with it, beside the other input of `release/pack`.
pub(crate) fn release() -> TempDir {
    let directory = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = directory.path().join("work").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    };
    for arch in ["amd64", "arm64"] {
        for program in PROGRAMS {
            let text = format!("#!/bin/sh\necho {program} for {arch}\n");
            let path = write(&format!("{arch}/{program}"), &text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
            write(&format!("{arch}/{program}.cdx.json"), "{}");
        }
    }
    for page in ["stayput-run", "stayput-reconciler-run", "kubectl-stayput-why"] {
        write(&format!("man/{page}.1"), page);
    }
    write("completion/kubectl-stayput.bash", "complete");
    write("tools", "rustc=1.2.3 (of a test)\n");
    packed(directory.path(), "release");
    directory
}

/// Makes it once more from the same input, in a folder of this name.
pub(crate) fn packed(directory: &Path, name: &str) {
    let at = |name: &str| directory.join(name).to_str().expect("UTF-8").to_owned();
    let built = built();
    let version = env!("CARGO_PKG_VERSION");
    let words = [&at("work"), &at(name), URL, version, COMMIT, built.to_str().expect("UTF-8")];
    script("pack", &words);
}
