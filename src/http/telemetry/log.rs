//! A log that does not wait for its reader.
//!
//! A pipe that nobody reads is full after 64 KiB, and the next write waits. So a thread of its own
//! writes. What it has not written yet is kept up to a bound; further lines are lost and counted.
//!
//! The descriptor itself must stay a blocking one: the engine has the same.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::watch;

/// Largest number of lines that wait to be written.
const MAX_LINES: usize = 1000;
const MAX_BYTES: usize = 256 * 1024;
/// After lines were lost, new ones are taken again when only this part of the bound waits, so that
/// a slow reader gets many lines at once and not a note about lost lines with each.
const RESUME_PART: usize = 2;
/// The thread formats one line and writes.
const STACK: usize = 64 * 1024;

/// Makes the line that tells how many lines were lost.
type Note = Box<dyn Fn(u64) -> String + Send + Sync>;

/// Takes lines and passes them to its thread. Cheap to clone.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    added: Condvar,
    written: Condvar,
    lost: watch::Sender<u64>,
    note: Note,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines lost since the last line was taken.
    lost: u64,
    writing: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("lost", &*self.0.lost.borrow()).finish_non_exhaustive()
    }
}

impl Log {
    /// Makes the thread that writes to `out`.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        note: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            added: Condvar::new(),
            written: Condvar::new(),
            lost: watch::Sender::new(0),
            note: Box::new(note),
        });
        let writer = shared.clone();
        Builder::new().name("log".to_owned()).stack_size(STACK).spawn(move || writer.write(out))?;
        Ok(Self(shared))
    }

    /// Adds text that ends with a line break. Does not wait for the reader.
    pub fn print(&self, line: &str) {
        self.0.add(line.as_bytes());
    }

    /// Number of lost lines; every change is a new value.
    pub fn lines_lost(&self) -> watch::Receiver<u64> {
        self.0.lost.subscribe()
    }

    /// Waits until all lines are written, but not longer than `limit`. For the end of the program.
    pub fn flush(&self, limit: Duration) {
        let busy = |queue: &mut Queue| queue.writing || !queue.lines.is_empty();
        // Whether it was in time changes nothing.
        drop(self.0.written.wait_timeout_while(self.0.lock(), limit, busy));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &[u8]) {
        let mut queue = self.lock();
        if !queue.has_room(line.len()) {
            queue.lost += 1;
            drop(queue);
            self.lost.send_modify(|lost| *lost += 1);
            return;
        }
        queue.note_lost(&self.note);
        queue.push(line.to_vec());
        drop(queue);
        self.added.notify_one();
    }

    /// Writes line by line, for ever.
    fn write(&self, mut out: impl Write) {
        let mut queue = self.lock();
        loop {
            queue.note_lost_at_end(&self.note);
            let Some(line) = queue.pop() else {
                queue.writing = false;
                self.written.notify_all();
                queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.writing = true;
            drop(queue);
            // If stderr is closed, there is no place for the error either.
            let _ = out.write_all(&line);
            queue = self.lock();
        }
    }
}

impl Queue {
    fn has_room(&self, length: usize) -> bool {
        let part = if self.lost > 0 { RESUME_PART } else { 1 };
        // A line is taken if nothing else waits, however long it is.
        self.lines.is_empty()
            || self.lines.len() < MAX_LINES / part && self.bytes + length <= MAX_BYTES / part
    }

    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push_back(line);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        if self.lines.is_empty() {
            // At rest it takes no memory.
            self.lines = VecDeque::new();
        }
        Some(line)
    }

    /// Puts the note where the lost lines would be.
    fn note_lost(&mut self, note: &Note) {
        if self.lost > 0 {
            let line = note(std::mem::take(&mut self.lost));
            self.push(line.into_bytes());
        }
    }

    /// Puts the note at the end, when all lines before the lost ones are written and no further
    /// line has come.
    fn note_lost_at_end(&mut self, note: &Note) {
        if self.lines.is_empty() {
            self.note_lost(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A reader that takes a line for each permission.
    struct Reader {
        permissions: Receiver<()>,
        lines: Sender<String>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permissions.recv().map_err(io::Error::other)?;
            let line = String::from_utf8(bytes.to_vec()).unwrap();
            let _ = self.lines.send(line.trim_end().to_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log() -> (Log, Sender<()>, Receiver<String>) {
        let ((permit, permissions), (lines, written)) = (channel(), channel());
        let note = |lost| format!("{lost} lost\n");
        (Log::start(Reader { permissions, lines }, note).unwrap(), permit, written)
    }

    fn read(permit: &Sender<()>, written: &Receiver<String>) -> String {
        permit.send(()).unwrap();
        written.recv().unwrap()
    }

    #[test]
    fn lines_that_fit_are_written_in_order_and_the_rest_is_counted_in_its_place() {
        let (log, permit, written) = log();
        log.print("first\n");
        // The thread has taken it and waits; the bound is for the others.
        while !log.0.lock().lines.is_empty() {
            std::thread::yield_now();
        }
        for number in 0..MAX_LINES + 7 {
            log.print(&format!("{number}\n"));
        }
        assert_eq!(*log.lines_lost().borrow(), 7);
        assert_eq!(read(&permit, &written), "first");
        for number in 0..MAX_LINES {
            assert_eq!(read(&permit, &written), number.to_string());
        }
        assert_eq!(read(&permit, &written), "7 lost");
        log.print("last\n");
        assert_eq!(read(&permit, &written), "last");
        assert_eq!(*log.lines_lost().borrow(), 7);
    }

    #[test]
    fn bytes_are_bounded_too_and_lines_are_taken_again_when_half_is_written() {
        let (log, permit, written) = log();
        let long = format!("{}\n", "x".repeat(MAX_BYTES / 8 - 1));
        log.print("first\n");
        while !log.0.lock().lines.is_empty() {
            std::thread::yield_now();
        }
        (0..9).for_each(|_| log.print(&long));
        assert_eq!(*log.lines_lost().borrow(), 1);
        assert_eq!(read(&permit, &written), "first");
        // Eight wait: less than one more than half of them must be gone.
        for _ in 0..4 {
            log.print("too early\n");
            assert_eq!(read(&permit, &written).len(), long.len() - 1);
        }
        while log.0.lock().lines.len() > 3 {
            std::thread::yield_now();
        }
        log.print("after\n");
        for _ in 0..4 {
            assert_eq!(read(&permit, &written).len(), long.len() - 1);
        }
        assert_eq!(read(&permit, &written), "5 lost");
        assert_eq!(read(&permit, &written), "after");
    }

    #[test]
    fn a_flush_waits_for_the_reader_but_not_for_ever() {
        let (log, permit, written) = log();
        log.print("last words\n");
        log.flush(Duration::from_millis(1));
        assert!(written.try_recv().is_err());
        permit.send(()).unwrap();
        log.flush(Duration::from_secs(60));
        assert_eq!(written.try_recv().unwrap(), "last words");
    }
}
