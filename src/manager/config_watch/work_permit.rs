//! Work on volumes, one piece at a time, on a thread of its own. A volume may hang without end, and
//! nothing can interrupt a thread that waits for it. So whoever comes next and cannot wait is told
//! what hangs.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::progress::{ANSWER_TIMEOUT, Hanging, Progress};
use crate::worker::{WorkPanicked, Worker};

/// Data for the work of one thread at a time.
#[derive(Debug)]
pub(super) struct Exclusive<T> {
    data: Arc<Mutex<T>>,
    progress: Arc<Progress>,
    worker: Worker,
}

/// The right to work on the data; one thread has it at a time.
#[derive(Debug)]
pub(super) struct WorkPermit<T> {
    data: OwnedMutexGuard<T>,
    progress: Arc<Progress>,
    worker: Worker,
}

impl<T> Deref for WorkPermit<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

/// Work in progress. It ends by itself, also if this is dropped.
pub(super) struct Working<R> {
    result: Pin<Box<dyn Future<Output = Result<R, WorkPanicked>> + Send>>,
    progress: Arc<Progress>,
}

impl<T: Send + 'static> Exclusive<T> {
    pub(super) fn new(data: T, progress: Progress, worker: Worker) -> Self {
        Self { data: Arc::new(Mutex::new(data)), progress: Arc::new(progress), worker }
    }

    /// Waits until the earlier work has ended.
    ///
    /// # Errors
    /// The earlier work hangs.
    pub(super) async fn permit(&self) -> Result<WorkPermit<T>, Hanging> {
        loop {
            if let Ok(permit) = timeout(self.progress.time_left(), self.permit_after_all()).await {
                return Ok(permit);
            }
            if let Some(hanging) = self.progress.hanging() {
                return Err(hanging);
            }
        }
    }

    /// Waits until the earlier work has ended, however long that takes.
    pub(super) async fn permit_after_all(&self) -> WorkPermit<T> {
        let data = Arc::clone(&self.data).lock_owned().await;
        WorkPermit { data, progress: Arc::clone(&self.progress), worker: self.worker.clone() }
    }
}

impl<T: Send + 'static> WorkPermit<T> {
    /// Starts the work on the worker's thread.
    pub(super) fn begin<R: Send + 'static>(
        self,
        work: impl FnOnce(&mut T, &Progress) -> R + Send + 'static,
    ) -> Working<R> {
        let Self { mut data, progress, worker } = self;
        let watched = Arc::clone(&progress);
        let result = worker.run(move || {
            let _ended = Ended(&progress);
            work(&mut data, &progress)
        });
        Working { result: Box::pin(result), progress: watched }
    }
}

/// Ends the progress when it is dropped, also after a panic: nothing is accessed any more.
struct Ended<'a>(&'a Progress);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<R> Working<R> {
    /// Waits for the result as long as there is progress.
    ///
    /// # Errors
    /// The work hangs. Its result may be awaited again.
    pub(super) async fn done_or_hanging(&mut self) -> Result<Result<R, WorkPanicked>, Hanging> {
        loop {
            match timeout(self.progress.time_left(), &mut self.result).await {
                Ok(done) => return Ok(done),
                Err(_) => {
                    if let Some(hanging) = self.progress.hanging() {
                        return Err(hanging);
                    }
                }
            }
        }
    }

    /// Waits for the result, however long that takes; shows it if the work hangs.
    pub(super) async fn done(mut self) -> Result<R, WorkPanicked> {
        loop {
            if let Ok(done) = self.done_or_hanging().await {
                return done;
            }
            // The next access may hang as well.
            if let Ok(done) = timeout(ANSWER_TIMEOUT, &mut self.result).await {
                return done;
            }
        }
    }
}
