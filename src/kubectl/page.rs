//! A page of text for a terminal: facts and tables in columns, colored where wanted. Text from
//! elsewhere cannot move the cursor.

use std::borrow::Cow;
use std::fmt::Write as _;

use stayput_http::terminal::plain;

/// Tone of a value, which decides its color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Neutral,
    Good,
    /// A state that takes long, or that a person should check.
    Warning,
    Bad,
}

/// Colors values, or leaves them uncolored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paint {
    pub(super) colored: bool,
}

impl Paint {
    /// The text in the tone's color. Control characters in it are escaped first.
    pub(super) fn text(self, tone: Tone, text: &str) -> String {
        let text = plain(text);
        let color = match tone {
            Tone::Neutral => return text.into_owned(),
            _ if !self.colored => return text.into_owned(),
            Tone::Good => 32,
            Tone::Warning => 33,
            Tone::Bad => 31,
        };
        format!("\u{1b}[{color}m{text}\u{1b}[0m")
    }
}

/// A page under construction.
#[derive(Debug)]
pub(super) struct Page {
    paint: Paint,
    text: String,
}

impl Page {
    pub(super) const fn new(paint: Paint) -> Self {
        Self { paint, text: String::new() }
    }

    /// Adds a line with a name and a value. An empty name continues the fact above.
    pub(super) fn fact(&mut self, name: &str, value: impl AsRef<str>) {
        self.toned(name, Tone::Neutral, value);
    }

    pub(super) fn toned(&mut self, name: &str, tone: Tone, value: impl AsRef<str>) {
        let value = self.paint.text(tone, value.as_ref());
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:<12}{value}");
    }

    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(&plain(text.as_ref()));
        self.text.push('\n');
    }

    /// Adds rows in columns of equal width; the first row is the head.
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
