//! Changes are published, and nothing else is.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use stayput_manager::config_watch::{ConfigSettings, Observed};
use tempfile::tempdir;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{checksum, only, start};
use crate::support::kubelet::{AtomicWriter, payload};

/// Longer than any step takes: these tests wait for events, not for this.
const DEADLINE: Duration = Duration::from_secs(20);

async fn until(
    receiver: &mut watch::Receiver<Arc<Observed>>,
    what: impl FnMut(&Arc<Observed>) -> bool,
) -> Arc<Observed> {
    timeout(DEADLINE, receiver.wait_for(what)).await.expect("it is seen").unwrap().clone()
}

async fn until_content(receiver: &mut watch::Receiver<Arc<Observed>>, files: &[(&str, &str)]) {
    let expected = Some(checksum(&payload(files.iter().copied())));
    until(receiver, |observed| observed.checksum == expected).await;
}

#[tokio::test]
async fn a_swap_is_seen_and_is_one_generation() {
    let dir = tempdir().unwrap();
    let mut writer = AtomicWriter::new(dir.path());
    writer.write(&payload([("elasticsearch.yml", "a: 1")]));
    let config = start(only(dir.path())).await;
    let mut receiver = config.subscribe();
    let first = receiver.borrow_and_update().clone();
    assert_eq!(first.checksum, Some(checksum(&payload([("elasticsearch.yml", "a: 1")]))));
    assert_eq!(first.errors, Vec::<String>::new());

    let next = [("elasticsearch.yml", "a: 2"), ("jvm.options", "-Xmx1g")];
    writer.write(&payload(next));
    until_content(&mut receiver, &next).await;
    let second = receiver.borrow_and_update().clone();
    assert_eq!(second.change_count, first.change_count + 1);

    writer.write(&payload(next));
    let third = until(&mut receiver, |observed| observed.change_count > second.change_count).await;
    assert_eq!(third.checksum, second.checksum, "swapped to the same content");
}

#[tokio::test]
async fn a_plain_directory_is_followed_into_its_subdirectories() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("elasticsearch.yml"), "1").unwrap();
    let config = start(only(dir.path())).await;
    let mut receiver = config.subscribe();
    fs::write(dir.path().join("elasticsearch.yml"), "2").unwrap();
    until_content(&mut receiver, &[("elasticsearch.yml", "2")]).await;
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    fs::write(dir.path().join("a/b/c"), "3").unwrap();
    until_content(&mut receiver, &[("elasticsearch.yml", "2"), ("a/b/c", "3")]).await;
    fs::write(dir.path().join("a/b/c"), "4").unwrap();
    until_content(&mut receiver, &[("elasticsearch.yml", "2"), ("a/b/c", "4")]).await;
    fs::rename(dir.path().join("a/b/c"), dir.path().join("c")).unwrap();
    until_content(&mut receiver, &[("elasticsearch.yml", "2"), ("c", "4")]).await;
    fs::remove_file(dir.path().join("c")).unwrap();
    until_content(&mut receiver, &[("elasticsearch.yml", "2")]).await;
}

#[tokio::test]
async fn a_directory_that_is_missing_is_found_when_it_appears() {
    let dir = tempdir().unwrap();
    let root = dir.path().join("not/yet/there");
    let config = start(only(&root)).await;
    let mut receiver = config.subscribe();
    let missing = receiver.borrow_and_update().clone();
    assert_eq!(missing.checksum, None);
    assert!(missing.errors[0].contains("does not exist"), "{:?}", missing.errors);
    fs::create_dir_all(&root).unwrap();
    AtomicWriter::new(&root).write(&payload([("x", "1")]));
    until_content(&mut receiver, &[("x", "1")]).await;
    assert_eq!(receiver.borrow().errors, Vec::<String>::new());
}

#[tokio::test]
async fn a_directory_that_is_replaced_is_found_again() {
    let dir = tempdir().unwrap();
    let root = dir.path().join("config");
    fs::create_dir(&root).unwrap();
    AtomicWriter::new(&root).write(&payload([("x", "1")]));
    let config = start(only(&root)).await;
    let mut receiver = config.subscribe();

    fs::rename(&root, dir.path().join("away")).unwrap();
    until(&mut receiver, |observed| observed.checksum.is_none()).await;
    fs::create_dir(&root).unwrap();
    let mut writer = AtomicWriter::new(&root);
    writer.write(&payload([("x", "2")]));
    until_content(&mut receiver, &[("x", "2")]).await;
    writer.write(&payload([("x", "3")]));
    until_content(&mut receiver, &[("x", "3")]).await;

    // In one step, by a rename over the link.
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("config", &link).unwrap();
    let config = start(only(&link)).await;
    let mut receiver = config.subscribe();
    std::os::unix::fs::symlink("away", dir.path().join("link.new")).unwrap();
    fs::rename(dir.path().join("link.new"), &link).unwrap();
    until_content(&mut receiver, &[("x", "1")]).await;
}

#[tokio::test]
async fn what_is_wrong_appears_and_goes() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("x"), "1").unwrap();
    let config = start(only(dir.path())).await;
    let mut receiver = config.subscribe();
    mkfifo(&dir.path().join("fifo"), Mode::S_IRWXU).unwrap();
    let wrong = until(&mut receiver, |observed| observed.checksum.is_none()).await;
    assert!(wrong.errors[0].contains("not a regular file"));
    fs::remove_file(dir.path().join("fifo")).unwrap();
    until_content(&mut receiver, &[("x", "1")]).await;
    assert_eq!(receiver.borrow().errors, Vec::<String>::new());
}

#[tokio::test]
async fn a_live_file_changes_the_files_and_not_the_checksum() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("x"), "1").unwrap();
    fs::write(dir.path().join("users"), "1").unwrap();
    let live = vec![glob::Pattern::new("users").unwrap()];
    let config = start(ConfigSettings { live, ..only(dir.path()) }).await;
    let mut receiver = config.subscribe();
    let before = receiver.borrow_and_update().clone();
    fs::write(dir.path().join("users"), "2").unwrap();
    let after = until(&mut receiver, |observed| {
        // The file is empty for a moment: `write` truncates it first.
        let users = observed.files.iter().find(|file| file.live).unwrap();
        users.sha256 != before.files[0].sha256
    })
    .await;
    assert_eq!((&after.checksum, after.change_count), (&before.checksum, before.change_count));
}

fn most_queued_events() -> usize {
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    most.trim().parse().unwrap()
}

fn storm(dir: &Path) {
    // Two different events each, because the kernel would merge equal ones.
    for _ in 0..=most_queued_events() / 2 {
        fs::write(dir.join("storm"), "").unwrap();
        fs::remove_file(dir.join("storm")).unwrap();
    }
}

#[tokio::test]
async fn changes_that_are_lost_in_an_overflow_are_found() {
    let dir = tempdir().unwrap();
    let other = tempdir().unwrap();
    let named = |name: &str, path: &Path| stayput_manager::config_watch::ConfigDir {
        name: Some(name.to_owned()),
        path: path.to_owned(),
    };
    let dirs = vec![named("one", dir.path()), named("other", other.path())];
    let config = start(ConfigSettings { dirs, ..ConfigSettings::default() }).await;
    let mut receiver = config.subscribe();
    // Nothing else runs on this thread: the queue overflows before it is read.
    storm(dir.path());
    fs::write(other.path().join("x"), "after the overflow").unwrap();
    until_content(&mut receiver, &[("other/x", "after the overflow")]).await;
}

#[tokio::test]
async fn without_directories_there_is_nothing_to_know() {
    let config = start(ConfigSettings::default()).await;
    let observed = config.subscribe().borrow().clone();
    assert_eq!((&observed.checksum, observed.errors.len()), (&None, 0));
}
