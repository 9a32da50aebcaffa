//! `ui`: what a browser gets, and who gets nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stayput_standin::apiserver::{Fault, How};

use super::fixture::{Fixture, idle, under_way};
use super::running::Running;

/// How long an event is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The served pages, as a browser that was given the address asks for them.
struct Pages {
    port: u16,
    token: String,
    _program: Running,
}

impl Pages {
    async fn of(fixture: &Fixture, line: &str) -> Self {
        let mut program = Running::start(fixture, line);
        let address = program.until("http://").await;
        let (host, token) = address.split_once("/?token=").unwrap();
        let port = host.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap();
        Self { port, token: token.to_owned(), _program: program }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
        BufReader::new(stream)
    }

    /// Head and body.
    async fn answer(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (String, String) {
        let mut stream = self.request(method, path, headers);
        let read = move || {
            let mut all = String::new();
            stream.read_to_string(&mut all).unwrap();
            let (head, body) = all.split_once("\r\n\r\n").unwrap();
            (head.to_ascii_lowercase(), body.to_owned())
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn cookie(&self) -> String {
        format!("stayput-{}={}", self.port, self.token)
    }

    async fn get(&self, path: &str) -> (String, String) {
        let (host, cookie) = (self.host(), self.cookie());
        self.answer("GET", path, &[("Host", host.as_str()), ("Cookie", cookie.as_str())]).await
    }

    fn events(&self, path: &str) -> Events {
        let headers = [("Host", self.host()), ("Cookie", self.cookie())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        Events { stream: Some(self.request("GET", path, &headers)) }
    }
}

struct Events {
    stream: Option<BufReader<TcpStream>>,
}

impl Events {
    /// Reads up to the event of which a part contains this text; its parts by id.
    async fn until(&mut self, text: &'static str) -> Vec<(String, String)> {
        let mut stream = self.stream.take().unwrap();
        // Without any change there is a comment each 15 s.
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let read = move || {
            let mut line = String::new();
            loop {
                assert!(Instant::now() < deadline, "no event with {text:?}");
                line.clear();
                let length = stream.read_line(&mut line).unwrap();
                assert!(length > 0, "the events have ended without {text:?}");
                let Some(data) = line.strip_prefix("data: ") else { continue };
                let changes: Vec<Value> = serde_json::from_str(data).unwrap();
                let text_of = |value: &Value| value.as_str().unwrap().to_owned();
                let parts: Vec<(String, String)> = changes
                    .iter()
                    .map(|one| (text_of(&one["id"]), text_of(&one["html"])))
                    .collect();
                if parts.iter().any(|(_, html)| html.contains(text)) {
                    return (stream, parts);
                }
            }
        };
        let (stream, parts) = tokio::task::spawn_blocking(read).await.unwrap();
        self.stream = Some(stream);
        parts
    }
}

#[tokio::test] // proves PAGE-2
async fn only_with_the_printed_address_and_nothing_can_be_changed() {
    let fixture = Fixture::with(idle()).await;
    let pages = Pages::of(&fixture, "ui logs").await;
    let code = |head: &str| head.split(' ').nth(1).unwrap().to_owned();

    let path = format!("/?token={}", pages.token);
    let (head, _) = pages.answer("GET", &path, &[("Host", pages.host().as_str())]).await;
    assert_eq!(code(&head), "303", "{head}");
    assert!(head.contains("location: /\r\n"), "{head}");
    let cookie = format!("set-cookie: {}; path=/; httponly; samesite=strict", pages.cookie());
    assert!(head.contains(&cookie), "{head}");
    let (head, _) = pages.get("/").await;
    assert!(head.contains("location: /clusters/logs"), "{head}");

    let (head, body) = pages.get("/clusters/logs").await;
    assert_eq!(code(&head), "200", "{head}");
    assert!(
        head.contains("content-security-policy: default-src 'none'; script-src 'self'"),
        "{head}"
    );
    assert!(head.contains("cache-control: no-store") && !head.contains("access-control"), "{head}");
    assert!(
        !body.contains(&pages.token) && !body.contains(" style=") && !body.contains("<script>")
    );

    let (cookie, host) = (pages.cookie(), pages.host());
    let (cookie, host) = (("Cookie", cookie.as_str()), ("Host", host.as_str()));
    for (method, path, headers, wanted) in [
        ("GET", "/clusters/logs", vec![host], "403"),
        ("GET", "/clusters/logs/events", vec![host], "403"),
        ("GET", "/clusters/logs", vec![("Host", "evil.example"), cookie], "421"),
        ("POST", "/clusters/logs", vec![host, cookie], "405"),
        ("GET", "/clusters/others", vec![host, cookie], "404"),
        ("GET", "/clusters/..%2fsecrets", vec![host, cookie], "404"),
        ("HEAD", "/clusters/logs", vec![host, cookie], "200"),
    ] {
        let (head, body) = pages.answer(method, path, &headers).await;
        assert_eq!(code(&head), wanted, "{method} {path} {headers:?}");
        assert!(!body.contains("Idle"), "{method} {path}: {body}");
    }
}

#[tokio::test] // proves PAGE-5
async fn a_restart_is_shown_as_it_happens_and_so_is_a_lost_apiserver() {
    let fixture = Fixture::with(idle()).await;
    let pages = Pages::of(&fixture, "ui").await;
    let (_, body) = pages.get("/clusters/logs").await;
    assert!(body.contains("Idle") && body.contains("id=\"pod-logs-2\""), "{body}");
    let (_, since) = body.split_once("data-events=\"").unwrap();
    let mut events = pages.events(since.split_once('"').unwrap().0);
    fixture.status(under_way("b", "rolling")).await;
    let parts = events.until("Blocked").await;
    let ids: Vec<&str> = parts.iter().map(|(id, _)| id.as_str()).collect();
    assert!(ids.contains(&"summary") && ids.contains(&"news"), "{ids:?}");
    assert!(!ids.contains(&"picture"), "no node has come or gone: {ids:?}");
    let told = parts.iter().any(|(_, html)| html.contains("rolling restart b of 3 nodes"));
    assert!(told, "{parts:?}");

    fixture
        .annotate_pod("logs-1", json!({"elasticsearch.k8s.elastic.co/restart-phase": "stop"}))
        .await;
    let parts = events.until(": stop").await;
    assert!(parts.iter().any(|(id, _)| id == "pod-logs-1"), "{parts:?}");

    fixture.server.inject(Fault::new(How::Refuse(503)).times(u32::MAX));
    fixture.server.cut_watches();
    events.until("Not live. Last read at").await;
    let (_, body) = pages.get("/clusters/logs").await;
    assert!(body.contains("Not live.") && body.contains("Blocked"), "without scripts, too: {body}");
    fixture.server.clear_faults();
    events.until("Live, read at").await;

    fixture.clusters().delete("logs", &Default::default()).await.unwrap();
    events.until("This SearchCluster is deleted").await;
}

#[tokio::test] // proves PAGE-9
async fn of_several_there_is_a_list_and_the_runbook_is_at_hand() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    fixture.declare("metrics").await;
    let pages = Pages::of(&fixture, "ui").await;
    let (head, _) = pages.get("/").await;
    assert!(head.contains("location: /clusters\r\n"), "{head}");
    let (_, body) = pages.get("/clusters").await;
    assert!(
        body.contains("href=\"/clusters/logs\"") && body.contains("/clusters/metrics"),
        "{body}"
    );
    assert!(body.contains("Blocked"), "{body}");
    let (_, body) = pages.get("/runbook/quorum").await;
    assert!(body.contains("the majority that elects a master would be lost"), "{body}");
    let (head, _) = pages.get("/runbook/../Cargo.toml").await;
    assert!(head.contains(" 404 "), "{head}");

    let error = fixture.fails("ui others", 1).await;
    assert!(error.contains("has no SearchCluster others; there are: logs, metrics"), "{error}");
    let line = format!("ui --port {}", pages.port);
    let error = fixture.fails(&line, 1).await;
    assert!(error.contains("choose another --port"), "{error}");
    let error = Fixture::empty().await.fails("ui", 1).await;
    assert!(error.contains("has no SearchCluster"), "{error}");
}
