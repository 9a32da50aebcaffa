//! The output of commands that change the engine.

use std::io::{self, Write};

use super::failure::Failure;

/// An output to which writing never fails; the first error is kept. A request is carried out to its end even if
/// nobody reads about it any more: a stop whose start is not sent would keep the engine down.
#[derive(Debug)]
pub(super) struct BestEffortOutput<'a, W> {
    out: &'a mut W,
    failed: io::Result<()>,
}

impl<'a, W: Write> BestEffortOutput<'a, W> {
    pub(super) const fn new(out: &'a mut W) -> Self {
        Self { out, failed: Ok(()) }
    }

    /// The result of a command; if it is good, whether its output could be written.
    pub(super) fn result(self, of: Result<(), Failure>) -> Result<(), Failure> {
        of.and(self.failed.map_err(Failure::Output))
    }
}

impl<W: Write> Write for BestEffortOutput<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_ok() {
            self.failed = self.out.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed.is_ok() {
            self.failed = self.out.flush();
        }
        Ok(())
    }
}
