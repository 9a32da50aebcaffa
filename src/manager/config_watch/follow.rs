//! The task that sleeps until a directory tells of a change, then has everything read again.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::observed::Shared;
use super::watches::{News, Source, Watches, no_inotify};

/// How often to read again because a directory that was not watched yet appeared meanwhile.
const ROUNDS: usize = 8;
/// A storm of changes may take one part in this many of a core, and one more.
const REST: u32 = 4;
/// The longest rest, however long a reading took.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// State of the task.
#[derive(Debug)]
pub(super) struct Follower {
    shared: Arc<Shared>,
    /// Away while a blocking thread sets watches.
    watches: Option<Watches>,
    ready: Option<AsyncFd<Arc<Source>>>,
    /// Every change will be told.
    trusted: bool,
    /// When the last reading has been rested from.
    rested: Instant,
}

/// The runtime is shutting down.
struct Ending;

impl Follower {
    /// Reads everything for the first time, and is then ready to follow.
    pub(super) async fn start(shared: Arc<Shared>) -> Self {
        let mut follower =
            Self { shared, watches: None, ready: None, trusted: false, rested: Instant::now() };
        // Only a runtime that ends keeps a reading from being made.
        let _ = follower.read(false).await;
        follower
    }

    /// Follows until it is aborted.
    pub(super) async fn follow(mut self) {
        loop {
            let news = self.news().await;
            if !news.changed {
                continue;
            }
            // A single swap finds this in the past; only in a storm of changes there is a wait.
            sleep_until(self.rested).await;
            let more = self.watches.as_ref().map(Watches::read).unwrap_or_default();
            if self.read(news.overflow || more.overflow).await.is_err() {
                return;
            }
        }
    }

    async fn news(&mut self) -> News {
        let due = async {
            if self.trusted {
                pending::<()>().await;
            }
            sleep(self.shared.settings.rescan).await;
        };
        tokio::select! {
            news = told(self.ready.as_ref(), self.watches.as_ref()) => news,
            () = due => News { changed: true, ..News::default() },
        }
    }

    async fn read(&mut self, overflow: bool) -> Result<(), Ending> {
        let mut problems = Vec::new();
        if self.watches.is_none() {
            match watched() {
                Ok((watches, ready)) => (self.watches, self.ready) = (Some(watches), Some(ready)),
                Err(error) => problems.push(no_inotify(&error)),
            }
        }
        let (shared, watches) = (Arc::clone(&self.shared), self.watches.take());
        let began = Instant::now();
        match spawn_blocking(move || read(&shared, watches, problems)).await {
            Ok((watches, complete)) => {
                self.trusted = complete && !overflow;
                self.watches = watches;
            }
            Err(error) if error.is_panic() => {
                // The watches went with it: begin anew at the next look.
                self.ready = None;
                self.trusted = false;
            }
            Err(_) => return Err(Ending),
        }
        let rest = (began.elapsed() * REST).min(LONGEST_REST);
        self.rested = Instant::now() + rest;
        Ok(())
    }
}

fn watched() -> io::Result<(Watches, AsyncFd<Arc<Source>>)> {
    let watches = Watches::new()?;
    // Its successor is an `unsafe fn`, which only `process` may call. What that asks for holds: the
    // source owns its descriptor, never replaces it, and lives as long as the AsyncFd.
    #[allow(deprecated, reason = "unsafe stays in the process room")]
    let ready = AsyncFd::with_interest(watches.source(), Interest::READABLE)?;
    Ok((watches, ready))
}

/// Waits for events.
async fn told(ready: Option<&AsyncFd<Arc<Source>>>, watches: Option<&Watches>) -> News {
    let (Some(ready), Some(watches)) = (ready, watches) else { return pending().await };
    match ready.readable().await {
        Ok(mut guard) => {
            let news = watches.read();
            if news.drained {
                guard.clear_ready();
            }
            news
        }
        // The reactor is gone, and the task goes with it.
        Err(_) => pending().await,
    }
}

/// Reads everything, and again while directories show up that were not watched before. Returns the
/// watches and whether they will tell of every change.
fn read(
    shared: &Shared,
    mut watches: Option<Watches>,
    problems: Vec<String>,
) -> (Option<Watches>, bool) {
    let mut work = shared.work();
    let period = shared.settings.rescan;
    let slow = |problem| format!("{problem}; until then it is read every {period:?}");
    work.unwatched = problems.into_iter().map(slow).collect();
    let (mut read, _) = shared.look(&mut work);
    let mut complete = false;
    if let Some(watches) = &mut watches {
        for _ in 0..ROUNDS {
            let roots = shared.settings.dirs.iter().map(|dir| dir.path.as_path());
            let synced = watches.sync(roots, &read.places);
            complete = synced.unwatched.is_empty() && !synced.fresh && !read.cut_short;
            work.unwatched = synced.unwatched.into_iter().map(slow).collect();
            if !synced.fresh {
                break;
            }
            (read, _) = shared.look(&mut work);
        }
        shared.tell(&work);
    }
    (watches, complete)
}
