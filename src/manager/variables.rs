//! The engine's variables from the file of `--environment`: in a pod, an annotation that the downward
//! API shows, so that they can change while the pod lives.
//!
//! One thread reads the file: before each start for the engine, and after a change for the status. A volume
//! that hangs costs only starts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::inotify::{self, FileWatch};
use crate::process::EnvironmentChanges;
use crate::worker::Worker;
use stayput_api::checksum::ContentDigest;
use stayput_api::{Code, Refusal};

/// Size limit of the file in bytes. All annotations of a pod together may have 256 KiB.
const MAX_BYTES: u64 = 64 * 1024;
/// How long a start waits for the file.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay from the first change to reading the file.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// Age of a reading from which on a question for the status leads to the next one: changes are not
/// always reported.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Beginning of the names that the manager itself uses.
const OWN: &str = "STAYPUT_";

/// The variables of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables {
    /// SHA-256 of the file's content.
    pub digest: String,
    pub changes: EnvironmentChanges,
}

impl Variables {
    fn parse(content: &[u8]) -> Result<Self, String> {
        let is_empty = content.trim_ascii().is_empty();
        let written = if is_empty { b"{}".as_slice() } else { content };
        let written: BTreeMap<String, Option<String>> = serde_json::from_slice(written)
            .map_err(|error| format!("no JSON object of strings and nulls: {error}"))?;
        for (name, value) in &written {
            let fault = match name.as_str() {
                "" => "a name is empty",
                name if name.contains(['=', '\0']) => "the name contains = or NUL",
                name if name.starts_with(OWN) => "the name is one of the manager's own",
                _ if value.as_ref().is_some_and(|value| value.contains('\0')) => {
                    "the value contains NUL"
                }
                _ => continue,
            };
            return Err(format!("{name:?}: {fault}"));
        }
        let changes = written.into_iter().map(|(name, value)| (name.into(), value.map(Into::into)));
        Ok(Self { digest: digest(content), changes: changes.collect() })
    }
}

fn digest(content: &[u8]) -> String {
    ContentDigest::of(content).to_string()
}

/// The whole file; nothing if there is none. Blocks.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut content)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(content),
        Err(error) => Err(error.to_string()),
        Ok(_) if content.len() as u64 > MAX_BYTES => {
            Err(format!("it has more than {} KiB", MAX_BYTES / 1024))
        }
        Ok(_) => Ok(content),
    }
}

/// The file of `--environment`, which is followed until this is dropped.
#[derive(Debug)]
pub struct VariablesFile {
    path: PathBuf,
    worker: Worker,
    /// Digest of the file as last read; `None` if it cannot be read.
    digest: Arc<watch::Sender<Option<String>>>,
    asked: Arc<Notify>,
    follower: AbortHandle,
}

impl VariablesFile {
    /// Begins to read and follow the file at an absolute path on this thread, which has no other work. Needs a
    /// runtime with I/O and time.
    pub fn start(path: PathBuf, worker: Worker) -> Self {
        let digest = Arc::new(watch::Sender::new(None));
        let asked = Arc::new(Notify::new());
        let follower = Follower {
            path: path.clone(),
            worker: worker.clone(),
            digest: Arc::clone(&digest),
            asked: Arc::clone(&asked),
        };
        Self { path, worker, digest, asked, follower: tokio::spawn(follower.run()).abort_handle() }
    }

    /// Follows the digest for the status.
    pub fn subscribe(&self) -> watch::Receiver<Option<String>> {
        self.digest.subscribe()
    }

    /// Reads the file again unless it was read a moment ago. To be called when somebody asks for the status.
    /// Returns at once; a change is published.
    pub fn refresh(&self) {
        self.asked.notify_one();
    }

    /// Reads the variables for a start.
    ///
    /// # Errors
    /// * [`Code::ConfigUnknown`]: the file cannot be read, or has something else.
    /// * [`Code::StageFailed`]: its volume does not answer.
    pub async fn prepare(&self) -> Result<Variables, Refusal> {
        let (path, shown) = (self.path.clone(), self.path.display());
        let unusable = |fault: String| {
            let message = format!(
                "the engine's variables in {shown} (--environment) cannot be used: {fault}; correct the \
                 file, in a pod by the annotation it shows, and start the engine again"
            );
            Refusal::new(Code::ConfigUnknown, message)
        };
        let Ok(content) = timeout(READ_TIMEOUT, self.worker.run(move || read(&path))).await else {
            let message = format!(
                "the engine's variables in {shown} were not read within {} s: repair the volume behind \
                 --environment, or try again later",
                READ_TIMEOUT.as_secs()
            );
            return Err(Refusal::new(Code::StageFailed, message));
        };
        let content = content.map_err(|panicked| unusable(panicked.to_string()))?;
        let content = content.map_err(unusable)?;
        publish(&self.digest, Some(digest(&content)));
        Variables::parse(&content).map_err(unusable)
    }
}

impl Drop for VariablesFile {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

fn publish(sender: &watch::Sender<Option<String>>, digest: Option<String>) {
    sender.send_if_modified(|last| std::mem::replace(last, digest.clone()) != digest);
}

/// Publishes the digest: at first, and after each change.
struct Follower {
    path: PathBuf,
    worker: Worker,
    digest: Arc<watch::Sender<Option<String>>>,
    asked: Arc<Notify>,
}

impl Follower {
    async fn run(self) {
        let ready = inotify::open();
        let ready = ready.inspect_err(|error| {
            tracing::warn!("{}", inotify::unavailable("the engine's variables", error));
        });
        let ready = ready.ok();
        let files = vec![self.path.clone()];
        let mut watch =
            ready.as_ref().map(|ready| FileWatch::new(Arc::clone(ready.get_ref()), files));
        loop {
            let (read_at, path) = (Instant::now(), self.path.clone());
            let reading = self.worker.run(move || {
                if let Some(watch) = &mut watch {
                    watch.take_events();
                    watch.sync().unwrap_or_else(|unwatched| tracing::warn!("{unwatched}"));
                }
                (watch, read(&path).ok().map(|content| digest(&content)))
            });
            // A panic is reported; from then on only questions lead to readings.
            let (still_watching, digest) = reading.await.unwrap_or_default();
            watch = still_watching;
            publish(&self.digest, digest);
            loop {
                tokio::select! {
                    () = inotify::changed(ready.as_ref(), watch.as_ref()) => {
                        sleep(SETTLE_TIME).await;
                        break;
                    }
                    () = self.asked.notified() => if read_at.elapsed() > MAX_AGE { break },
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::errors::Errors;

    fn file(content: &str) -> (tempfile::TempDir, VariablesFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("environment");
        std::fs::write(&path, content).unwrap();
        let worker = Worker::start("test", &Errors::default()).unwrap();
        (dir, VariablesFile::start(path, worker))
    }

    #[test] // proves STOP-41
    fn a_string_is_set_and_null_removes() {
        let set = |name: &str, value: Option<&str>| (name.into(), value.map(Into::into));
        let parsed = Variables::parse(br#"{"B": "x=y", "A": null, "C": ""}"#).unwrap();
        assert_eq!(parsed.changes, [set("A", None), set("B", Some("x=y")), set("C", Some(""))]);
        let none = Variables::parse(b"").unwrap();
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((none.digest.as_str(), none.changes), (of_nothing, vec![]));
    }

    #[tokio::test] // proves HOST-10
    async fn what_is_no_variable_is_refused_with_the_file_and_the_fault() {
        let long = format!(r#"{{"A": "{}"}}"#, "x".repeat(64 * 1024));
        for (content, fault) in [
            ("{", "EOF while parsing"),
            ("[]", "expected a map"),
            (r#"{"A": 1}"#, "expected a string"),
            (r#"{"": "x"}"#, "a name is empty"),
            (r#"{"A=B": "x"}"#, "= or NUL"),
            (r#"{"A\u0000": "x"}"#, "= or NUL"),
            (r#"{"A": "\u0000"}"#, "value contains NUL"),
            (r#"{"STAYPUT_RUN": "x"}"#, "one of the manager's own"),
            (r#"{"STAYPUT_RUN": null}"#, "one of the manager's own"),
            (&long, "more than 64 KiB"),
        ] {
            let (dir, file) = file(content);
            let refusal = file.prepare().await.unwrap_err();
            assert_eq!(refusal.code, Code::ConfigUnknown);
            for part in [dir.path().to_str().unwrap(), fault, "correct the file"] {
                assert!(refusal.message.contains(part), "{content:.40}: {refusal:?}");
            }
        }
    }

    #[tokio::test] // proves STOP-41
    async fn a_change_shows_without_a_question() {
        let (dir, file) = file(r#"{"A": "1"}"#);
        let mut digests = file.subscribe();
        let before = digests.wait_for(Option::is_some).await.unwrap().clone();
        // As the kubelet does it.
        let next = dir.path().join("next");
        std::fs::write(&next, r#"{"A": "2"}"#).unwrap();
        std::fs::rename(&next, dir.path().join("environment")).unwrap();
        let after = digests.wait_for(|digest| *digest != before).await.unwrap().clone();
        assert_eq!(after, Some(digest(br#"{"A": "2"}"#)));
        assert_eq!(after, Some(file.prepare().await.unwrap().digest));
        std::fs::remove_file(dir.path().join("environment")).unwrap();
        let none = digests.wait_for(|digest| *digest != after).await.unwrap().clone();
        assert_eq!(none, Some(digest(b"")));
    }

    #[tokio::test(start_paused = true)] // proves HOST-10
    async fn a_file_whose_volume_hangs_is_named_and_costs_only_the_start() {
        let (dir, file) = file("{}");
        let (go, gate) = channel::<()>();
        let hanging = file.worker.run(move || gate.recv());
        let refusal = file.prepare().await.unwrap_err();
        assert_eq!(refusal.code, Code::StageFailed);
        assert!(refusal.message.contains(dir.path().to_str().unwrap()), "{refusal:?}");
        drop(go);
        let _ = hanging.await;
        // The thread needs real time.
        tokio::time::resume();
        file.prepare().await.unwrap();
    }
}
