//! When the readiness probe runs: with growing pauses until the engine was ready once, then only
//! for requests of the status. Callers share a result, and it runs at most once a second. At rest
//! it does not run.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::probe::Prober;

/// The shortest pause between two probes of a starting engine.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Between both limits, the pause is this part of the time the start has taken so far: the probe's
/// delay adds to every restart, so it is kept small compared with the start itself.
const PAUSE_PART: u32 = 50;
/// How long an answer is used again.
const ANSWER_MAX_AGE: Duration = Duration::from_secs(1);

/// The state of probing one engine.
#[derive(Debug)]
pub(super) struct Readiness {
    probe: Option<Arc<Prober>>,
    /// Last answer of the probe; `None` without a probe.
    ready: Option<bool>,
    /// Reason why the last call failed.
    error: Option<String>,
    asked_at: Option<Instant>,
    probing: Option<AbortHandle>,
    waiters: Vec<oneshot::Sender<()>>,
    sender: mpsc::UnboundedSender<Answer>,
    answers: mpsc::UnboundedReceiver<Answer>,
    /// Number of the run that is probed: a late answer about an earlier run is dropped.
    run: u64,
}

/// One answer of the probe.
#[derive(Debug)]
pub(super) struct Answer {
    run: u64,
    outcome: Result<(), String>,
    /// True if the engine is starting, and is probed on.
    goes_on: bool,
}

impl Readiness {
    pub(super) fn new(probe: Option<Arc<Prober>>) -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let ready = probe.is_some().then_some(false);
        Self {
            probe,
            ready,
            error: None,
            asked_at: None,
            probing: None,
            waiters: Vec::new(),
            sender,
            answers,
            run: 0,
        }
    }

    pub(super) fn ready(&self) -> Option<bool> {
        self.ready
    }

    /// Reason why the last call of the probe in this run failed, if it did.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Takes over a run, with the last answer of its probe.
    pub(super) fn take_over(&mut self, ready: Option<bool>) {
        self.ready = self.ready.map(|_| ready.unwrap_or(false));
    }

    /// Begins a run: probes it until it is ready.
    pub(super) fn run_began(&mut self) {
        self.run_ended();
        let Some(probe) = self.probe.clone() else { return };
        let (sender, run) = (self.sender.clone(), self.run);
        let task = tokio::spawn(async move {
            let began = Instant::now();
            let mut last = None;
            while let Err(error) = probe.check().await {
                // The same error again is no news, and must not be a change of the status.
                if last.as_ref() != Some(&error) {
                    last = Some(error.clone());
                    let _ = sender.send(Answer { run, outcome: Err(error), goes_on: true });
                }
                tokio::time::sleep(pause_after(began.elapsed())).await;
            }
            let _ = sender.send(Answer { run, outcome: Ok(()), goes_on: false });
        });
        self.probing = Some(task.abort_handle());
    }

    /// Ends a run, which is over or ending: it is not ready and is not probed.
    pub(super) fn run_ended(&mut self) {
        if let Some(task) = self.probing.take() {
            task.abort();
        }
        self.ready = self.ready.map(|_| false);
        self.error = None;
        self.asked_at = None;
        // Dropped waiters are answered as well: there will be no other answer.
        self.waiters.clear();
        // A probe that is still running is about an earlier run.
        self.run += 1;
    }

    /// Requests the readiness for a caller. Answered at once if there is no probe or its last answer is
    /// recent enough; while the engine starts, answered with the next ready answer of its own probes.
    pub(super) fn ask(&mut self, running: bool, waiter: oneshot::Sender<()>) {
        if running && self.probing.is_some() {
            self.waiters.push(waiter);
            return;
        }
        let fresh = self.asked_at.is_some_and(|at| at.elapsed() < ANSWER_MAX_AGE);
        let Some(probe) = self.probe.clone().filter(|_| running && !fresh) else {
            let _ = waiter.send(());
            return;
        };
        self.waiters.push(waiter);
        self.asked_at = Some(Instant::now());
        let (sender, run) = (self.sender.clone(), self.run);
        let task = tokio::spawn(async move {
            let outcome = probe.check().await;
            let _ = sender.send(Answer { run, outcome, goes_on: false });
        });
        self.probing = Some(task.abort_handle());
    }

    /// The next answer. Cancel-safe.
    pub(super) async fn answered(&mut self) -> Answer {
        match self.answers.recv().await {
            Some(answer) => answer,
            // `self.sender` keeps the channel open.
            None => std::future::pending().await,
        }
    }

    /// Handles an answer. True if it is about the current run and ready.
    pub(super) fn take(&mut self, answer: &Answer) -> bool {
        if answer.run != self.run {
            return false;
        }
        self.error = answer.outcome.as_ref().err().cloned();
        if answer.goes_on {
            return false;
        }
        self.probing = None;
        self.asked_at = Some(Instant::now());
        self.ready = Some(answer.outcome.is_ok());
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(());
        }
        answer.outcome.is_ok()
    }
}

/// The pause between two probes of an engine that has been starting for so long.
fn pause_after(starting: Duration) -> Duration {
    (starting / PAUSE_PART).clamp(MIN_PAUSE, MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::errors::Errors;
    use crate::supervisor::probe::Probe;

    fn prober(probe: Probe) -> Arc<Prober> {
        Arc::new(Prober::start(probe, &Errors::default()).unwrap())
    }

    /// A ready engine behind `listener`, and its readiness.
    async fn began(probe: Probe) -> Readiness {
        let mut readiness = Readiness::new(Some(prober(probe)));
        readiness.run_began();
        let answer = readiness.answered().await;
        assert!(readiness.take(&answer));
        readiness
    }

    async fn ask(readiness: &mut Readiness) {
        let (waiter, mut waiting) = oneshot::channel();
        readiness.ask(true, waiter);
        if waiting.try_recv().is_err() {
            let answer = readiness.answered().await;
            readiness.take(&answer);
        }
    }

    #[test]
    fn a_probe_delays_a_start_by_little_and_a_long_start_is_not_probed_all_the_time() {
        let pause = |seconds| pause_after(Duration::from_secs(seconds)).as_millis();
        assert_eq!([0, 1, 5, 10, 50, 3600].map(pause), [50, 50, 100, 200, 1000, 1000]);
    }

    #[tokio::test]
    async fn the_probe_is_asked_at_most_once_a_second() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let begin = Instant::now();
        let mut readiness = began(Probe::Tcp { address }).await;
        for _ in 0..50 {
            ask(&mut readiness).await;
        }
        let allowed = 1 + begin.elapsed().as_secs();
        let mut asked = 0;
        while let Ok(accepted) =
            tokio::time::timeout(Duration::from_millis(10), listener.accept()).await
        {
            accepted.unwrap();
            asked += 1;
        }
        assert!((1..=allowed).contains(&asked), "{asked}");
    }

    #[tokio::test]
    async fn an_engine_that_hangs_is_not_ready_before_the_api_stops_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let probe = Probe::Http { address, path: "/".into(), tls: false, ca: None, auth: None };
        let (mut readiness, first) = tokio::join!(began(probe), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
            stream
        });
        drop(first);
        assert_eq!(readiness.ready(), Some(true));
        // From here on the test accepts no connection: the kernel does, and nothing answers.
        tokio::time::pause();
        tokio::time::advance(ANSWER_MAX_AGE).await;
        let begin = Instant::now();
        ask(&mut readiness).await;
        assert_eq!(readiness.ready(), Some(false));
        let error = readiness.error().unwrap_or_default();
        assert!(error.ends_with("was not answered within 1s"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }

    #[tokio::test]
    async fn an_error_of_a_starting_engine_is_told_once_and_forgotten_with_the_run() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let probe = Probe::Http { address, path: "/".into(), tls: false, ca: None, auth: None };
        let mut readiness = Readiness::new(Some(prober(probe)));
        readiness.run_began();
        let serve = async |answers: &[&str]| {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let answer = format!("HTTP/1.1 {answer} -\r\ncontent-length: 0\r\n\r\n");
                tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
                // Until the probe has read it and closes.
                tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut Vec::new()).await.unwrap();
            }
        };
        serve(&["401", "401", "401", "503"]).await;
        let answer = readiness.answered().await;
        assert!(!readiness.take(&answer));
        assert!(readiness.error().unwrap().contains("answered 401"), "{:?}", readiness.error());
        assert_eq!(readiness.ready(), Some(false));
        let answer = readiness.answered().await;
        readiness.take(&answer);
        assert!(readiness.error().unwrap().ends_with("answered 503"), "{:?}", readiness.error());
        let (answer, ()) = tokio::join!(readiness.answers.recv(), serve(&["200"]));
        assert!(readiness.take(&answer.unwrap()));
        assert_eq!((readiness.error(), readiness.ready()), (None, Some(true)));
        readiness.error = Some("of this run".into());
        readiness.run_ended();
        assert_eq!(readiness.error(), None);
    }
}
