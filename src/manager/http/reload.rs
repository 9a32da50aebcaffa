//! Reads keys and certificates again: when their files change, when they are used and the last
//! reading is old, and after a fault.
//!
//! Changes are not always reported: gVisor, a network file system, a mount over a directory. So
//! whoever uses a key asks for a reading first if the last one is old (`CheckedKeys`). Then no
//! timer is needed at rest, and a key that was taken away lets in nobody.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::key_files::{KeyFiles, Keys, Tls};
use super::settings::HttpSettings;
use super::tls::{self, Check, CheckedKeys, Keeping, KeptPair, Pair};
use crate::errors::{ErrorCode, Errors};
use crate::inotify::{self, Events, FileWatch};
use crate::worker::{NoThread, WorkPanicked, Worker};

/// Delay from the first change to reading the files: certificate and key are written one by one.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// How long a reading may take before requests do not wait for it.
const SLOW_READING: Duration = Duration::from_millis(500);
/// Longest sleep until a date: the clock may be set, so that the date comes earlier than it seemed.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// Owns the key files and publishes the keys in force.
pub(super) struct Reloader {
    settings: HttpSettings,
    files: Arc<Mutex<KeyFiles>>,
    /// None while the thread sets watches, and where there is no inotify.
    watch: Option<FileWatch>,
    ready: Option<Events>,
    /// Reads the files, if there are any.
    worker: Option<Worker>,
    reading: Option<(Instant, ReadingUnderWay)>,
    keys: watch::Sender<Arc<Keys>>,
    kept: Option<KeptPair>,
    /// TLS settings from the kept certificate, if no mounted certificate could be used.
    kept_tls: Option<Tls>,
    /// Certificate and key that came into force and are not kept yet.
    new_pair: Option<Pair>,
    keeping: Option<Keeping>,
    checks: watch::Sender<Check>,
    asked: Arc<Notify>,
    /// Faults of the last reading.
    pub(super) faults: Vec<String>,
    unwatched: Option<String>,
    readings_with_faults: u32,
}

type ReadingUnderWay = Pin<Box<dyn Future<Output = Result<Reading, WorkPanicked>> + Send>>;

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The result of a reading.
#[derive(Debug)]
struct Reading {
    watch: Option<FileWatch>,
    unwatched: Option<String>,
    changed: bool,
    keys: Keys,
    new_pair: Option<Pair>,
    faults: Vec<String>,
}

impl Reloader {
    /// A reloader before its first reading.
    ///
    /// # Errors
    /// The thread that reads the files cannot be made.
    pub(super) fn new(
        settings: &HttpSettings,
        errors: &Errors,
        kept: Option<KeptPair>,
    ) -> Result<Self, NoThread> {
        let worker = match KeyFiles::paths(settings).next() {
            Some(_) => Some(Worker::start("keys", errors)?),
            None => None,
        };
        let files = KeyFiles::new(settings);
        let keys = watch::Sender::new(Arc::new(files.keys()));
        Ok(Self {
            settings: settings.clone(),
            worker,
            files: Arc::new(Mutex::new(files)),
            watch: None,
            ready: None,
            reading: None,
            keys,
            kept,
            kept_tls: None,
            new_pair: None,
            keeping: None,
            checks: watch::Sender::new(Check::Began(Instant::now())),
            asked: Arc::default(),
            faults: Vec::new(),
            unwatched: None,
            readings_with_faults: 0,
        })
    }

    /// The keys in force, for requests and handshakes.
    pub(super) fn checked_keys(&self) -> CheckedKeys {
        let (keys, checks) = (self.keys.subscribe(), self.checks.subscribe());
        CheckedKeys::new(keys, checks, Arc::clone(&self.asked))
    }

    /// Publishes the keys in force and reports faults, until nobody receives keys any more.
    pub(super) async fn run(mut self, errors: Errors) {
        if self.worker.is_none() {
            return;
        }
        self.serve_kept().await;
        if self.reading.is_some() {
            // The first one took too long.
            self.read(Some(&errors)).await;
        }
        loop {
            self.keep();
            let next = self.report(&errors);
            let due = async {
                match next {
                    Some(next) => sleep(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = inotify::changed(self.ready.as_ref(), self.watch.as_ref()) => sleep(SETTLE_TIME).await,
                () = self.asked.notified() => {}
                () = due => {}
                () = self.keys.closed() => return,
            }
            self.read(Some(&errors)).await;
        }
    }

    /// Serves the kept certificate if no mounted one can be used.
    async fn serve_kept(&mut self) {
        let keys = self.keys.borrow().clone();
        let Some(kept) = self.kept.as_ref().filter(|_| keys.lacks_certificate()) else { return };
        let Some(pair) = kept.load().await else { return };
        match Tls::from_pair(&pair, self.settings.tls_min.unwrap_or_default()) {
            Ok(tls) => self.kept_tls = Some(tls),
            Err(error) => return tracing::warn!("the kept certificate cannot be used: {error}"),
        }
        self.publish((*keys).clone());
    }

    /// Keeps the certificate that came into force. Only once the server serves: a first start that
    /// is refused leaves nothing behind.
    fn keep(&mut self) {
        if let Some((kept, pair)) = self.kept.as_ref().zip(self.new_pair.take()) {
            self.keeping = Some(kept.keep(pair));
        }
    }

    fn publish(&self, mut keys: Keys) {
        if let Some(kept) = self.kept_tls.as_ref().filter(|_| keys.lacks_certificate()) {
            keys.tls = Some(kept.config.clone());
            keys.validity = kept.validity;
        }
        self.keys.send_replace(Arc::new(keys));
    }

    fn serves_kept(&self) -> bool {
        let (kept, keys) = (self.kept_tls.as_ref(), self.keys.borrow());
        kept.zip(keys.tls.as_ref()).is_some_and(|(kept, now)| Arc::ptr_eq(&kept.config, now))
    }

    /// Reads all files on another thread. If the future is dropped, the next call continues.
    pub(super) async fn read(&mut self, errors: Option<&Errors>) {
        let Some(worker) = self.worker.clone() else { return };
        let (began, reading) = match &mut self.reading {
            Some(reading) => reading,
            None => {
                let reading = (Instant::now(), self.begin(&worker));
                self.reading.insert(reading)
            }
        };
        let began = *began;
        let read = match timeout(SLOW_READING, reading.as_mut()).await {
            Ok(read) => read,
            Err(_) => {
                self.checks.send_replace(Check::Hangs);
                if let Some(errors) = errors {
                    let message = "keys and certificates cannot be read: their volume does not \
                                   answer; the last ones stay in force; repair the volume";
                    errors.report(ErrorCode::KeyFiles, message);
                }
                reading.as_mut().await
            }
        };
        self.reading = None;
        match read {
            Ok(read) => {
                (self.watch, self.unwatched, self.faults) =
                    (read.watch, read.unwatched, read.faults);
                self.new_pair = read.new_pair.or(self.new_pair.take());
                if read.changed {
                    self.publish(read.keys);
                }
            }
            // The watches were lost with the thread: new ones are set at the next reading.
            Err(error) => {
                self.ready = None;
                self.faults = vec![format!("keys and certificates were not read: {error}")];
            }
        }
        self.readings_with_faults =
            if self.faults.is_empty() { 0 } else { self.readings_with_faults.saturating_add(1) };
        self.checks.send_replace(Check::Began(began));
    }

    fn begin(&mut self, worker: &Worker) -> ReadingUnderWay {
        let mut unwatched = None;
        if self.watch.is_none() {
            match inotify::open() {
                Ok(ready) => {
                    let files = KeyFiles::paths(&self.settings).map(ToOwned::to_owned).collect();
                    self.watch = Some(FileWatch::new(Arc::clone(ready.get_ref()), files));
                    self.ready = Some(ready);
                }
                Err(error) => {
                    unwatched = Some(inotify::unavailable("keys and certificates", &error));
                }
            }
        }
        let (mut watch, files) = (self.watch.take(), Arc::clone(&self.files));
        Box::pin(worker.run(move || {
            if let Some(watch) = &mut watch {
                watch.take_events();
                unwatched = watch.sync().err();
            }
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = files.reread();
            let (keys, faults) = (files.keys(), files.errors());
            Reading { watch, unwatched, changed, keys, new_pair: files.take_new_pair(), faults }
        }))
    }

    /// Reports the faults. Returns the delay after which to read again without a cause, if any.
    fn report(&self, errors: &Errors) -> Option<Duration> {
        let report = |code, message: Option<String>| match message {
            Some(message) => errors.report(code, message),
            None => errors.resolve(code),
        };
        let mut faults = (!self.faults.is_empty()).then(|| self.faults.join("; "));
        if let Some(faults) = faults.as_mut().filter(|_| self.serves_kept()) {
            faults.push_str("; until then the last usable certificate is served");
        }
        let retry = faults.is_some().then(|| delay_after(self.readings_with_faults));
        report(ErrorCode::KeyFiles, faults);
        let unwatched = self.unwatched.as_ref().map(|unwatched| {
            format!(
                "{unwatched}; until then they are read every {:?} and when they are used",
                LONGEST
            )
        });
        let slowly = unwatched.is_some().then_some(LONGEST);
        report(ErrorCode::KeyWatch, unwatched);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let validity = self.keys.borrow().validity;
        report(ErrorCode::Certificate, validity.and_then(|validity| tls::problem(validity, now)));
        let date = validity.and_then(|validity| validity.until_change(now));
        let date = date.map(|date| date.min(LONGEST_SLEEP));
        [retry, slowly, date].into_iter().flatten().min()
    }
}

const FIRST: Duration = Duration::from_secs(1);
/// The longest time to the next attempt.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// The time to the next attempt after this many that failed in a row. It doubles.
pub(super) fn delay_after(failures: u32) -> Duration {
    (FIRST * 2_u32.pow(failures.saturating_sub(1).min(5))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_limit() {
        let seconds = |failures| delay_after(failures).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 7, u32::MAX].map(seconds), [1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
