//! The generation that last became ready is kept, and it is only used if it is intact.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice};
use stayput_manager::config_watch::{ConfigSettings, ConfigWatch};
use stayput_manager::lifecycle::KeepAs;
use tempfile::{TempDir, tempdir};

use super::{checksum, only, staged, start};
use crate::support::kubelet::{AtomicWriter, Payload, payload};

pub(super) const MOUNTED: ConfigChoice = ConfigChoice::Mounted;
pub(super) const LAST_GOOD: ConfigChoice = ConfigChoice::LastGood;

pub(super) struct Pod {
    dir: TempDir,
    pub(super) writer: AtomicWriter,
}

impl Pod {
    pub(super) fn new(files: &Payload) -> Self {
        let dir = tempdir().unwrap();
        for name in ["mount", "engine", "state"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut writer = AtomicWriter::new(&dir.path().join("mount"));
        writer.write(files);
        Self { dir, writer }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn settings(&self) -> ConfigSettings {
        ConfigSettings {
            keep_last_good: Some(self.at("state/configs")),
            live: vec![glob::Pattern::new("users").unwrap()],
            ..staged(&self.at("mount"), &self.at("engine"))
        }
    }

    /// A manager that starts; it finds the files of the one before it.
    pub(super) async fn manager(&self) -> ConfigWatch {
        start(self.settings()).await
    }

    pub(super) fn staged(&self, path: &str) -> String {
        fs::read_to_string(self.at("engine").join(path)).unwrap()
    }
}

pub(super) fn good() -> Payload {
    payload([("elasticsearch.yml", "good"), ("certs/ca", "good"), ("users", "1")])
}

pub(super) fn bad() -> Payload {
    payload([("elasticsearch.yml", "bad"), ("extra.yml", "bad"), ("users", "2")])
}

pub(super) fn counted(files: &Payload) -> Checksum {
    let mut files = files.clone();
    files.remove("users");
    checksum(&files)
}

#[tokio::test]
async fn what_became_ready_is_started_again_after_a_bad_config_and_a_restart() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    let refusal = manager.prepare(LAST_GOOD, None).await.unwrap_err();
    assert_eq!(refusal.code, Code::NoLastGood, "no config was ready yet");
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    assert_eq!(manager.subscribe().borrow().last_good, Some(counted(&good())));

    pod.writer.write(&bad());
    manager.prepare(MOUNTED, Some(&counted(&bad()))).await.unwrap();
    assert_eq!(pod.staged("elasticsearch.yml"), "bad");
    drop(manager);

    let manager = pod.manager().await;
    assert_eq!(manager.subscribe().borrow().last_good, Some(counted(&good())));
    let refusal = manager.prepare(LAST_GOOD, Some(&counted(&bad()))).await.unwrap_err();
    assert_eq!(refusal.code, Code::ChecksumMismatch);
    let prepared = manager.prepare(LAST_GOOD, Some(&counted(&good()))).await.unwrap();
    assert_eq!((&prepared.checksum, prepared.choice), (&Some(counted(&good())), LAST_GOOD));
    assert_eq!(pod.staged("elasticsearch.yml"), "good");
    assert_eq!(pod.staged("certs/ca"), "good");
    assert_eq!(pod.staged("users"), "2", "a live file follows the mount");
    assert!(!pod.at("engine/extra.yml").exists());
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    assert_eq!(manager.subscribe().borrow().last_good, Some(counted(&good())), "kept already");
    assert_eq!(manager.subscribe().borrow().checksum, Some(counted(&bad())), "drift stays visible");
}

#[tokio::test]
async fn the_last_good_config_starts_while_the_mount_cannot_be_read() {
    let pod = Pod::new(&good());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    fs::remove_dir_all(pod.at("mount")).unwrap();
    fs::remove_file(pod.at("engine/elasticsearch.yml")).unwrap();
    manager.prepare(LAST_GOOD, None).await.unwrap();
    assert_eq!(pod.staged("elasticsearch.yml"), "good");
}

fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(all_below(&path))
        } else {
            all.push(path)
        }
    }
    all
}

#[tokio::test]
async fn only_the_latest_is_kept_and_only_its_owner_may_read_it() {
    let mut pod = Pod::new(&bad());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    pod.writer.write(&good());
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    let kept = all_below(&pod.at("state/configs"));
    assert_eq!(kept.len(), 2 + 1 + 3, "two directories, a link, a record, two contents: {kept:?}");
    for path in kept.iter().filter(|path| !path.is_symlink()) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{path:?}");
    }
}

#[tokio::test]
async fn a_damaged_copy_is_not_used_and_what_is_staged_stays() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    pod.writer.write(&bad());
    manager.prepare(MOUNTED, None).await.unwrap();
    let kept = all_below(&pod.at("state/configs"));
    for path in kept.iter().filter(|path| path.is_file() && !path.is_symlink()) {
        let intact = fs::read(path).unwrap();
        for damaged in [b"damaged".as_slice(), b"", b"{}"] {
            fs::write(path, damaged).unwrap();
            let refusal = manager.prepare(LAST_GOOD, None).await.unwrap_err();
            assert_eq!(refusal.code, Code::NoLastGood, "{path:?}");
            assert!(refusal.message.contains("new one is kept"), "{}", refusal.message);
            assert_eq!(pod.staged("elasticsearch.yml"), "bad");
        }
        fs::write(path, intact).unwrap();
    }
    manager.prepare(LAST_GOOD, None).await.unwrap();

    // The checksum of a record does not fit if it lists another file than was kept.
    let record = pod.at("state/configs/last-good/record.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("elasticsearch.yml", "../elasticsearch.y")).unwrap();
    assert_eq!(manager.prepare(LAST_GOOD, None).await.unwrap_err().code, Code::NoLastGood);
    let restarted = pod.manager().await;
    assert!(restarted.subscribe().borrow().errors[0].contains("cannot be used"));
}

#[tokio::test]
async fn a_copy_that_was_edited_is_kept_from_the_mount_or_not_at_all() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    fs::write(pod.at("engine/elasticsearch.yml"), "edited by an entrypoint").unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    assert_eq!(manager.subscribe().borrow().last_good, Some(counted(&good())));

    pod.writer.write(&bad());
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    fs::write(pod.at("engine/extra.yml"), "edited").unwrap();
    pod.writer.write(&good());
    let error = manager.keep(&prepared, KeepAs::LastGood).await.unwrap_err().to_string();
    assert!(error.contains("extra.yml was changed"), "{error}");
    let observed = manager.subscribe().borrow().clone();
    assert!(observed.errors.contains(&error), "{:?}", observed.errors);
    assert_eq!(observed.last_good, Some(counted(&good())), "the one before it is still kept");
    manager.prepare(LAST_GOOD, None).await.unwrap();
    assert_eq!(pod.staged("elasticsearch.yml"), "good");
}

#[tokio::test]
async fn what_became_ready_replaces_the_last_good_one_only_when_it_has_proved_itself() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    let last_good = || manager.subscribe().borrow().last_good.clone();
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::Candidate).await.unwrap();
    assert_eq!(last_good(), Some(counted(&good())), "there was nothing better");

    pod.writer.write(&bad());
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::Candidate).await.unwrap();
    assert_eq!(last_good(), Some(counted(&good())));
    manager.prepare(LAST_GOOD, Some(&counted(&good()))).await.unwrap();

    // The copy made when it became ready is enough, whatever is staged or mounted by now.
    pod.writer.write(&good());
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    assert_eq!(last_good(), Some(counted(&bad())));
    manager.prepare(LAST_GOOD, Some(&counted(&bad()))).await.unwrap();
    assert_eq!(pod.staged("elasticsearch.yml"), "bad");
    let kept = all_below(&pod.at("state/configs"));
    assert_eq!(kept.iter().filter(|path| path.is_dir() && !path.is_symlink()).count(), 2);
}

#[tokio::test]
async fn a_damaged_copy_is_made_anew_when_the_same_config_is_kept_again() {
    let pod = Pod::new(&good());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    fs::write(pod.at("state/configs/last-good/0"), "damaged").unwrap();
    let refusal = manager.prepare(LAST_GOOD, None).await.unwrap_err();
    assert_eq!(refusal.code, Code::NoLastGood);
    manager.keep(&prepared, KeepAs::Candidate).await.unwrap();
    manager.prepare(LAST_GOOD, None).await.unwrap();
    assert_eq!(pod.staged("elasticsearch.yml"), "good");
}

#[tokio::test]
async fn without_staging_there_is_none_and_the_remedy_is_told() {
    let pod = Pod::new(&good());
    for settings in [
        only(&pod.at("mount")),
        staged(&pod.at("mount"), &pod.at("engine")),
        ConfigSettings { stage: Vec::new(), ..pod.settings() },
        ConfigSettings::default(),
    ] {
        let manager = start(settings).await;
        let prepared = manager.prepare(MOUNTED, None).await.unwrap();
        manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
        assert_eq!(manager.subscribe().borrow().last_good, None);
        let refusal = manager.prepare(LAST_GOOD, None).await.unwrap_err();
        assert_eq!(refusal.code, Code::NoLastGood);
        assert!(refusal.message.contains("--keep-last-good and --stage"), "{}", refusal.message);
    }
}
