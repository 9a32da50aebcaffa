//! How a process ended, as plain data.

use std::fmt;

/// Exit code or the signal that ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitStatus {
    /// Exit code, 0–255, of a process that ended by itself.
    Code(i32),
    /// Signal that ended the process.
    Signal(i32),
}

impl ExitStatus {
    /// The status as `waitpid` reports it, `None` if the process has not ended (stopped, continued).
    pub(crate) fn from_wait(raw: i32) -> Option<Self> {
        if libc::WIFEXITED(raw) {
            Some(Self::Code(libc::WEXITSTATUS(raw)))
        } else if libc::WIFSIGNALED(raw) {
            Some(Self::Signal(libc::WTERMSIG(raw)))
        } else {
            None
        }
    }

    /// The code a shell would report: 128 + n for a death by signal n.
    pub const fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_codes_signals_and_core_dumps() {
        assert_eq!(ExitStatus::from_wait(0x0000), Some(ExitStatus::Code(0)));
        assert_eq!(ExitStatus::from_wait(0xff00), Some(ExitStatus::Code(255)));
        assert_eq!(ExitStatus::from_wait(0x0009), Some(ExitStatus::Signal(9)));
        assert_eq!(ExitStatus::from_wait(0x0086), Some(ExitStatus::Signal(6)), "with a core dump");
        assert_eq!(
            ExitStatus::from_wait(0x0025),
            Some(ExitStatus::Signal(37)),
            "a realtime signal"
        );
        assert_eq!(ExitStatus::from_wait(0x137f), None, "stopped");
        assert_eq!(ExitStatus::from_wait(0xffff), None, "continued");
    }

    #[test]
    fn shells_add_128_to_a_signal() {
        assert_eq!(ExitStatus::Code(3).shell_code(), 3);
        assert_eq!(ExitStatus::Signal(9).shell_code(), 137);
    }
}
