//! The apiserver's audit log: the requests of service accounts outside `kube-system`, and everybody's writes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::pki::text;

/// Verbs of requests that change something.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The audit log of one apiserver.
#[derive(Debug)]
pub(crate) struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

/// A position in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPosition(usize);

/// The number of requests, by `VERB RESOURCE`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<String, usize>);

impl Audit {
    /// Writes its policy into `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        let (policy, log) = (directory.join("audit-policy.json"), directory.join("audit.log"));
        let rules = json!([
            { "level": "Metadata", "verbs": WRITES },
            { "level": "None", "userGroups": ["system:serviceaccounts:kube-system"] },
            { "level": "Metadata", "userGroups": ["system:serviceaccounts"] },
            { "level": "None" },
        ]);
        let text = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            // One line per request; for a watch when it begins.
            "omitStages": ["RequestReceived"],
            "rules": rules,
        });
        fs::write(&policy, text.to_string()).expect("a policy");
        Self { policy, log }
    }

    /// The options of the apiserver.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", text(&self.policy)),
            format!("--audit-log-path={}", text(&self.log)),
        ]
    }

    /// The end of the log.
    pub(crate) fn now(&self) -> LogPosition {
        LogPosition(self.read().rfind('\n').map_or(0, |end| end + 1))
    }

    /// The requests of `account`, as `NAMESPACE:NAME`, after `mark`.
    pub(crate) fn since(&self, mark: LogPosition, account: &str) -> Vec<Value> {
        let user = format!("system:serviceaccount:{account}");
        let mut events = self.all_since(mark);
        // A watch that ends now began before.
        events.retain(|event| {
            event["user"]["username"] == user
                && (event["verb"] != "watch" || event["stage"] == "ResponseStarted")
        });
        events
    }

    /// Everybody's writes after `mark` that changed something, by the program that sent them.
    pub(crate) fn writes_since(&self, mark: LogPosition) -> BTreeMap<String, Counts> {
        let mut by_program = BTreeMap::<String, Vec<Value>>::new();
        for event in self.all_since(mark) {
            let is_done = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let is_kept = WRITES.contains(&text(&event["verb"]).as_str())
                && !text(&event["requestURI"]).contains("dryRun=")
                && !text(&event["objectRef"]["resource"]).ends_with("reviews");
            if is_done && is_kept {
                // Ours does not say who it is.
                let agent = text(&event["userAgent"]).split('/').next().map(str::to_owned);
                let account =
                    || text(&event["user"]["username"]).rsplit(':').next().map(str::to_owned);
                let program = agent.filter(|agent| !agent.is_empty()).or_else(account);
                let program = program.unwrap_or_default();
                by_program.entry(program).or_default().push(event);
            }
        }
        by_program.into_iter().map(|(program, events)| (program, Counts::of(&events))).collect()
    }

    fn all_since(&self, mark: LogPosition) -> Vec<Value> {
        let text = self.read();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.get(mark.0..).unwrap_or_default().lines();
        lines.map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Counts {
    pub(crate) fn of(events: &[Value]) -> Self {
        let mut counts = Self::default();
        for event in events {
            let (verb, of) = (&event["verb"], &event["objectRef"]);
            let part = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
            let name = match part("subresource").as_str() {
                "" => part("resource"),
                sub => format!("{}/{sub}", part("resource")),
            };
            let verb = verb.as_str().expect("a verb");
            *counts.0.entry(format!("{verb} {name}")).or_default() += 1;
        }
        counts
    }

    /// All requests that change something, except for the Lease, which is always renewed. A token
    /// is created, but not stored.
    pub(crate) fn writes(&self) -> usize {
        let reads = ["get ", "list ", "watch "];
        let others = [" leases", " serviceaccounts/token"];
        let is_write = |what: &str| {
            !reads.iter().any(|verb| what.starts_with(verb))
                && !others.iter().any(|resource| what.ends_with(resource))
        };
        self.0.iter().filter(|(what, _)| is_write(what)).map(|(_, count)| count).sum()
    }

    pub(crate) fn all(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> =
            self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        write!(f, "{}", each.join(", "))
    }
}
