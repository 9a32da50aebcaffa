//! Threads for work that may block. They are made before the engine is.
//!
//! At the pids limit of the container no thread can be made, and an engine that leaks threads
//! reaches it: just when people want to stop it. So nothing here makes a thread later. A thread
//! without work sleeps.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use nix::sys::signal::SigSet;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::errors::{ErrorCode, Errors};

/// Four times what the deepest work needs: walking a config or emptying a directory that is nested as
/// deeply as is followed. Only touched pages take memory.
const STACK: usize = 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one piece of work after the other. It ends with the last clone.
#[derive(Debug, Clone)]
pub struct Worker {
    name: &'static str,
    jobs: Sender<Job>,
    errors: Errors,
    /// True if the last work panicked.
    failed: Arc<AtomicBool>,
    /// True while work of [`Self::run_within`] is not done yet.
    hung: Arc<AtomicBool>,
}

/// A thread cannot be made.
#[derive(Debug, Error)]
#[error("the thread {name:?} cannot be made: {source}; {}", hint(.source))]
pub struct NoThread {
    name: &'static str,
    source: io::Error,
}

/// Advice for a thread that cannot be made.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        // glibc tries the older call only after ENOSYS.
        Some(libc::EPERM) => {
            "the seccomp profile forbids clone3: update the container runtime (Docker 20.10.10, \
             libseccomp 2.5.0)"
        }
        _ => "raise the limit on processes (pids of the container, or `ulimit -u`)",
    }
}

/// The work panicked, so there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the thread {0:?} panicked, which is an error in stayput; its place is in the log")]
pub struct WorkPanicked(&'static str);

impl Worker {
    /// Makes the thread. A panic in its work is reported to `errors`, until later work is done.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(name: &'static str, errors: &Errors) -> Result<Self, NoThread> {
        let (jobs, queue) = channel();
        Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || work_off(&queue))
            .map_err(|source| NoThread { name, source })?;
        Ok(Self {
            name,
            jobs,
            errors: errors.clone(),
            failed: Arc::default(),
            hung: Arc::default(),
        })
    }

    /// Does the work on the thread, after all that was passed in before. It is begun also if the
    /// returned future is not polled, but not if that is dropped before.
    ///
    /// # Errors
    /// The work panicked. The thread goes on.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, WorkPanicked>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let Self { name, errors, failed, .. } = self.clone();
        let job = move || {
            if answer.is_closed() {
                return;
            }
            match catch_unwind(AssertUnwindSafe(work)) {
                Ok(result) => {
                    if failed.swap(false, Ordering::Relaxed) {
                        errors.resolve(ErrorCode::Thread);
                    }
                    // The caller may no longer wait.
                    let _ = answer.send(result);
                }
                Err(_) => {
                    failed.store(true, Ordering::Relaxed);
                    errors.report(ErrorCode::Thread, WorkPanicked(name).to_string());
                }
            }
        };
        // The thread ends only when all senders are gone.
        let _ = self.jobs.send(Box::new(job));
        async move { answered.await.map_err(|_| WorkPanicked(name)) }
    }

    /// Does the work on the thread and blocks until it is done, but not longer than `limit`. `None` if the
    /// work is not done by then, and at once while earlier work is not done. For threads with no other work.
    pub fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.hung.swap(true, Ordering::Acquire) {
            return None;
        }
        let hung = self.hung.clone();
        let (answer, answered) = mpsc::sync_channel(1);
        let job = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            hung.store(false, Ordering::Release);
            // The caller may no longer wait.
            let _ = answer.send(result.ok());
        };
        // The thread ends only when all senders are gone.
        let _ = self.jobs.send(Box::new(job));
        answered.recv_timeout(limit).ok().flatten()
    }
}

fn work_off(jobs: &Receiver<Job>) {
    // The handlers of signals write to a descriptor, which a thread may give up. This only fails
    // for an invalid argument.
    let _ = SigSet::all().thread_block();
    for job in jobs {
        job();
    }
}

/// Does the work on a quarter of a worker's stack. If that is too small, the process ends by SIGSEGV.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
pub(crate) fn on_a_quarter_of_the_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK / 4).spawn_scoped(scope, work);
        thread.unwrap().join().unwrap()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_in_order_and_on_one_thread() {
        let worker = Worker::start("test", &Errors::default()).unwrap();
        let ids: Vec<_> = (0..3)
            .map(|number| worker.run(move || (number, std::thread::current().id())))
            .collect();
        let mut threads = Vec::new();
        for (number, work) in ids.into_iter().enumerate() {
            let (done, thread) = work.await.unwrap();
            assert_eq!(done, number);
            threads.push(thread);
        }
        threads.dedup();
        assert_eq!(threads.len(), 1);
        assert_ne!(threads[0], std::thread::current().id());
    }

    #[tokio::test]
    async fn a_panic_costs_one_result_and_is_reported_until_other_work_is_done() {
        let errors = Errors::default();
        let worker = Worker::start("test", &errors).unwrap();
        let panicked = worker.run(|| panic!("on purpose")).await;
        assert_eq!(panicked, Err::<(), _>(WorkPanicked("test")));
        assert_eq!(errors.list()[0].code, "thread");
        assert!(errors.list()[0].message.contains("\"test\" panicked"), "{errors:?}");
        assert_eq!(worker.run(|| 7).await, Ok(7));
        assert_eq!(errors.list(), []);
    }

    #[test]
    fn work_that_hangs_is_waited_for_once() {
        let worker = Worker::start("test", &Errors::default()).unwrap();
        let (go, gate) = channel::<()>();
        let hung = worker.run_within(Duration::from_millis(1), move || gate.recv().is_ok());
        assert_eq!(hung, None);
        assert_eq!(worker.run_within(Duration::from_secs(3600), || 1), None, "at once");
        go.send(()).unwrap();
        while worker.hung.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert_eq!(worker.run_within(Duration::from_secs(3600), || 2), Some(2));
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_not_begun() {
        let worker = Worker::start("test", &Errors::default()).unwrap();
        let (go, gate) = channel::<()>();
        let first = worker.run(move || gate.recv());
        let begun = Arc::new(AtomicBool::new(false));
        let seen = begun.clone();
        drop(worker.run(move || seen.store(true, Ordering::Relaxed)));
        go.send(()).unwrap();
        first.await.unwrap().unwrap();
        worker.run(|| ()).await.unwrap();
        assert!(!begun.load(Ordering::Relaxed));
    }
}
