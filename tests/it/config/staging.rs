//! Verify and stage, as the supervisor uses it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use nix::unistd::geteuid;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice};
use stayput_manager::config_watch::ConfigSettings;
use tempfile::tempdir;

use super::{checksum, only, staged, start};
use crate::support::isolated::{isolated, test_name};
use crate::support::kubelet::{AtomicWriter, payload};
use crate::support::skip;

const MOUNTED: ConfigChoice = ConfigChoice::Mounted;

#[tokio::test]
async fn another_checksum_is_refused_with_what_is_mounted_and_nothing_is_staged() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let files = payload([("elasticsearch.yml", "a: 1")]);
    AtomicWriter::new(source.path()).write(&files);
    let config = start(staged(source.path(), target.path())).await;
    let other = Checksum::of_contents([("elasticsearch.yml", "a: 2")]);
    let refusal = config.prepare(MOUNTED, Some(&other)).await.unwrap_err();
    assert_eq!(refusal.code, Code::ChecksumMismatch);
    for part in [other.as_str(), checksum(&files).as_str(), "elasticsearch.yml ("] {
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_config_that_cannot_be_told_is_refused_when_one_is_expected_or_staged() {
    let dir = tempdir().unwrap();
    let missing = dir.path().join("missing");
    let any = Checksum::of_contents([("x", "")]);
    let config = start(only(&missing)).await;
    let refusal = config.prepare(MOUNTED, Some(&any)).await.unwrap_err();
    assert_eq!(refusal.code, Code::ConfigUnknown);
    assert!(refusal.message.contains("does not exist"), "{}", refusal.message);
    assert_eq!(config.prepare(MOUNTED, None).await.unwrap().checksum, None);

    let config = start(staged(&missing, dir.path())).await;
    let refusal = config.prepare(MOUNTED, None).await.unwrap_err();
    assert_eq!(refusal.code, Code::StageFailed);
    assert!(refusal.message.contains("does not exist"), "{}", refusal.message);

    let config = start(ConfigSettings::default()).await;
    let refusal = config.prepare(MOUNTED, Some(&any)).await.unwrap_err();
    assert_eq!(refusal.code, Code::ConfigUnknown);
    assert!(refusal.message.contains("no --config"), "{}", refusal.message);
}

#[tokio::test]
async fn what_is_prepared_is_fresh_and_known_to_be_stale_after_a_change() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let mut writer = AtomicWriter::new(source.path());
    writer.write(&payload([("x", "1")]));
    let mounted = start(only(source.path())).await;
    let staging = start(staged(source.path(), target.path())).await;
    let next = payload([("x", "2")]);
    // The watching tasks have not run since: they need this thread.
    writer.write(&next);
    let prepared = mounted.prepare(MOUNTED, Some(&checksum(&next))).await.unwrap();
    let copied = staging.prepare(MOUNTED, Some(&checksum(&next))).await.unwrap();
    assert_eq!(prepared.change_count, mounted.subscribe().borrow().change_count);
    assert_eq!((prepared.staged, copied.staged), (false, true));
    assert!(prepared.is_current() && copied.is_current());
    writer.write(&next);
    assert!(!prepared.is_current(), "another generation, even of the same content");
    assert!(copied.is_current());
}

#[tokio::test]
async fn an_edit_in_a_plain_directory_makes_what_was_prepared_stale() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("x"), "1").unwrap();
    let config = start(only(dir.path())).await;
    let prepared = config.prepare(MOUNTED, None).await.unwrap();
    assert!(prepared.is_current());
    fs::write(dir.path().join("x"), "longer").unwrap();
    assert!(!prepared.is_current());
    let prepared = config.prepare(MOUNTED, None).await.unwrap();
    fs::write(dir.path().join("y"), "").unwrap();
    assert!(!prepared.is_current());
}

#[tokio::test]
async fn the_target_holds_the_generation_and_what_the_engine_wrote() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let live = vec![glob::Pattern::new("users").unwrap()];
    let settings = ConfigSettings { live, ..staged(source.path(), target.path()) };
    let config = start(settings).await;
    let mut writer = AtomicWriter::new(source.path());
    let at = |path: &str| target.path().join(path);

    writer.write(&payload([
        ("elasticsearch.yml", "1"),
        ("jvm.options.d/heap", "1"),
        ("users", "u1"),
    ]));
    config.prepare(MOUNTED, None).await.unwrap();
    fs::write(at("elasticsearch.keystore"), "K").unwrap();
    fs::write(at("elasticsearch.yml"), "edited by an entrypoint").unwrap();
    assert_eq!(fs::read_to_string(at("jvm.options.d/heap")).unwrap(), "1");

    writer.write(&payload([("elasticsearch.yml", "2"), ("certs/ca", "2"), ("users", "u2")]));
    assert_eq!(fs::read_to_string(at("users")).unwrap(), "u2", "live: seen without a start");
    config.prepare(MOUNTED, None).await.unwrap();
    assert_eq!(fs::read_to_string(at("elasticsearch.yml")).unwrap(), "2");
    assert_eq!(fs::read_to_string(at("certs/ca")).unwrap(), "2");
    assert_eq!(fs::read_to_string(at("elasticsearch.keystore")).unwrap(), "K");
    assert!(!at("jvm.options.d").exists(), "a file that is gone goes with its directory");
    assert!(at("users").is_symlink());
    assert!(!at("elasticsearch.yml").is_symlink());
}

#[tokio::test]
async fn copies_keep_owner_group_and_permissions() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    for (name, mode) in [("a", 0o440), ("b", 0o644), ("c", 0o4600)] {
        let path = source.path().join(name);
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        if geteuid().is_root() {
            chown(&path, Some(1000), Some(1000)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
    }
    let config = start(staged(source.path(), target.path())).await;
    config.prepare(MOUNTED, None).await.unwrap();
    for (name, mode) in [("a", 0o440), ("b", 0o644), ("c", 0o600)] {
        let (from, to) = (source.path().join(name), target.path().join(name));
        let (from, to) = (fs::metadata(from).unwrap(), fs::metadata(to).unwrap());
        assert_eq!(to.mode() & 0o7777, mode, "{name}: no setuid bit is copied");
        assert_eq!((to.uid(), to.gid()), (from.uid(), from.gid()));
    }
}

#[tokio::test]
async fn a_target_that_does_not_exist_is_refused_with_what_to_do() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(source.path().join("x"), "1").unwrap();
    let config = start(staged(source.path(), &target.path().join("no"))).await;
    let refusal = config.prepare(MOUNTED, None).await.unwrap_err();
    assert_eq!(refusal.code, Code::StageFailed);
    assert!(refusal.message.contains("mount a writable volume there"), "{}", refusal.message);
}

#[test]
fn a_target_that_is_not_writable_is_refused_with_who_may_not_and_what_to_do() {
    let name = test_name!(a_target_that_is_not_writable_is_refused_with_who_may_not_and_what_to_do);
    let wrapper: &[&str] = if geteuid().is_root() {
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    } else {
        &[]
    };
    isolated(name, wrapper, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
            fs::write(source.path().join("x"), "1").unwrap();
            fs::set_permissions(target.path(), Permissions::from_mode(0o555)).unwrap();
            let config = start(staged(source.path(), target.path())).await;
            let refusal = config.prepare(MOUNTED, None).await.unwrap_err();
            assert_eq!(refusal.code, Code::StageFailed);
            assert!(refusal.message.contains("must be able to write there"), "{}", refusal.message);
        });
    });
}

#[test]
fn a_full_target_is_refused_and_left_as_it_was() {
    let name = test_name!(a_full_target_is_refused_and_left_as_it_was);
    if !geteuid().is_root() {
        return skip(name, "needs root to mount");
    }
    isolated(name, &["unshare", "-m", "--propagation", "private"], || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
            let mounted = std::process::Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
                .arg(target.path())
                .status();
            assert!(mounted.unwrap().success());
            let file = source.path().join("x");
            fs::write(&file, "small").unwrap();
            let config = start(staged(source.path(), target.path())).await;
            config.prepare(MOUNTED, None).await.unwrap();
            fs::write(&file, vec![b'x'; 128 * 1024]).unwrap();
            let refusal = config.prepare(MOUNTED, None).await.unwrap_err();
            assert_eq!(refusal.code, Code::StageFailed);
            assert!(refusal.message.contains("make room"), "{}", refusal.message);
            assert_eq!(fs::read_to_string(target.path().join("x")).unwrap(), "small");
            fs::write(&file, "small again").unwrap();
            config.prepare(MOUNTED, None).await.unwrap();
            assert_eq!(fs::read_to_string(target.path().join("x")).unwrap(), "small again");
        });
    });
}

#[tokio::test] // proves CONFIG-7
async fn what_an_engine_has_not_written_to_its_end_does_not_stop_its_next_start() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(source.path().join("elasticsearch.yml"), "a: 1").unwrap();
    let config = start(staged(source.path(), target.path())).await;
    for name in ["elasticsearch.keystore", "opensearch.keystore"] {
        let unfinished = target.path().join(format!("{name}.tmp"));
        fs::write(target.path().join(name), "secrets").unwrap();
        fs::write(&unfinished, "").unwrap();
        config.prepare(MOUNTED, None).await.unwrap();
        assert!(!unfinished.exists());
        assert_eq!(fs::read_to_string(target.path().join(name)).unwrap(), "secrets");
    }
}

#[test]
fn contradicting_settings_are_all_named() {
    let settings = staged("/config".as_ref(), "/config/sub".as_ref());
    assert!(settings.problems()[0].contains("apart from the config directories"));
    let settings = staged("/config".as_ref(), "/engine".as_ref());
    assert_eq!(settings.problems(), Vec::<String>::new());
    let unknown = ConfigSettings { dirs: Vec::new(), ..settings.clone() };
    assert!(unknown.problems()[0].contains("is not a --config directory"));
    let kept = ConfigSettings {
        keep_last_good: Some("/state/configs".into()),
        ..only("/config".as_ref())
    };
    assert!(kept.problems()[0].contains("must be staged"));
    let twice = ConfigSettings {
        stage: vec![settings.stage[0].clone(), settings.stage[0].clone()],
        ..settings
    };
    assert_eq!(twice.problems().len(), 2, "{:?}", twice.problems());
}
