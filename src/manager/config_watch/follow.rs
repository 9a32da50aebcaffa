//! The task that sleeps until a directory changes, then reads everything again.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::observed::{Shared, Work};
use super::progress::Progress;
use super::watches::{Changes, Watches};
use crate::errors::{ErrorCode, Errors};
use crate::inotify::{self, Events};

/// How often to read again because a directory appeared that was not watched yet.
const MAX_READINGS: usize = 8;
/// The pause after a reading is this many times as long as the reading took, so that many changes
/// in a row take at most a fifth of a core.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause, however long a reading took.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// State of the task.
#[derive(Debug)]
pub(super) struct Follower {
    shared: Arc<Shared>,
    errors: Errors,
    /// None while the reader sets watches, and where there is no inotify.
    watches: Option<Watches>,
    ready: Option<Events>,
    /// True if every change wakes this task, so that no rescan is needed.
    trusted: bool,
    /// The next reading must not begin before this time.
    next_reading: Instant,
}

impl Follower {
    /// Reads everything for the first time, and is then ready to follow.
    pub(super) async fn start(shared: Arc<Shared>, errors: Errors) -> Self {
        let mut follower = Self {
            shared,
            errors,
            watches: None,
            ready: None,
            trusted: false,
            next_reading: Instant::now(),
        };
        follower.read(false).await;
        follower
    }

    /// Follows until it is aborted.
    pub(super) async fn follow(mut self) {
        loop {
            let changes = self.changes().await;
            if !changes.changed {
                continue;
            }
            // After a single swap this time is in the past; the task waits only after many changes
            // in a row.
            sleep_until(self.next_reading).await;
            let more = self.watches.as_ref().map(Watches::read).unwrap_or_default();
            self.read(changes.overflow || more.overflow).await;
        }
    }

    async fn changes(&mut self) -> Changes {
        let due = async {
            if self.trusted {
                pending::<()>().await;
            }
            sleep(self.shared.settings.rescan).await;
        };
        tokio::select! {
            changes = next_changes(self.ready.as_ref(), self.watches.as_ref()) => changes,
            () = due => Changes { changed: true, ..Changes::default() },
            () = self.shared.asked.notified() => Changes { changed: true, ..Changes::default() },
        }
    }

    async fn read(&mut self, overflow: bool) {
        let mut unwatched = Vec::new();
        if self.watches.is_none() {
            match inotify::open() {
                Ok(ready) => {
                    self.watches = Some(Watches::new(Arc::clone(ready.get_ref())));
                    self.ready = Some(ready);
                }
                Err(error) => unwatched.push(inotify::unavailable("the config", &error)),
            }
        }
        let (shared, watches) = (Arc::clone(&self.shared), self.watches.take());
        let permit = self.shared.work.permit_after_all().await;
        let began = Instant::now();
        let reading = permit.begin(move |work, progress| read(&shared, work, progress, watches));
        match reading.done().await {
            Ok(read) => {
                self.trusted = read.complete && !overflow;
                self.watches = read.watches;
                unwatched.extend(read.unwatched);
                self.report(&unwatched);
            }
            Err(_) => {
                // The watches were lost in a panic: new ones are set at the next reading.
                self.ready = None;
                self.trusted = false;
            }
        }
        let pause = (began.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
        self.next_reading = Instant::now() + pause;
    }

    fn report(&self, unwatched: &[String]) {
        if unwatched.is_empty() {
            return self.errors.resolve(ErrorCode::ConfigWatch);
        }
        let (unwatched, period) = (unwatched.join("; "), self.shared.settings.rescan);
        let message = format!("{unwatched}; until then the config is read every {period:?}");
        self.errors.report(ErrorCode::ConfigWatch, message);
    }
}

/// Waits for events.
async fn next_changes(ready: Option<&Events>, watches: Option<&Watches>) -> Changes {
    let (Some(ready), Some(watches)) = (ready, watches) else { return pending().await };
    match ready.readable().await {
        Ok(mut guard) => {
            let changes = watches.read();
            if changes.drained {
                guard.clear_ready();
            }
            changes
        }
        // The reactor is gone, and the task goes with it.
        Err(_) => pending().await,
    }
}

/// The result of a reading.
struct Read {
    watches: Option<Watches>,
    /// True if the watches report every change.
    complete: bool,
    /// Directories that cannot be watched, with the reason.
    unwatched: Vec<String>,
}

/// Reads everything, and reads again while directories appear that were not watched before.
fn read(
    shared: &Shared,
    work: &mut Work,
    progress: &Progress,
    mut watches: Option<Watches>,
) -> Read {
    let (mut read, _) = shared.observe(work, progress);
    let (mut complete, mut unwatched) = (false, Vec::new());
    if let Some(watches) = &mut watches {
        for _ in 0..MAX_READINGS {
            let roots = shared.settings.dirs.iter().map(|dir| dir.path.as_path());
            let synced = watches.sync(roots, &read.directories);
            complete = synced.unwatched.is_empty() && !synced.fresh && !read.cut_short;
            unwatched = synced.unwatched;
            if !synced.fresh {
                break;
            }
            (read, _) = shared.observe(work, progress);
        }
    }
    Read { watches, complete, unwatched }
}
