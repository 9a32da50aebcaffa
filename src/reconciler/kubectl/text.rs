//! Text for people: safe for a terminal, in columns, with times they can feel, colored where wanted.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use stayput_api::Span;
use stayput_net::terminal::plain;
use stayput_restart::Time;

/// A length of time in its two largest units: nobody needs the seconds of a week.
pub(super) fn spoken(seconds: u64) -> String {
    let kept = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        86_400.. => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(kept)).to_string()
}

/// A length of time as somebody wrote it.
pub(super) fn span(span: Span) -> String {
    humantime::format_duration(span.to_duration()).to_string()
}

/// A moment, and how long ago it is.
pub(super) fn when(moment: Time, now: Time) -> String {
    let shown = stamp(moment);
    match now >= moment {
        true => format!("{shown} ({} ago)", spoken(now.since(moment) / 1000)),
        // Our clock and the reconciler's may differ.
        false => format!("{shown} (in {})", spoken(moment.since(now) / 1000)),
    }
}

/// A moment to the second.
pub(super) fn stamp(moment: Time) -> String {
    let text = moment.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// `1 node`, `2 nodes`.
pub(super) fn nodes(count: usize) -> String {
    if count == 1 { "1 node".into() } else { format!("{count} nodes") }
}

/// How a word is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// It takes its time, or somebody should look.
    Heed,
    /// It is bad.
    Bad,
}

/// Colors words, or leaves them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paint {
    pub(super) colored: bool,
}

impl Paint {
    /// The text in the tone's color; what it holds is made safe first.
    pub(super) fn word(self, tone: Tone, text: &str) -> String {
        let text = plain(text);
        let color = match tone {
            Tone::Plain => return text.into_owned(),
            _ if !self.colored => return text.into_owned(),
            Tone::Good => 32,
            Tone::Heed => 33,
            Tone::Bad => 31,
        };
        format!("\u{1b}[{color}m{text}\u{1b}[0m")
    }
}

/// A page of facts and tables, line by line.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) paint: Paint,
    text: String,
}

impl Page {
    pub(super) const fn new(paint: Paint) -> Self {
        Self { paint, text: String::new() }
    }

    /// One line; an empty name continues the fact above.
    pub(super) fn fact(&mut self, name: &str, value: impl AsRef<str>) {
        self.toned(name, Tone::Plain, value);
    }

    /// The same in a tone.
    pub(super) fn toned(&mut self, name: &str, tone: Tone, value: impl AsRef<str>) {
        let value = self.paint.word(tone, value.as_ref());
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:<12}{value}");
    }

    /// A line of its own.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(&plain(text.as_ref()));
        self.text.push('\n');
    }

    /// Rows in columns as wide as they must be, the last one as it is; the first row is the head.
    pub(super) fn table<const N: usize>(&mut self, rows: &[[String; N]]) {
        let rows: Vec<[Cow<'_, str>; N]> =
            rows.iter().map(|row| row.each_ref().map(|cell| plain(cell))).collect();
        let mut widths = [0; N];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                let _ = write!(line, "{cell:<width$}   ");
            }
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
