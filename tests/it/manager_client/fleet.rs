//! Many managers at once, most of which fail: each failure is reported separately, and the others
//! are not delayed.

use std::net::TcpListener;
use std::time::Duration;

use stayput_api::{Code, Problem};
use stayput_http::manager_client::{Address, ClientError, Credentials, ManagerClient};
use stayput_http::manager_client::{MAX_CONCURRENT, ask_all};

use super::{always, wait};
use crate::support::fake_manager::{FakeManager, Script, running};
use crate::support::pki::Pki;
use crate::support::ports::closed_port;
use crate::support::stopped_clock::{advance_once, on_stopped_clock};

const NAME: &str = "stayput";
/// How long one that hangs is waited for.
const HANGS: Duration = Duration::from_secs(5);

fn client(pki: &Pki, port: u16) -> ManagerClient {
    let credentials = Credentials { tls: Some(pki.tls()), token: None };
    let url = format!("https://127.0.0.1:{port}");
    let address = Address::Url { url, server_name: Some(NAME.into()), credentials };
    let client = ManagerClient::new(address).expect("a client");
    client.for_pod(running(1).manager.pod.uid.expect("a uid"))
}

#[test]
fn every_ill_manager_is_told_by_itself_and_the_well_ones_answer() {
    let pki = Pki::named(&[NAME]);
    let with = |script| FakeManager::on_port(Some(pki.acceptor()), script);
    let mut newer = serde_json::to_value(running(1)).expect("JSON");
    newer["manager"]["from_the_future"] = true.into();
    newer["manager"]["version"] = "9.0.0".into();
    let mut other = running(1);
    other.manager.pod.uid = Some("another".into());
    let refusal = Problem::new(Code::Unauthenticated, "show a token");
    let fakes = [
        ("newer", with(always(200, &newer))),
        ("wrong pod", with(always(200, other))),
        ("wrong CA", {
            FakeManager::on_port(Some(Pki::named(&[NAME]).acceptor()), always(200, running(1)))
        }),
        ("wrong token", with(always(401, refusal))),
        ("hung", with(Script::Silence)),
        ("well", with(always(200, running(1)))),
    ];
    // Listens, but never does a handshake.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mute_port = mute.local_addr().expect("an address").port();
    // No process listens there.
    let absent = closed_port();
    let mut clients = vec![("absent", client(&pki, absent)), ("mute", client(&pki, mute_port))];
    clients.extend(fakes.iter().map(|(name, (_, port))| (*name, client(&pki, *port))));
    let misnamed = Pki::named(&["other.search.svc"]);
    let (_misnamed, port) = FakeManager::on_port(Some(misnamed.acceptor()), Script::Silence);
    clients.push(("wrong server name", client(&misnamed, port)));
    // A client's own timeout ends its call before the deadline, with a better error.
    for (name, client) in &mut clients {
        let timeout = match *name {
            "mute" => Duration::from_millis(500),
            "hung" => HANGS,
            _ => continue,
        };
        *client = client.clone().with_answer_timeout(timeout);
    }

    let hung = fakes.iter().find(|(name, _)| *name == "hung").map(|(_, (fake, _))| fake);
    let hung = hung.expect("one that hangs");
    let answers = on_stopped_clock(async {
        // In a task of its own, as in the reconciler: the future must be `Send`.
        let all = async move {
            let calls = clients.iter().map(|(name, client)| (*name, client.status())).collect();
            ask_all(calls, Duration::from_secs(30)).await
        };
        let passes = advance_once(|| !hung.seen().is_empty(), HANGS);
        tokio::join!(tokio::spawn(all), passes).0.expect("no panic")
    });

    assert_eq!(answers.len(), 9);
    for (name, answer) in answers {
        let outcome = match &answer {
            Ok(answer) => ("answer", answer.status.manager.version.clone()),
            Err(ClientError::NotReachable(text)) => ("not reachable", text.to_string()),
            Err(ClientError::Untrusted(text)) => ("untrusted", text.to_string()),
            Err(ClientError::Unanswered(text)) => ("unanswered", text.to_string()),
            Err(ClientError::WrongPod(text)) => ("wrong pod", text.to_string()),
            Err(ClientError::Refused(refused)) => ("refused", refused.to_string()),
            Err(other) => panic!("{name}: {other:?}"),
        };
        let (kind, part) = match name {
            "absent" => ("not reachable", "refused"),
            "mute" => ("not reachable", "no connection within 500ms"),
            "newer" => ("answer", "9.0.0"),
            "wrong pod" => ("wrong pod", "another"),
            "wrong CA" => ("untrusted", "not signed by the ca of the test"),
            "wrong server name" => ("untrusted", "not for the name \"stayput\""),
            "wrong token" => ("refused", "show a token"),
            "hung" => ("unanswered", "no answer within 5s"),
            "well" => ("answer", "0.1.0"),
            _ => panic!("{name}"),
        };
        assert!(outcome.0 == kind && outcome.1.contains(part), "{name}: {outcome:?}");
    }
}

#[test]
fn managers_that_hang_cost_one_deadline_and_no_answer() {
    let pki = Pki::named(&[NAME]);
    let (hung, hung_port) = FakeManager::on_port(Some(pki.acceptor()), Script::Silence);
    let (_well, well_port) = FakeManager::on_port(Some(pki.acceptor()), always(200, running(1)));
    // As many hang as run at the same time: the others wait for exactly one deadline.
    let clients: Vec<_> = (0..3 * MAX_CONCURRENT)
        .map(|index| {
            (index, client(&pki, if index < MAX_CONCURRENT { hung_port } else { well_port }))
        })
        .collect();
    let deadline = Duration::from_secs(10);
    let answers = on_stopped_clock(async {
        let calls = clients.iter().map(|(index, client)| (*index, client.status())).collect();
        let passes = advance_once(|| hung.seen().len() == MAX_CONCURRENT, deadline);
        tokio::join!(ask_all(calls, deadline), passes).0
    });
    for (index, answer) in &answers {
        let unanswered = matches!(answer, Err(ClientError::Unanswered(_)));
        assert!(
            if *index < MAX_CONCURRENT { unanswered } else { answer.is_ok() },
            "{index}: {answer:?}"
        );
    }
    assert_eq!(answers.len(), 3 * MAX_CONCURRENT);
    // The dropped calls have ended on the other side, too.
    wait(hung.ended(MAX_CONCURRENT));
}
