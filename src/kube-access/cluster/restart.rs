//! `spec.restart`: how restarts are done, and when nodes may be stopped.

use std::collections::BTreeMap;

use jiff::civil::{Date, Time as TimeOfDay, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use stayput_api::Span;
use stayput_restart as restart;
use stayput_restart::{OnConfigChange, Time};

use crate::cluster::spec::SearchClusterSpec;

/// How restarts are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartSpec {
    /// How many nodes may be unavailable at the same time: a number, or a percentage ("25%"; rounded
    /// down, but at least 1).
    #[schemars(schema_with = "share")]
    pub max_unavailable: IntOrString,
    /// In addition, how many nodes with a role may be unavailable at the same time:
    /// `{data_hot: 2, data: "10%"}`. Roles are spelled as the engine does.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shares")]
    pub max_unavailable_of_role: BTreeMap<String, IntOrString>,
    /// Name of the node attribute that holds a node's zone (`node.attr.zone`: `zone`).
    #[schemars(length(min = 1, max = 128))]
    pub zone_attribute: String,
    /// Allow stops that lose the quorum, or the last copy of a shard: a cluster that cannot be
    /// restarted without an outage is restarted with one.
    pub allow_outage: bool,
    /// How long one phase of one node may take before its restart is aborted: "15m", "90s". Elasticsearch
    /// may take 10 minutes of it to move the jobs of machine learning off a node before its stop.
    #[schemars(schema_with = "duration")]
    pub phase_timeout: String,
    /// How long a node is not ready before its stop signal: "auto" (until no Service sends requests to
    /// it any more, at most 10 s), or a fixed time such as "10s".
    #[schemars(schema_with = "drain")]
    pub drain: String,
    /// How to treat nodes that run on another config than their sources have: only show them (none), or
    /// restart them without a request.
    pub on_config_change: OnConfigChange,
    /// Start a node on the last good config if it does not become ready on the new one.
    pub rollback: bool,
    /// When nodes may be stopped; always if there are none. A node that is stopped already is
    /// finished, and a request may say that it does not wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub windows: Vec<WindowSpec>,
}

impl Default for RestartSpec {
    fn default() -> Self {
        let policy = restart::Policy::default();
        Self {
            max_unavailable: IntOrString::Int(1),
            max_unavailable_of_role: BTreeMap::new(),
            zone_attribute: policy.zone_attribute,
            allow_outage: policy.allow_outage,
            // A test compares the two with the policy.
            phase_timeout: "15m".into(),
            drain: "auto".into(),
            on_config_change: OnConfigChange::None,
            rollback: policy.rollback,
            windows: Vec::new(),
        }
    }
}

/// Schema of a duration. A rule instead of a pattern: its message says what to write.
fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^[0-9]+(ms|s|m|h)( ?[0-9]+(ms|s|m|h))*$')",
            "message": "write a duration such as \"15m\", \"90s\" or \"1m 30s\"",
        }],
    })
}

/// Schema of a duration, or `auto`.
fn drain(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "self == 'auto' || self.matches('^[0-9]+(ms|s|m|h)( ?[0-9]+(ms|s|m|h))*$')",
            "message": "write auto, or a duration such as \"10s\"; \"0s\" is none",
        }],
    })
}

/// Schema of a number of nodes, or a percentage. The message of the rule says what to write.
fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maximum": 10_000,
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
            "message": "write a number of nodes, 1 to 10000, or a percentage, \"1%\" to \"100%\"; with 0 \
                        nothing could ever be restarted",
        }],
    })
}

/// Schema of the number of nodes, or percentage, of each role. A rule for each value would cost more than
/// Kubernetes allows.
fn shares(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "minimum": 1,
            "maximum": 10_000,
            "maxLength": 32,
            "pattern": "^([1-9][0-9]?|100)%$",
        },
    })
}

/// Days to look at, relative to today: a window that is open may have begun on the day before; the next one
/// begins within a week.
const DAYS: std::ops::RangeInclusive<i64> = -1..=8;

/// A time of the week in which nodes may be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowSpec {
    /// The days on which it opens; every day if none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7), extend("x-kubernetes-list-type" = "set"))]
    pub days: Vec<Day>,
    /// When it opens: "22:00".
    #[schemars(length(max = 5), regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub start: String,
    /// How long it is open: "6h", at most "24h". It may last into the next day.
    #[schemars(length(max = 32))]
    pub duration: String,
    /// The time zone of `start`, by its name in the IANA database: "Europe/Berlin".
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

fn utc() -> String {
    "UTC".into()
}

impl From<Day> for Weekday {
    fn from(day: Day) -> Self {
        match day {
            Day::Mon => Self::Monday,
            Day::Tue => Self::Tuesday,
            Day::Wed => Self::Wednesday,
            Day::Thu => Self::Thursday,
            Day::Fri => Self::Friday,
            Day::Sat => Self::Saturday,
            Day::Sun => Self::Sunday,
        }
    }
}

/// A valid window.
#[derive(Debug, Clone)]
struct Window {
    days: Vec<Weekday>,
    start: TimeOfDay,
    duration: SignedDuration,
    zone: TimeZone,
}

/// The valid windows of a cluster; none means always.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows(Vec<Window>);

impl SearchClusterSpec {
    /// Time at which the next maintenance window opens, if there are windows and none is open. Ignores
    /// invalid windows: the check of the spec reports them.
    pub fn closed_until(&self, now: Time) -> Option<Time> {
        let mut windows = Windows::default();
        for written in &self.restart.windows {
            let _ = windows.add(written);
        }
        windows.closed_until(now)
    }
}

/// Why a window is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidWindow {
    /// The field of the window.
    pub(crate) field: &'static str,
    pub(crate) problem: String,
}

impl Windows {
    /// Adds a window as it is written.
    pub(crate) fn add(&mut self, written: &WindowSpec) -> Result<(), InvalidWindow> {
        let invalid = |field, problem| InvalidWindow { field, problem };
        let start = TimeOfDay::strptime("%H:%M", &written.start).map_err(|_| {
            let text = &written.start;
            invalid("start", format!("{text:?} is no time of day: write one such as \"22:00\""))
        })?;
        let span = Span::parse(&written.duration)
            .map_err(|problem| invalid("duration", problem.to_string()))?;
        if span.0 == 0 {
            let problem = "is nothing, so that no node could ever be stopped: write such as \"6h\"";
            return Err(invalid("duration", problem.to_owned()));
        }
        // Time zones of the program itself: images without a file system of their own have none.
        let zone = TimeZoneDatabase::bundled().get(&written.time_zone).map_err(|_| {
            let text = &written.time_zone;
            let problem = format!(
                "{text:?} is no time zone: write a name of the IANA database, such as \
                 \"Europe/Berlin\", or \"UTC\""
            );
            invalid("timeZone", problem)
        })?;
        let days = written.days.iter().map(|day| (*day).into()).collect();
        let duration = SignedDuration::from_millis(span.0.cast_signed());
        self.0.push(Window { days, start, duration, zone });
        Ok(())
    }

    /// Time at which the next window opens, if there are windows and none is open.
    pub(crate) fn closed_until(&self, now: Time) -> Option<Time> {
        let now = Timestamp::from_millisecond(now.0.cast_signed()).ok()?;
        let all: Vec<(Timestamp, Timestamp)> =
            self.0.iter().flat_map(|window| window.around(now)).collect();
        if all.iter().any(|(opens, closes)| (*opens..*closes).contains(&now)) {
            return None;
        }
        let next = all.into_iter().map(|(opens, _)| opens).filter(|opens| *opens > now).min()?;
        u64::try_from(next.as_millisecond()).ok().map(Time)
    }
}

impl Window {
    /// Times at which the window opens and closes, from yesterday to this day of the next week.
    fn around(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let today = now.to_zoned(self.zone.clone()).date();
        DAYS.filter_map(|days| self.on(today.checked_add(days.days()).ok()?)).collect()
    }

    /// Times at which the window opens and closes, if it opens on this day. A time that the clocks skip or
    /// repeat is taken as usual: the later of the skipped, the first of the repeated.
    fn on(&self, day: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.is_empty() && !self.days.contains(&day.weekday()) {
            return None;
        }
        let opens = day.to_datetime(self.start).to_zoned(self.zone.clone()).ok()?.timestamp();
        Some((opens, opens.checked_add(self.duration).ok()?))
    }
}
