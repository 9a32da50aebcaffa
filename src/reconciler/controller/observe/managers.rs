//! What the managers say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::sources::SourceReader;
use super::{Ages, unknown};
use crate::cluster::{Checked, Live};
use crate::controller::metrics::{Metrics, Side};
use crate::controller::pods::Facts;
use stayput_api::{Code, Cursor, Status};
use stayput_net::manager_client::{ClientError, ManagerClient, fleet};
use stayput_restart::{Known, Manager};

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after the first one another is still asked in the same look: where hundreds give no
/// answer, the rest has its turn in the next one.
const TURN: Duration = Duration::from_secs(10);
/// What could not be asked again for so long is unknown.
const OLD: Duration = Duration::from_secs(120);

/// What the managers have said last, by the uid of their pods.
#[derive(Debug, Default)]
pub(in super::super) struct Managers {
    seen: BTreeMap<String, Seen>,
    /// Some had no turn in the last look.
    behind: bool,
}

/// What one has said.
#[derive(Debug)]
struct Seen {
    at: Instant,
    /// The pod as it was then.
    facts: Arc<Facts>,
    manager: Known<Manager>,
    /// How to ask it again.
    client: Option<ManagerClient>,
    /// What to wait for a change of.
    cursor: Option<Cursor>,
}

/// What may be wrong with what we show, or with whom we trust.
pub(super) enum Doubt {
    /// What we show the manager of the pod with this uid.
    Token(String),
    /// The CA, or our own certificate.
    Trust,
}

/// An answer, or why there is none.
pub(super) struct Said {
    facts: Arc<Facts>,
    client: Option<ManagerClient>,
    result: Result<Status, Silence>,
}

enum Silence {
    /// Our own side: nothing was sent.
    Unable(String),
    Failed(ClientError),
    /// Too many others came first.
    NotAsked,
}

/// Asks them all at once, begun in their order.
pub(super) async fn ask(
    clients: Vec<(Arc<Facts>, Result<ManagerClient, String>)>,
    metrics: &Metrics,
) -> Vec<Said> {
    let mut said = Vec::with_capacity(clients.len());
    let mut asked = Vec::with_capacity(clients.len());
    for (facts, client) in clients {
        match client {
            Ok(client) => asked.push((facts, client)),
            Err(why) => {
                said.push(Said { facts, client: None, result: Err(Silence::Unable(why)) });
            }
        }
    }
    let over = Instant::now() + TURN;
    let call = |(facts, client): &(Arc<Facts>, ManagerClient)| {
        let client = client.clone();
        (facts.uid.clone(), async move {
            match Instant::now() < over {
                // Without its body: there may be ten thousand of them at once.
                true => client.status().await.map(|answer| Some(answer.status)),
                false => Ok(None),
            }
        })
    };
    let mut answers = fleet::ask_all(asked.iter().map(call).collect(), PATIENCE).await;
    for (facts, client) in asked {
        let Some(answer) = answers.remove(&facts.uid) else { continue };
        let result = match answer {
            Ok(None) => Err(Silence::NotAsked),
            Ok(Some(status)) => Ok(status),
            Err(error) => Err(Silence::Failed(error)),
        };
        if !matches!(result, Err(Silence::NotAsked)) {
            metrics.count_request(Side::Manager, "status", result.is_ok());
        }
        said.push(Said { facts, client: Some(client), result });
    }
    said
}

impl Managers {
    /// The pods whose managers should be asked now: first those of nodes under way, then whoever
    /// was not asked for the longest time.
    pub(super) fn due(&self, pods: &[Arc<Facts>], ages: &Ages<'_>) -> Vec<Arc<Facts>> {
        let is_due = |pod: &&Arc<Facts>| {
            let seen = self.seen.get(&pod.uid);
            let changed = seen.is_some_and(|seen| {
                seen.facts.ready != pod.ready || seen.facts.address != pod.address
            });
            changed || ages.is_over(&pod.uid, seen.map(|seen| seen.at))
        };
        let mut due: Vec<Arc<Facts>> = pods.iter().filter(is_due).cloned().collect();
        due.sort_by_key(|pod| (!ages.is_close(&pod.uid), self.asked(&pod.uid)));
        due
    }

    /// Remembers what they said; the reasons to doubt our credentials.
    pub(super) fn take(
        &mut self,
        answers: Vec<Said>,
        sources: &SourceReader,
        checked: &Checked,
        pods: &[Arc<Facts>],
    ) -> Vec<Doubt> {
        let there: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        self.seen.retain(|uid, _| there.contains(uid.as_str()));
        self.behind = false;
        let mut doubts = Vec::new();
        for Said { facts, client, result } in answers {
            let (manager, cursor) = match result {
                Ok(status) => {
                    let cursor = status.cursor.clone();
                    (Ok(understand(&status, sources, checked, &facts.name)), Some(cursor))
                }
                Err(Silence::Unable(why)) => (Err(unknown(why)), None),
                Err(Silence::NotAsked) => {
                    self.behind = true;
                    if self.asked(&facts.uid).is_some_and(|asked| asked.elapsed() >= OLD) {
                        self.seen.remove(&facts.uid);
                    }
                    continue;
                }
                Err(Silence::Failed(error)) => {
                    doubts.extend(doubt(&error, &facts.uid));
                    (Err(unknown(error.to_string())), None)
                }
            };
            let uid = facts.uid.clone();
            self.seen.insert(uid, Seen { at: Instant::now(), facts, manager, client, cursor });
        }
        doubts
    }

    /// What the manager of this pod has said last.
    pub(super) fn of(&self, uid: &str) -> Known<Manager> {
        match self.seen.get(uid) {
            Some(seen) => seen.manager.clone(),
            None => Err(unknown("its manager was not asked yet")),
        }
    }

    /// When the manager of this pod was asked last.
    pub(in super::super) fn asked(&self, uid: &str) -> Option<Instant> {
        self.seen.get(uid).map(|seen| seen.at)
    }

    /// How to ask the manager of this pod.
    pub(in super::super) fn client(&self, uid: &str) -> Option<&ManagerClient> {
        self.seen.get(uid)?.client.as_ref()
    }

    /// How to wait for a change of what the manager of this pod says.
    pub(in super::super) fn line(&self, uid: &str) -> Option<(&ManagerClient, &Cursor)> {
        let seen = self.seen.get(uid)?;
        seen.client.as_ref().zip(seen.cursor.as_ref())
    }

    /// Whether there are more of them than could be asked in one look.
    pub(in super::super) fn are_behind(&self) -> bool {
        self.behind
    }
}

fn doubt(error: &ClientError, uid: &str) -> Option<Doubt> {
    match error {
        ClientError::Refused(refused) => match refused.problem.code {
            Code::Unauthenticated | Code::Forbidden => Some(Doubt::Token(uid.to_owned())),
            _ => None,
        },
        ClientError::Untrusted(_) | ClientError::Credentials(_) => Some(Doubt::Trust),
        ClientError::NotReachable(_)
        | ClientError::Unanswered(_)
        | ClientError::WrongPod(_)
        | ClientError::Protocol(_) => None,
    }
}

/// A status, and how it compares with the sources and the spec.
fn understand(status: &Status, sources: &SourceReader, checked: &Checked, pod: &str) -> Manager {
    let mut manager = Manager::from(status);
    let Some(config) = &status.config else { return manager };
    if !checked.sources.is_empty() {
        manager.live_mismatch = mismatch(status, &checked.live);
        let mounted = config.files.iter().filter(|file| !file.live);
        let mounted = mounted.map(|file| (file.path.as_str(), file.sha256.as_str()));
        manager.lagging = sources.lagging(&checked.sources, pod, mounted);
    }
    manager
}

/// The first file that one side takes for live and the other does not.
fn mismatch(status: &Status, live: &Live) -> Option<String> {
    let files = status.config.iter().flat_map(|config| &config.files);
    let file = files.into_iter().find(|file| file.live != live.covers(&file.path))?;
    let (manager, spec) = match file.live {
        true => ("takes", "does not"),
        false => ("does not take", "does"),
    };
    Some(format!(
        "the manager {manager} {} for a file the engine reloads by itself, and \
         spec.config.live {spec}: give both the same globs (the manager's --live)",
        file.path
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::SearchCluster;
    use stayput_api::Problem;
    use stayput_net::https::{NoAnswer, Target, UntrustedCertificate};
    use stayput_net::manager_client::{NotReachable, Refused, Unanswered, Untrusted};

    fn refused(code: Code) -> ClientError {
        let problem = Box::new(Problem::new(code, "no"));
        ClientError::Refused(Refused { problem, body: hyper::body::Bytes::new() })
    }

    #[test]
    fn who_had_no_turn_is_caught_up_with_in_the_next_look() {
        let pod = serde_json::json!({
            "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1" },
        });
        let pod = serde_json::from_value(pod).unwrap();
        let pods = [Arc::new(Facts::of(&pod, None).unwrap())];
        let cluster = serde_json::json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": { "name": "logs" },
            "spec": {
                "pods": { "selector": { "matchLabels": { "app": "logs" } } },
                "engine": { "scheme": "http" },
                "manager": { "caSecret": "ca", "auth": { "jwtKeySecret": "key" } },
            },
        });
        let cluster: SearchCluster = serde_json::from_value(cluster).unwrap();
        let (checked, sources) = (cluster.check().unwrap(), SourceReader::default());
        let mut managers = Managers::default();
        let mut hear = |silence| {
            let said = Said { facts: Arc::clone(&pods[0]), client: None, result: Err(silence) };
            managers.take(vec![said], &sources, &checked, &pods);
            managers.are_behind()
        };
        assert!(hear(Silence::NotAsked));
        assert!(!hear(Silence::Unable("there is no token".into())));
    }

    #[test]
    fn only_what_speaks_of_credentials_casts_doubt_on_them() {
        let (manager, name, refused_it) = ("m", "m", std::io::ErrorKind::ConnectionRefused);
        let not_reachable = NotReachable::new(&Target::socket(manager), refused_it.into());
        assert!(doubt(&not_reachable.into(), "u").is_none());
        let source = NoAnswer::Timeout(std::time::Duration::ZERO);
        assert!(doubt(&Unanswered { manager: None, source }.into(), "u").is_none());
        let source =
            UntrustedCertificate::WrongName { name: name.into(), source: refused_it.into() };
        let untrusted = Untrusted { manager: manager.into(), source };
        assert!(matches!(doubt(&untrusted.into(), "u"), Some(Doubt::Trust)));
        for code in [Code::Unauthenticated, Code::Forbidden] {
            let doubt = doubt(&refused(code), "u");
            assert!(matches!(doubt, Some(Doubt::Token(uid)) if uid == "u"));
        }
        assert!(doubt(&refused(Code::WrongPod), "u").is_none());
    }
}
