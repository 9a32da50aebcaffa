//! The program's own log, on stderr: JSON lines in the Elastic Common Schema (ECS), or text.
//!
//! The engine's output is not changed. There is one level for the whole log, no filters.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::str::FromStr;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Scope};

mod log;

pub use log::Log;

/// Name of both programs in their logs, and of the object that holds our own fields.
const SERVICE: &str = "stayput";

/// The format of a line of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object with the field names of the Elastic Common Schema.
    #[default]
    Ecs,
    /// One line of text, for people.
    Text,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ecs" => Ok(Self::Ecs),
            "text" => Ok(Self::Text),
            _ => Err(format!("{text:?} is not a log format; use ecs or text")),
        }
    }
}

/// Sends the log of this process to stderr; a line waits for its reader. Later calls change nothing.
pub fn init(format: LogFormat, level: LevelFilter) {
    // If stderr is closed, there is no place for the error either.
    init_with(format, level, |line| drop(io::stderr().write_all(line.as_bytes())));
}

/// Sends the log of this process to stderr, and never waits for its reader. Later calls change
/// nothing.
///
/// # Errors
/// No thread can be made for it.
pub fn init_lossy(format: LogFormat, level: LevelFilter) -> io::Result<Log> {
    // Not the stderr of std: its lock would be held as long as a write waits.
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let log = Log::start(stderr, move |lost| {
        let mut fields = Fields {
            message: "lines of this log were lost, because nobody read it".to_owned(),
            ..Fields::default()
        };
        fields.rest.insert("lines".to_owned(), Value::from(lost));
        format!("{}\n", fields.line(format, Level::WARN, module_path!()))
    })?;
    let writer = log.clone();
    init_with(format, level, move |line| writer.print(line));
    Ok(log)
}

fn init_with(format: LogFormat, level: LevelFilter, write: impl Fn(&str) + Send + Sync + 'static) {
    let lines = Lines { format, write: Box::new(write) };
    let subscriber = tracing_subscriber::registry().with(level).with(lines);
    // Fails only if there is a log already, as in tests.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes a line for each event. A span keeps its fields for the events inside it.
struct Lines {
    format: LogFormat,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, changed: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            changed.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            // Spans of libraries are not shown.
            if span.metadata().target().starts_with(SERVICE)
                && let Some(of_span) = span.extensions().get::<Fields>()
            {
                let shown = of_span.rest.clone().into_iter().filter(|(_, value)| value != "");
                fields.rest.extend(shown);
            }
        }
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = fields.line(self.format, *metadata.level(), metadata.target());
        (self.write)(&format!("{line}\n"));
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    /// A line with the present time, without its end.
    fn line(self, format: LogFormat, level: Level, target: &str) -> String {
        let at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        match format {
            LogFormat::Ecs => self.ecs(at, level.as_str(), target).to_string(),
            LogFormat::Text => format!("{at} {level:<5} {}", self.text()),
        }
    }

    fn ecs(self, at: String, level: &str, target: &str) -> Value {
        let mut line = Map::new();
        let mut put = |name: &str, value: &str| line.insert(name.to_owned(), Value::from(value));
        put("@timestamp", &at);
        put("log.level", &level.to_ascii_lowercase());
        put("message", &self.message);
        put("ecs.version", "8.11.0");
        put("service.name", SERVICE);
        put("service.version", env!("CARGO_PKG_VERSION"));
        put("log.logger", target);
        if !self.rest.is_empty() {
            // Our own fields are inside one object, so that they cannot conflict with ECS.
            line.insert(SERVICE.to_owned(), Value::Object(self.rest));
        }
        Value::Object(line)
    }

    fn text(&self) -> String {
        // A line break in a value would let the author of the value forge log lines.
        let mut text = self.message.replace(char::is_control, " ");
        for (name, value) in &self.rest {
            // Writing to a string does not fail.
            let _ = match value {
                Value::String(word) if is_plain(word) => write!(text, " {name}={word}"),
                value => write!(text, " {name}={value}"),
            };
        }
        text
    }
}

fn is_plain(word: &str) -> bool {
    let plain = |char: char| !char.is_control() && !char.is_whitespace() && char != '"';
    !word.is_empty() && word.chars().all(plain)
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = match value {
                Value::String(text) => text,
                value => value.to_string(),
            };
        } else {
            self.rest.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests;
