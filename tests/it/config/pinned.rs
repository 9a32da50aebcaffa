//! The generation that an engine was last told to run, for an engine that comes back by itself.

use std::fs;

use stayput_api::{Code, ConfigChoice};
use stayput_manager::config_watch::ConfigWatch;

use super::last_good::{LAST_GOOD, MOUNTED, Pod, bad, counted, good};

async fn told(manager: &ConfigWatch, choice: ConfigChoice) {
    let prepared = manager.prepare(choice, None).await.unwrap();
    manager.keep_pinned(&prepared).await.unwrap();
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
    manager.keep_candidate(&prepared).await.unwrap();
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
    let third = crate::support::atomic_writer::payload([("elasticsearch.yml", "third")]);
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
    manager.keep_last_good(&prepared).await.unwrap();
    pod.writer.write(&bad());
    told(&manager, LAST_GOOD).await;
    let prepared = manager.prepare_pinned(&counted(&good()), LAST_GOOD).await.unwrap();
    assert_eq!((prepared.checksum, prepared.choice), (Some(counted(&good())), LAST_GOOD));
}

#[tokio::test]
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
