//! A snapshot without what differs from run to run: times, uids, ids, checksums, addresses. Equal ones
//! stay equal, and the time between two moments stays as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Saved, Time};

/// When every snapshot is taken, unless maintenance windows depend on the day.
const NOW: Time = Time(1_767_614_400_000);

/// Numbers by kind and text, in the order in which they are met.
#[derive(Default)]
struct Pseudonyms {
    known: BTreeMap<(Kind, String), usize>,
    /// How much later everything is.
    shift: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Uuid,
    Hex,
    Id,
    Address,
    Port,
}

pub(super) fn of(saved: &Saved) -> Saved {
    let value = serde_json::to_value(saved).unwrap();
    let has_windows = !value["policy"]["windows"].is_null();
    let distance = NOW.0.cast_signed() - saved.snapshot.now.0.cast_signed();
    let mut names =
        Pseudonyms { shift: if has_windows { 0 } else { distance }, ..Pseudonyms::default() };
    let value = names.value(value);
    Saved::parse(&value.to_string()).unwrap()
}

impl Pseudonyms {
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                Value::Object(
                    fields
                        .map(|(key, item)| (self.text(&key), self.value(item)))
                        .collect::<Map<_, _>>(),
                )
            }
            other => other,
        }
    }

    /// Each word of a text is replaced if it is one of those that differ.
    fn text(&mut self, text: &str) -> String {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        let mut result = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            result.push_str(&self.word(word));
            let next = after.find(is_of_word).unwrap_or(after.len());
            result.push_str(&after[..next]);
            rest = &after[next..];
        }
        result
    }

    fn word(&mut self, word: &str) -> String {
        let (word, end) = word.split_at(word.trim_end_matches(['.', ':']).len());
        if let Ok(time) = Time::parse(word) {
            return format!("{}{end}", Time(time.0.saturating_add_signed(self.shift)));
        }
        let parts = word.split(':').map(|part| match part.parse::<u16>() {
            Ok(port) if port >= 10_000 => (9_300 + self.number(Kind::Port, part)).to_string(),
            _ => self.part(part),
        });
        parts.collect::<Vec<_>>().join(":") + end
    }

    fn part(&mut self, word: &str) -> String {
        let is_hex =
            |text: &str| text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        let groups: Vec<usize> = word.split('-').map(str::len).collect();
        if groups == [8, 4, 4, 4, 12] && is_hex(&word.replace('-', "")) {
            return format!("00000000-0000-4000-8000-{:012}", self.number(Kind::Uuid, word));
        }
        if word.len() >= 8 && is_hex(word) && word.bytes().any(|c| c.is_ascii_alphabetic()) {
            // Also a checksum of which only the beginning is written keeps its beginning.
            let number = self.number(Kind::Hex, &word[..8]);
            return format!("{number:08}{}", "0".repeat(word.len() - 8));
        }
        // Clusters of tests are named after a process.
        if word.strip_prefix("test-").is_some_and(|process| process.parse::<u32>().is_ok()) {
            return "test-1".to_owned();
        }
        let has = |is: fn(&u8) -> bool| word.bytes().any(|c| is(&c));
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        if word.len() == 22 && is_mixed && !word.contains(['.', ':']) {
            return format!("id-{:0>19}", self.number(Kind::Id, word));
        }
        if word.parse::<std::net::Ipv4Addr>().is_ok() {
            return format!("10.0.0.{}", self.number(Kind::Address, word));
        }
        word.to_owned()
    }

    fn number(&mut self, kind: Kind, word: &str) -> usize {
        let next = self.known.keys().filter(|(known, _)| *known == kind).count() + 1;
        *self.known.entry((kind, word.to_owned())).or_insert(next)
    }
}

#[test]
fn equal_words_stay_equal_and_times_keep_their_distance() {
    let mut names = Pseudonyms { shift: 1_000, ..Pseudonyms::default() };
    let uid = "6f9c0f5e-63a1-4a4c-8a0e-0d5f3a3b2c1d";
    assert_eq!(
        names.text(&format!("{uid} 2026-11-18T11:06:40.000Z logs-0")),
        "00000000-0000-4000-8000-000000000001 2026-11-18T11:06:41.000Z logs-0"
    );
    assert_eq!(names.text(&format!("a {uid}")), "a 00000000-0000-4000-8000-000000000001");
    assert_eq!(names.text("https://127.0.3.4:9200/x 4f2a91c0"), "https://10.0.0.1:9200/x 00000001");
    assert_eq!(names.text("VJDiB0UE9m0GfkAhjoEpi5"), "id-0000000000000000001");
    assert_eq!(
        names.text("data_hot dropped-by-nobody 8.19.0"),
        "data_hot dropped-by-nobody 8.19.0"
    );
}
