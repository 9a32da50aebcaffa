//! Writes pages for people, or JSON for programs, to stdout.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use stayput_http::terminal::plain;

use crate::actions::ActionReport;
use crate::args::CommonArgs;
use crate::format::time_to_second;
use crate::options::{given_in_shell, into_quoted_commands};
use crate::progress::Line;
use crate::text::Paint;

/// Output format, and options for commands in the output.
pub(crate) struct Printer {
    pub(crate) paint: Paint,
    json: bool,
    /// Options of kubectl for commands in the output.
    options: String,
}

impl Printer {
    pub(crate) fn new(common: &CommonArgs) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = !common.no_color && !no_color && io::stdout().is_terminal();
        let options = given_in_shell(common);
        Self { paint: Paint { colored }, json: common.output.is_some(), options }
    }

    /// True for JSON, which programs read.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) fn page(&self, page: &str, output: &impl Serialize) -> io::Result<()> {
        if self.json { write(&(serde_json::to_string_pretty(output)? + "\n")) } else { write(page) }
    }

    /// Prints the result of a command.
    pub(crate) fn action(&self, report: &ActionReport) -> io::Result<()> {
        self.page(&page(report), &report.output)
    }

    /// Prints the result of a command as the first of several lines: as JSON it is one line, too.
    pub(crate) fn action_line(&self, report: &ActionReport) -> io::Result<()> {
        if self.json {
            write(&(serde_json::to_string(&report.output)? + "\n"))
        } else {
            write(&page(report))
        }
    }

    pub(crate) fn progress(&self, line: &Line) -> io::Result<()> {
        let message = into_quoted_commands(&line.message, &self.options);
        let line = &Line { message, ..line.clone() };
        if self.json {
            return write(&(serde_json::to_string(&line)? + "\n"));
        }
        let message = self.paint.text(line.tone, &line.message);
        let node = line.node.as_ref().map(|node| format!("{}  ", plain(node)));
        let time = time_to_second(line.time);
        write(&format!("{time}  {}{message}\n", node.unwrap_or_default()))
    }
}

/// The page of a result, with a warning if no reconciler will carry it out.
fn page(report: &ActionReport) -> String {
    let warning = report.output.reconciler.as_ref();
    let warning = warning.map(|warning| format!("reconciler: {}\n", plain(warning)));
    report.page.clone() + &warning.unwrap_or_default()
}

pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
