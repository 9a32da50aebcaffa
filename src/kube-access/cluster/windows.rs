//! `spec.restart.windows`: when nodes may be stopped. Pure: the time is given.

use super::SearchCluster;
use jiff::civil::{Date, Time as TimeOfDay, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stayput_api::Span;
use stayput_restart::Time;

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
pub(super) struct Windows(Vec<Window>);

impl SearchCluster {
    /// Time at which the next maintenance window opens, if there are windows and none is open. Ignores
    /// invalid windows: the check of the spec reports them.
    pub fn closed_until(&self, now: Time) -> Option<Time> {
        let mut windows = Windows::default();
        for written in &self.spec.restart.windows {
            let _ = windows.add(written);
        }
        windows.closed_until(now)
    }
}

/// Why a window is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidWindow {
    /// The field of the window.
    pub(super) field: &'static str,
    pub(super) problem: String,
}

impl Windows {
    /// Adds a window as it is written.
    pub(super) fn add(&mut self, written: &WindowSpec) -> Result<(), InvalidWindow> {
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
    pub(super) fn closed_until(&self, now: Time) -> Option<Time> {
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
