//! Which connection a request takes: reads share a few that are kept, each write has its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use futures_util::future::join_all;
use stayput_engine::{Access, Allocation, Color, EngineClient, EngineError, tls};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::{ENGINE_ANSWER_TIMEOUT, client, endpoint, health, wait};
use crate::support::fake_manager::{FakeManager, Reply, Script};
use crate::support::pki::Pki;

/// What the engine does with a connection after so many answers.
#[derive(Debug, Clone, Copy)]
enum Then {
    Close,
    /// It reads the next request, and closes the connection instead of answering.
    CloseAtRequest,
}

/// An engine that says which connection a request came on. It runs until the test ends.
struct Engine {
    port: u16,
    /// Number of the connection, and the method.
    seen: Arc<Mutex<Vec<(usize, String)>>>,
    /// Numbers of the connections that the client has closed.
    closed: UnboundedReceiver<usize>,
}

impl Engine {
    /// `lives`: what becomes of its first connections. It closes none of the others.
    fn new(lives: &'static [(usize, Then)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::<Mutex<Vec<(usize, String)>>>::default();
        let (closing, closed) = unbounded_channel();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (seen, closing) = (Arc::clone(&shared), closing.clone());
                thread::spawn(move || {
                    let note = |method| seen.lock().expect("a lock").push((number, method));
                    if serve(&stream.expect("a connection"), lives.get(number), note).is_none() {
                        // Nobody listens once the test has ended.
                        let _ = closing.send(number);
                    }
                });
            }
        });
        Self { port, seen, closed }
    }

    fn seen(&self) -> Vec<(usize, String)> {
        self.seen.lock().expect("a lock").clone()
    }

    /// Which connections the requests came on.
    fn numbers(&self) -> Vec<usize> {
        self.seen().into_iter().map(|(number, _)| number).collect()
    }

    /// Waits until the client has closed so many more connections; their numbers.
    async fn closed(&mut self, count: usize) -> Vec<usize> {
        let mut numbers = vec![];
        while numbers.len() < count {
            let next = timeout(ENGINE_ANSWER_TIMEOUT, self.closed.recv());
            numbers.push(next.await.expect("in time").expect("a number"));
        }
        numbers
    }

    fn client(&self) -> EngineClient {
        client(&[self.port], &Access::Plain, ENGINE_ANSWER_TIMEOUT)
    }
}

/// Returns none when the client has closed the connection.
fn serve(stream: &TcpStream, life: Option<&(usize, Then)>, note: impl Fn(String)) -> Option<()> {
    let mut reader = BufReader::new(stream);
    for answered in 0.. {
        let end = life.filter(|(answers, _)| *answers == answered).map(|(_, then)| then);
        if let Some(Then::Close) = end {
            break;
        }
        note(request(&mut reader)?);
        if let Some(Then::CloseAtRequest) = end {
            break;
        }
        // Good as health and as an acknowledgement.
        let mut body = health();
        body["acknowledged"] = true.into();
        let body = body.to_string();
        let mut stream = stream;
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
    Some(())
}

/// Its method.
fn request(reader: &mut impl BufRead) -> Option<String> {
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    let method = first.split(' ').next().filter(|method| !method.is_empty())?.to_owned();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    reader.take(length).read_to_end(&mut Vec::new()).ok()?;
    Some(method)
}

async fn look(client: &EngineClient) {
    assert_eq!(client.health().await.expect("health").color, Color::Green);
}

async fn write(client: &EngineClient) -> Result<(), EngineError> {
    client.tighten(&Allocation::default(), "primaries", "{}").await
}

#[test] // proves RESTART-18
fn reads_use_one_connection_and_each_write_its_own() {
    let engine = Engine::new(&[]);
    let client = engine.client();
    wait(async {
        for _ in 0..3 {
            look(&client).await;
        }
        write(&client).await.expect("a change");
        write(&client).await.expect("a change");
        look(&client).await;
    });
    assert_eq!(engine.numbers(), [0, 0, 0, 1, 2, 0]);
}

#[test] // proves RESTART-18
fn a_connection_that_the_engine_has_closed_costs_no_look() {
    let engine = Engine::new(&[(1, Then::Close), (2, Then::Close)]);
    let client = engine.client();
    wait(async {
        for _ in 0..4 {
            look(&client).await;
        }
    });
    assert_eq!(engine.numbers(), [0, 1, 1, 2]);
}

/// The request was on its way when the engine closed the connection.
#[test] // proves RESTART-18
fn a_read_that_a_kept_connection_loses_is_sent_once_more() {
    let engine = Engine::new(&[(1, Then::CloseAtRequest)]);
    let client = engine.client();
    wait(async {
        look(&client).await;
        look(&client).await;
    });
    assert_eq!(engine.numbers(), [0, 0, 1]);
    // On a new connection it is not sent once more: that engine does not answer.
    let engine = Engine::new(&[(0, Then::CloseAtRequest)]);
    let lost = wait(engine.client().health());
    assert!(matches!(lost, Err(EngineError::Unanswered(_))), "{lost:?}");
    assert_eq!(engine.numbers(), [0]);
}

#[test] // proves RESTART-18
fn a_write_that_the_engine_may_have_got_is_sent_once() {
    let engine = Engine::new(&[(1, Then::CloseAtRequest), (0, Then::CloseAtRequest)]);
    let client = engine.client();
    let lost = wait(async {
        look(&client).await;
        write(&client).await
    });
    assert!(matches!(lost, Err(EngineError::Unanswered(_))), "{lost:?}");
    let (get, put) = ("GET".to_owned(), "PUT".to_owned());
    assert_eq!(engine.seen(), [(0, get), (1, put)]);
}

#[test] // proves RESTART-18
fn four_connections_are_kept_and_none_outlives_its_client() {
    let mut engine = Engine::new(&[]);
    let client = engine.client();
    wait(async {
        join_all((0..10).map(|_| look(&client))).await;
        assert_eq!(engine.numbers().into_iter().max(), Some(9));
        let first = engine.closed(6).await;
        join_all((0..4).map(|_| look(&client))).await;
        let again = engine.numbers().split_off(10);
        assert!(again.iter().all(|number| *number < 10 && !first.contains(number)), "{again:?}");
        drop(client);
        engine.closed(4).await;
    });
}

/// A node that is stopped next is asked last, and nobody connects anew for that.
#[test] // proves RESTART-18
fn another_order_of_the_endpoints_keeps_the_connections() {
    let engines = [Engine::new(&[]), Engine::new(&[])];
    let ports = engines.each_ref().map(|engine| engine.port);
    let client = client(&ports, &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let prefer = |at: usize| client.prefer(&[endpoint(ports[at]), endpoint(ports[1 - at])]);
    wait(async {
        look(&client).await;
        prefer(1);
        look(&client).await;
        prefer(0);
        look(&client).await;
    });
    assert_eq!(engines.each_ref().map(Engine::numbers), [vec![0, 0], vec![0]]);
}

/// A client is made for one CA, so its connections are those of this CA.
#[test] // proves RESTART-18
fn another_ca_does_not_use_the_connections_of_the_first() {
    let pki = Pki::named(&["logs.search"]);
    let (fake, port) =
        FakeManager::on_port(Some(pki.acceptor()), Script::Always(Reply::json(200, health())));
    let client = |ca: &Pki| {
        let access = Access::Tls {
            tls: tls(&ca.pem("ca"), None).expect("a CA"),
            server_name: Some("logs.search".to_owned()),
            credentials: None,
        };
        client(&[port], &access, ENGINE_ANSWER_TIMEOUT)
    };
    let (right, wrong) = (client(&pki), client(&Pki::new()));
    wait(async {
        look(&right).await;
        look(&right).await;
        let refused = wrong.health().await;
        assert!(matches!(refused, Err(EngineError::Untrusted(_))), "{refused:?}");
        drop(right);
        fake.ended(1).await;
    });
    assert_eq!(fake.seen().len(), 2);
}
