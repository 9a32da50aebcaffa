//! The generation that an engine was last told to run, for an engine that comes back by itself.

use std::fs;

use nix::unistd::geteuid;
use stayput_api::{Code, ConfigChoice};
use stayput_manager::config_watch::ConfigWatch;
use stayput_manager::lifecycle::KeepAs;

use super::last_good::{LAST_GOOD, MOUNTED, Pod, bad, counted, good};
use crate::support::isolated::{isolated, test_name};
use crate::support::skip;

async fn told(manager: &ConfigWatch, choice: ConfigChoice) {
    let prepared = manager.prepare(choice, None).await.unwrap();
    manager.keep(&prepared, KeepAs::Pinned).await.unwrap();
}

#[tokio::test]
async fn it_comes_back_on_what_it_was_told_to_run_whatever_is_mounted() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    told(&manager, MOUNTED).await;
    assert_eq!(manager.subscribe().borrow().last_good, None, "it has not proved itself");
    drop(manager);
    pod.writer.write(&bad());
    fs::remove_file(pod.at("engine/elasticsearch.yml")).unwrap();

    let manager = pod.manager().await;
    let prepared = manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap();
    assert_eq!((&prepared.checksum, prepared.choice), (&Some(counted(&good())), MOUNTED));
    assert_eq!(pod.staged("elasticsearch.yml"), "good");
    assert_eq!(pod.staged("users"), "2", "a live file follows the mount");
    assert!(!pod.at("engine/extra.yml").exists());
    let observed = manager.subscribe().borrow().clone();
    assert_eq!(observed.checksum, Some(counted(&bad())));
    assert_eq!(observed.errors, Vec::<String>::new());

    // It may become the last good one from there.
    manager.keep(&prepared, KeepAs::Candidate).await.unwrap();
    assert_eq!(manager.subscribe().borrow().last_good, Some(counted(&good())));

    // While the mount cannot be read, too.
    fs::remove_dir_all(pod.at("mount")).unwrap();
    manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap();
}

#[tokio::test]
async fn what_it_was_told_before_is_kept_until_the_journal_has_the_last_start() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    told(&manager, MOUNTED).await;
    pod.writer.write(&bad());
    told(&manager, MOUNTED).await;
    for generation in [good(), bad()] {
        let prepared = manager.prepare_pinned(&counted(&generation), MOUNTED).await.unwrap();
        assert_eq!(prepared.checksum, Some(counted(&generation)));
    }
    let third = crate::support::kubelet::payload([("elasticsearch.yml", "third")]);
    pod.writer.write(&third);
    told(&manager, MOUNTED).await;
    let prepared = manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap();
    assert_eq!(prepared.checksum, Some(counted(&third)), "no older one is kept");
}

#[tokio::test]
async fn a_rollback_is_pinned_too() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    let prepared = manager.prepare(MOUNTED, None).await.unwrap();
    manager.keep(&prepared, KeepAs::LastGood).await.unwrap();
    pod.writer.write(&bad());
    told(&manager, LAST_GOOD).await;
    let prepared = manager.prepare_pinned(&counted(&good()), LAST_GOOD).await.unwrap();
    assert_eq!((prepared.checksum, prepared.choice), (Some(counted(&good())), LAST_GOOD));
}

#[tokio::test] // proves CONFIG-11
async fn without_a_usable_copy_it_comes_back_all_the_same_and_the_status_says_so() {
    let mut pod = Pod::new(&good());
    let manager = pod.manager().await;
    told(&manager, MOUNTED).await;
    pod.writer.write(&bad());
    let kept = pod.at("state/configs/pinned/0");
    let intact = fs::read(&kept).unwrap();
    for damaged in [Some("damaged"), None] {
        match damaged {
            Some(text) => fs::write(&kept, text).unwrap(),
            None => fs::remove_file(&kept).unwrap(),
        }
        let prepared = manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap();
        assert_eq!(prepared.checksum, Some(counted(&bad())));
        let errors = manager.subscribe().borrow().errors.clone();
        let named = |error: &String| error.contains(counted(&good()).as_str());
        assert!(errors.iter().any(named), "{errors:?}");
    }
    fs::write(&kept, intact).unwrap();
    manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap();
    assert_eq!(manager.subscribe().borrow().errors, Vec::<String>::new());

    // A target that cannot be used is no reason for another config.
    fs::remove_dir_all(pod.at("engine")).unwrap();
    let refusal = manager.prepare_pinned(&counted(&good()), MOUNTED).await.unwrap_err();
    assert_eq!(refusal.code, Code::StageFailed);
}

#[test] // proves JOURNAL-14
fn kept_configs_leave_room_for_the_journal() {
    let name = test_name!(kept_configs_leave_room_for_the_journal);
    if !geteuid().is_root() {
        return skip(name, "needs root to mount");
    }
    isolated(name, &["unshare", "-m", "--propagation", "private"], || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let config = |text: &str| {
                let text = text.repeat(120 * 1024 / text.len());
                crate::support::kubelet::payload([("elasticsearch.yml", text.as_str())])
            };
            let mut pod = Pod::new(&config("first"));
            let mounted = std::process::Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=500k", "tmpfs"])
                .arg(pod.at("state"))
                .status();
            assert!(mounted.unwrap().success());
            let manager = pod.manager().await;
            let mut kept = Vec::new();
            // Engines that never become ready, each with another config.
            for text in ["first", "second", "third", "fourth"] {
                pod.writer.write(&config(text));
                let prepared = manager.prepare(MOUNTED, None).await.unwrap();
                kept.push(
                    manager
                        .keep(&prepared, KeepAs::Pinned)
                        .await
                        .map_err(|error| error.to_string()),
                );
                fs::write(pod.at("state/journal.json.new"), [0; 64 * 1024]).unwrap();
                fs::rename(pod.at("state/journal.json.new"), pod.at("state/journal.json")).unwrap();
            }
            assert_eq!(kept[..2], [Ok(()), Ok(())]);
            let error = kept[3].as_ref().unwrap_err();
            assert!(error.contains("make the state directory larger"), "{error}");
            assert_eq!(manager.subscribe().borrow().errors, std::slice::from_ref(error));
            assert!(!pod.at("state/configs/new").exists(), "half a copy is of no use");
            let prepared = manager.prepare_pinned(&counted(&config("second")), MOUNTED).await;
            assert_eq!(prepared.unwrap().checksum, Some(counted(&config("second"))));
        });
    });
}
