//! The access that work on a volume waits for, so that a volume that hangs can be named.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long one file or directory may take before its volume counts as hanging.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// One access to a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// Access to the mounted config.
    Read(PathBuf),
    /// Access to a staging target.
    Stage(PathBuf),
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
    /// Access to the kept generations.
    Keep(PathBuf),
}

impl Access {
    const fn remedy(&self) -> &'static str {
        match self {
            Self::Read(_) | Self::Stage(_) | Self::Copy { .. } => {
                "repair that volume; until it answers, the engine cannot be started and the mounted \
                 config is unknown"
            }
            Self::Keep(_) => "repair that volume; until it answers, no kept config can be used",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "reading {}", path.display()),
            Self::Stage(target) => write!(f, "staging to {}", target.display()),
            Self::Copy { from, to } => write!(f, "copying {} to {}", from.display(), to.display()),
            Self::Keep(root) => write!(f, "the kept configs in {}", root.display()),
        }
    }
}

/// An access that has taken too long.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{access} has not answered for {} s: {}", since.elapsed().as_secs(), access.remedy())]
pub(super) struct Hanging {
    pub(super) access: Access,
    since: Instant,
}

/// Callback: gets the message to show while an access hangs, and `None` when that is over.
type Show = Box<dyn Fn(Option<String>) + Send + Sync>;

/// The access in progress, and the callback that shows it if it hangs.
pub(super) struct Progress {
    present: Mutex<Option<Present>>,
    show: Show,
}

#[derive(Debug)]
struct Present {
    access: Access,
    since: Instant,
    shown: bool,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("present", &self.present).finish_non_exhaustive()
    }
}

impl Progress {
    pub(super) fn new(show: impl Fn(Option<String>) + Send + Sync + 'static) -> Self {
        Self { present: Mutex::default(), show: Box::new(show) }
    }

    /// Progress of work that nobody watches.
    pub(super) fn unseen() -> Self {
        Self::new(|_| {})
    }

    pub(super) fn read(&self, path: &Path) {
        self.begin(Access::Read(path.to_owned()));
    }

    pub(super) fn stage(&self, target: &Path) {
        self.begin(Access::Stage(target.to_owned()));
    }

    pub(super) fn copy(&self, from: &Path, to: &Path) {
        self.begin(Access::Copy { from: from.to_owned(), to: to.to_owned() });
    }

    pub(super) fn keep(&self, root: &Path) {
        self.begin(Access::Keep(root.to_owned()));
    }

    /// Starts the next access; the one before has answered.
    fn begin(&self, access: Access) {
        self.replace(Some(Present { access, since: Instant::now(), shown: false }));
    }

    /// Ends the last access: all have answered.
    pub(super) fn end(&self) {
        self.replace(None);
    }

    fn replace(&self, next: Option<Present>) {
        let mut present = self.present();
        let before = std::mem::replace(&mut *present, next);
        if before.is_some_and(|before| before.shown) {
            (self.show)(None);
        }
    }

    /// Time until the present access counts as hanging.
    pub(super) fn time_left(&self) -> Duration {
        let taken = self.present().as_ref().map_or(Duration::ZERO, |one| one.since.elapsed());
        ANSWER_TIMEOUT.saturating_sub(taken)
    }

    /// The present access if it hangs; it is shown from then on.
    pub(super) fn hanging(&self) -> Option<Hanging> {
        let mut present = self.present();
        let one = present.as_mut().filter(|one| one.since.elapsed() >= ANSWER_TIMEOUT)?;
        let hanging = Hanging { access: one.access.clone(), since: one.since };
        if !std::mem::replace(&mut one.shown, true) {
            tracing::error!("{hanging}");
            let since = SystemTime::now().checked_sub(one.since.elapsed());
            let since = humantime::format_rfc3339_seconds(since.unwrap_or(SystemTime::UNIX_EPOCH));
            let Present { access, .. } = one;
            (self.show)(Some(format!(
                "{access} has not answered since {since}: {}",
                access.remedy()
            )));
        }
        Some(hanging)
    }

    fn present(&self) -> MutexGuard<'_, Option<Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
