//! One checksum is one generation, and unreadable files are reported.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};
use stayput_api::checksum::Checksum;
use stayput_manager::config_watch::{ConfigDir, ConfigSettings, ConfigWatch};
use tempfile::tempdir;

use super::{checksum, only, start};
use crate::support::isolated::{isolated, test_name};
use crate::support::kubelet::{AtomicWriter, payload};
use crate::support::skip;

fn read(settings: &ConfigSettings) -> Checksum {
    ConfigWatch::read_once(settings).unwrap().checksum.unwrap()
}

/// The only error of a directory that has no checksum.
fn error(settings: &ConfigSettings) -> String {
    let errors = ConfigWatch::read_once(settings).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.into_iter().next().unwrap()
}

#[test] // proves CONFIG-1
fn a_flat_directory_has_the_checksum_that_coreutils_computes() {
    let dir = tempdir().unwrap();
    let names: [&[u8]; 6] =
        [b"elasticsearch.yml", b"jvm.options", b"B", b"back\\slash", b"new\nline", b"caf\xe9\rx"];
    for name in names {
        fs::write(dir.path().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let by_hand = Command::new("sh")
        .args(["-c", "cd \"$0\" && LC_ALL=C sha256sum * | sha256sum"])
        .arg(dir.path())
        .output();
    match by_hand {
        Ok(by_hand) if by_hand.status.success() => {
            let text = String::from_utf8(by_hand.stdout).unwrap();
            let hex = text.split(' ').next().unwrap();
            assert_eq!(read(&only(dir.path())).as_str(), format!("sha256:{hex}"));
        }
        _ => skip(
            test_name!(a_flat_directory_has_the_checksum_that_coreutils_computes),
            "no sha256sum",
        ),
    }
}

#[test]
fn a_volume_has_the_checksum_of_its_payload_nested_paths_included() {
    let dir = tempdir().unwrap();
    let mut writer = AtomicWriter::new(dir.path());
    for files in [
        payload([("elasticsearch.yml", "a: 1\n"), ("users", "")]),
        payload([("elasticsearch.yml", "a: 2\n"), ("certs/http/ca.crt", "PEM"), (".hidden", "x")]),
        payload([]),
    ] {
        writer.write(&files);
        assert_eq!(read(&only(dir.path())), checksum(&files));
    }
}

#[test] // proves CONFIG-1
fn no_reading_mixes_two_generations_while_the_kubelet_swaps() {
    let dir = tempdir().unwrap();
    let mut writer = AtomicWriter::new(dir.path());
    let generation = |number: usize| {
        let content = format!("generation: {number}\n");
        // Names are added and removed as well.
        let other = format!("only-in-{}", number % 3);
        payload([
            ("elasticsearch.yml", &*content),
            ("jvm.options", &*content),
            (&*other, &*content),
        ])
    };
    let known: Vec<_> = (0..300).map(|number| checksum(&generation(number))).collect();
    writer.write(&generation(0));
    let done = AtomicBool::new(false);
    let settings = only(dir.path());
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..300).for_each(|number| writer.write(&generation(number)));
            done.store(true, Ordering::SeqCst);
        });
        // Once more after the last swap: a busy machine may let the writer go first.
        let mut is_last = false;
        while !is_last {
            is_last = done.load(Ordering::SeqCst);
            match ConfigWatch::read_once(&settings) {
                Ok(observed) => {
                    assert!(known.contains(&observed.checksum.unwrap()));
                    seen += 1;
                }
                // It may report that there were too many changes, but no wrong checksum.
                Err(errors) => {
                    assert!(
                        errors.iter().any(|error| error.contains("changed each of")),
                        "{errors:?}"
                    );
                }
            }
        }
    });
    assert!(seen > 0);
    assert_eq!(read(&settings), known[299]);
}

#[test]
fn a_volume_inside_a_plain_directory_is_part_of_it() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("elasticsearch.yml"), "a: 1").unwrap();
    fs::create_dir(dir.path().join("certs")).unwrap();
    let mut writer = AtomicWriter::new(&dir.path().join("certs"));
    writer.write(&payload([("ca.crt", "PEM"), ("sub/key", "K")]));
    let all =
        payload([("elasticsearch.yml", "a: 1"), ("certs/ca.crt", "PEM"), ("certs/sub/key", "K")]);
    assert_eq!(read(&only(dir.path())), checksum(&all));
}

#[test]
fn a_file_beside_the_kubelets_links_is_read_as_the_engine_sees_it() {
    let dir = tempdir().unwrap();
    AtomicWriter::new(dir.path()).write(&payload([("a", "1"), ("b", "2")]));
    fs::remove_file(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a"), "mine").unwrap();
    assert_eq!(read(&only(dir.path())), checksum(&payload([("a", "mine"), ("b", "2")])));
}

#[test]
fn a_link_inside_the_directory_is_its_content() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/real"), "content").unwrap();
    symlink("sub/real", dir.path().join("link")).unwrap();
    symlink("../sub", dir.path().join("sub/again")).unwrap_or_default();
    fs::remove_file(dir.path().join("sub/again")).unwrap();
    symlink("../link", dir.path().join("sub/back")).unwrap();
    let all = payload([("link", "content"), ("sub/real", "content"), ("sub/back", "content")]);
    assert_eq!(read(&only(dir.path())), checksum(&all));
}

#[test] // proves CONFIG-5
fn links_that_cannot_be_followed_are_reported() {
    for (target, reason) in [
        ("odd", "leads back to itself"),
        ("nowhere", "is a link to nothing"),
        ("/etc/hostname", "is a link out of the config directory"),
        ("../..", "is a link out of the config directory"),
        (".", "leads back into itself"),
    ] {
        let dir = tempdir().unwrap();
        symlink(target, dir.path().join("odd")).unwrap();
        let error = error(&only(dir.path()));
        assert!(error.starts_with(dir.path().join("odd").to_str().unwrap()), "{error}");
        assert!(error.contains(reason), "{target}: {error}");
    }
}

/// The thread that reads the config of a running manager has a small stack.
#[tokio::test] // proves CONFIG-6
async fn a_config_that_is_nested_too_deeply_is_reported_by_the_thread_that_reads_it() {
    let dir = tempdir().unwrap();
    let mut deepest = dir.path().to_owned();
    for level in 0..60 {
        if level % 2 == 0 {
            AtomicWriter::new(&deepest).write(&payload([("file", "1")]));
        }
        deepest.push("d");
        fs::create_dir(&deepest).unwrap();
    }
    let config = start(only(dir.path())).await;
    let errors = config.subscribe().borrow().errors.clone();
    assert!(errors.len() == 1 && errors[0].contains("nested too deeply"), "{errors:?}");
}

#[test] // proves CONFIG-5
fn a_fifo_or_socket_is_reported_and_blocks_nothing() {
    let dir = tempdir().unwrap();
    let odd = dir.path().join("odd");
    mkfifo(&odd, Mode::S_IRWXU).unwrap();
    assert!(error(&only(dir.path())).contains("is not a regular file"));
    symlink("odd", dir.path().join("link")).unwrap();
    assert_eq!(ConfigWatch::read_once(&only(dir.path())).unwrap_err().len(), 2);
    fs::remove_file(dir.path().join("link")).unwrap();
    fs::remove_file(&odd).unwrap();
    let _socket = UnixListener::bind(&odd).unwrap();
    assert!(error(&only(dir.path())).contains("is not a regular file"));
}

#[test]
fn an_unreadable_file_is_reported_with_who_may_not_and_what_to_do() {
    let wrapper: &[&str] = if geteuid().is_root() {
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    } else {
        &[]
    };
    isolated(
        test_name!(an_unreadable_file_is_reported_with_who_may_not_and_what_to_do),
        wrapper,
        || {
            let dir = tempdir().unwrap();
            let path = dir.path().join("secret");
            fs::write(&path, "s").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
            let error = error(&only(dir.path()));
            assert!(error.contains("cannot be read by uid"), "{error}");
            assert!(error.contains("fsGroup"), "{error}");
        },
    );
}

#[test]
fn a_missing_directory_is_reported() {
    let dir = tempdir().unwrap();
    let error = error(&only(&dir.path().join("not/there")));
    assert!(error.contains("/not/there does not exist"), "{error}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(self::error(&only(&file)).contains("is not a directory"));
}

#[test] // proves CONFIG-5
fn more_than_the_limits_is_reported() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a"), "12345678").unwrap();
    fs::write(dir.path().join("b"), "12345678").unwrap();
    let bytes = ConfigSettings { max_bytes: 15, ..only(dir.path()) };
    assert!(error(&bytes).contains("more than 15 bytes together"));
    read(&ConfigSettings { max_bytes: 16, ..only(dir.path()) });
    let files = ConfigSettings { max_files: 1, ..only(dir.path()) };
    assert!(error(&files).contains("more than 1 files"));
    read(&ConfigSettings { max_files: 2, ..only(dir.path()) });
}

#[test]
fn named_directories_are_listed_under_their_names() {
    let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(one.path().join("x"), "1").unwrap();
    AtomicWriter::new(other.path()).write(&payload([("x", "2")]));
    let dir = |name: Option<&str>, path: &Path| ConfigDir {
        name: name.map(str::to_owned),
        path: path.to_owned(),
    };
    let settings = |dirs| ConfigSettings { dirs, ..ConfigSettings::default() };
    let named = settings(vec![dir(Some("config"), one.path()), dir(Some("certs"), other.path())]);
    assert_eq!(read(&named), checksum(&payload([("config/x", "1"), ("certs/x", "2")])));
    assert_eq!(named.problems(), Vec::<String>::new());
    let nameless = settings(vec![dir(None, one.path()), dir(None, other.path())]);
    assert!(error(&nameless).contains("x is in two config directories"));
    assert_eq!(nameless.problems().len(), 2);
}

#[test]
fn live_files_are_shown_and_do_not_count() {
    let dir = tempdir().unwrap();
    let files = payload([("elasticsearch.yml", "a"), ("users", "b"), ("sub/users", "c")]);
    AtomicWriter::new(dir.path()).write(&files);
    let live = vec![glob::Pattern::new("user*").unwrap()];
    let settings = ConfigSettings { live, ..only(dir.path()) };
    let observed = ConfigWatch::read_once(&settings).unwrap();
    let shown: Vec<_> = observed.files.iter().map(|file| (file.path.as_str(), file.live)).collect();
    assert_eq!(shown, [("elasticsearch.yml", false), ("sub/users", false), ("users", true)]);
    let counted = payload([("elasticsearch.yml", "a"), ("sub/users", "c")]);
    assert_eq!(observed.checksum, Some(checksum(&counted)));
}

#[test]
fn a_live_file_that_cannot_be_read_does_not_hide_the_checksum() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("elasticsearch.yml"), "a").unwrap();
    symlink("nowhere", dir.path().join("users")).unwrap();
    let live = vec![glob::Pattern::new("users").unwrap()];
    let observed = ConfigWatch::read_once(&ConfigSettings { live, ..only(dir.path()) }).unwrap();
    assert_eq!(observed.checksum, Some(checksum(&payload([("elasticsearch.yml", "a")]))));
    assert!(observed.errors[0].contains("users is a link to nothing"));
}

#[test] // proves CONFIG-5
fn a_subpath_mount_is_reported_and_has_a_checksum() {
    if !geteuid().is_root() {
        return skip(
            test_name!(a_subpath_mount_is_reported_and_has_a_checksum),
            "needs root to mount",
        );
    }
    isolated(
        test_name!(a_subpath_mount_is_reported_and_has_a_checksum),
        &["unshare", "-m", "--propagation", "private"],
        || {
            let (volume, config) = (tempdir().unwrap(), tempdir().unwrap());
            let mut writer = AtomicWriter::new(volume.path());
            let files = payload([("elasticsearch.yml", "a: 1")]);
            writer.write(&files);
            let mounted = config.path().join("elasticsearch.yml");
            fs::write(&mounted, "").unwrap();
            let resolved = volume.path().join("elasticsearch.yml").canonicalize().unwrap();
            let status =
                Command::new("mount").arg("--bind").arg(resolved).arg(&mounted).status().unwrap();
            assert!(status.success());
            // Before and after the generation of the bind mount was replaced.
            for _ in 0..2 {
                let observed = ConfigWatch::read_once(&only(config.path())).unwrap();
                assert_eq!(observed.checksum, Some(checksum(&files)));
                assert_eq!(observed.errors.len(), 1, "{:?}", observed.errors);
                assert!(observed.errors[0].contains("is mounted by subPath and never changes"));
                writer.write(&payload([("elasticsearch.yml", "a: 2")]));
            }
        },
    );
}
