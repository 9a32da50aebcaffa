use std::future::pending;

use tokio::time::sleep;

use crate::workers::*;

#[tokio::test(start_paused = true)] // proves RESTART-15
async fn a_reconcile_that_never_ends_is_given_up_and_a_long_one_is_not() {
    let (progress, began) = (Progress::default(), Instant::now());
    assert_eq!(progress.clone().unless_it_hangs(pending::<()>()).await, None);
    assert_eq!(began.elapsed(), HANGS_AFTER);
    let rounds = async {
        for _ in 0..3 {
            progress.note();
            sleep(HANGS_AFTER * 2 / 3).await;
        }
        1
    };
    assert_eq!(progress.clone().unless_it_hangs(rounds).await, Some(1));
}
