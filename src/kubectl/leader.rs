//! Finds out from the Lease of the reconciler if one works.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
pub(crate) use stayput_kube_access::names::reconciler::{NAME, NAMESPACE};
use stayput_restart::Time;

use crate::apiserver::{self, ApiError, Apiserver};
use crate::error::Exit;
use crate::format::{now, rounded_duration};

/// Age of a Lease without a working leader, in milliseconds. A leader renews its Lease every few
/// seconds. Its clock and the apiserver's may differ as well.
const OLD: u64 = 60_000;

/// State of the reconciler, as far as we may read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Reconciler {
    /// The Lease was not read, so nothing is known.
    #[default]
    Unknown,
    Works,
    /// No reconciler works, for this reason.
    Absent(String),
}

impl Reconciler {
    /// The state according to the Lease, if it can be read.
    pub(crate) async fn seen(client: &Client) -> Self {
        Self::look(client).await.unwrap_or_default()
    }

    /// The state according to the Lease, for a caller that needs to know if the apiserver answers.
    ///
    /// # Errors
    /// If the apiserver does not answer.
    pub(crate) async fn look(client: &Client) -> Result<Self, ApiError> {
        match Box::pin(lease(client)).await {
            Ok((lease, now)) => Ok(why_none(lease.as_ref(), now).map_or(Self::Works, Self::Absent)),
            Err(error) if Exit::from(&error) == Exit::NotReachable => Err(error),
            Err(_) => Ok(Self::Unknown),
        }
    }

    /// Why no reconciler works, if that is known.
    pub(crate) fn why_absent(&self) -> Option<&str> {
        match self {
            Self::Absent(why) => Some(why),
            Self::Unknown | Self::Works => None,
        }
    }

    /// A warning to show beside the status that the reconciler has written, if none works now.
    pub(crate) fn warning(&self) -> Option<String> {
        self.why_absent().map(|why| {
            format!(
                "{why}; until one works, nothing is done and the status is stale: \
                 `kubectl stayput runbook reconciler_absent`"
            )
        })
    }
}

/// The Lease, if it exists, and the apiserver's time: the clock of this machine may be wrong.
pub(crate) async fn lease(client: &Client) -> Result<(Option<Lease>, Time), ApiError> {
    let leases = Apiserver::for_kubectl(client.clone()).objects(NAMESPACE);
    let (lease, time) = tokio::join!(leases.find(NAME), apiserver::time(client));
    // Where it may not be asked for the time, ours is all there is.
    Ok((lease?, time.unwrap_or_else(|_| now())))
}

/// Why no reconciler works, if that is so.
pub(crate) fn why_none(lease: Option<&Lease>, now: Time) -> Option<String> {
    let Some(lease) = lease else {
        return Some(format!(
            "there is no Lease {NAME} in namespace {NAMESPACE}: no reconciler has ever worked there"
        ));
    };
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    if holder.is_empty() {
        return Some(format!("nobody holds the Lease {NAME}: no reconciler is the leader"));
    }
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.and_then(|time| u64::try_from(time.0.as_millisecond()).ok());
    let age = now.since(Time(renewed.unwrap_or_default()));
    (age > OLD).then(|| {
        format!(
            "the leader {holder} has not renewed its Lease for {}",
            rounded_duration(age / 1000)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;
    use tokio::io::AsyncBufReadExt;
    use tokio::io::AsyncWriteExt;
    use tokio::io::BufReader;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_leader_renews_its_lease() {
        let now = Time::parse("2026-11-21T03:10:00Z").unwrap();
        let why = |spec: Value| {
            let lease: Lease = serde_json::from_value(json!({"spec": spec})).unwrap();
            why_none(Some(&lease), now)
        };
        let held = |at: &str| json!({"holderIdentity": "one", "renewTime": at});
        assert_eq!(why(held("2026-11-21T03:09:30.000000Z")), None);
        let old = "the leader one has not renewed its Lease for 10m";
        assert_eq!(why(held("2026-11-21T03:00:00.000000Z")).as_deref(), Some(old));
        assert!(why(json!({})).is_some_and(|why| why.contains("nobody holds")));
        assert!(why_none(None, now).is_some_and(|why| why.contains("ever worked")));
    }

    /// An apiserver that answers everything with this Lease, at this time.
    async fn at(date: &str, renewed: &str) -> Reconciler {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME},
            "spec": {"holderIdentity": "one", "renewTime": renewed},
        });
        let (lease, head) = (lease.to_string(), "HTTP/1.1 200 OK\r\nconnection: close");
        let length = lease.len();
        let answer = format!("{head}\r\ndate: {date}\r\ncontent-length: {length}\r\n\r\n{lease}");
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut asked = BufReader::new(&mut client).lines();
                while asked.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
                client.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        Reconciler::look(&client).await.unwrap()
    }

    /// The times are years before and after any at which this runs.
    #[tokio::test] // proves UPDATE-43
    async fn the_clock_of_this_machine_does_not_count() {
        for year in ["2001", "2101"] {
            let renewed = format!("{year}-11-21T03:09:30.000000Z");
            let weekday = if year == "2001" { "Wed" } else { "Mon" };
            let date = |time: &str| format!("{weekday}, 21 Nov {year} {time} GMT");
            assert_eq!(at(&date("03:10:00"), &renewed).await, Reconciler::Works, "{year}");
            let absent = at(&date("03:20:00"), &renewed).await;
            assert!(
                absent.why_absent().is_some_and(|why| why.ends_with("for 10m 30s")),
                "{absent:?}"
            );
        }
    }

    #[test]
    fn only_who_knows_that_none_works_says_so() {
        assert_eq!(Reconciler::Unknown.warning(), None);
        assert_eq!(Reconciler::Works.warning(), None);
        let warning = Reconciler::Absent("why".to_owned()).warning().unwrap();
        assert!(warning.starts_with("why; until one works, nothing is done"), "{warning}");
    }
}
