use tokio::time::timeout;

use crate::workers::*;

#[tokio::test(start_paused = true)] // proves RESTART-37
async fn a_task_that_fails_is_started_again_after_a_pause() {
    let [one, other] = ["one", "other"].map(|name| ("search".to_owned(), name.to_owned()));
    let mut failed = Failed::default();
    assert!(failed.may_start(&one));
    assert!(timeout(PAUSE * 2, failed.pause_is_over()).await.is_err());
    failed.note(one.clone());
    assert!(!failed.may_start(&one) && failed.may_start(&other));
    assert!(timeout(PAUSE * 2, failed.pause_is_over()).await.is_ok());
    assert!(failed.may_start(&one));
}
