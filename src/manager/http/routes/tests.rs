use proptest::prelude::*;

use super::*;

#[test]
fn known_parameters_are_read() {
    let query =
        Query::parse(Some("after=b7f1%3A17&timeout=1m+30s"), &["after", "timeout"]).unwrap();
    assert_eq!(query.text("after"), Some("b7f1:17"));
    assert_eq!(query.span("timeout"), Ok(Some(Duration::from_secs(90))));
    assert_eq!(query.span("wait"), Ok(None));
    assert_eq!(Query::parse(None, &[]), Ok(Query::default()));
    assert_eq!(Query::parse(Some(""), &[]), Ok(Query::default()));
}

#[test]
fn a_wait_that_would_be_cut_short_is_refused() {
    let wait = |raw| Query::parse(Some(raw), &["wait"]).unwrap().wait(Duration::from_secs(300));
    assert_eq!(wait("wait=300"), Ok(Some(Duration::from_secs(300))));
    assert_eq!(wait(""), Ok(None));
    let refusal = wait("wait=1h").unwrap_err();
    assert_eq!(refusal.code, Code::InvalidQuery);
    assert!(refusal.message.starts_with("wait: \"1h\" is longer than 5m"), "{refusal:?}");
}

#[test]
fn every_refusal_names_the_parameter() {
    let refusal = |raw| Query::parse(Some(raw), &["wait"]).unwrap_err();
    for (raw, expected) in
        [("wiat=1s", "wiat"), ("wait=1s&wait=2s", "twice"), ("wait=%zz", "%zz"), ("%ff=", "%ff")]
    {
        let refusal = refusal(raw);
        assert_eq!(refusal.code, Code::InvalidQuery);
        assert!(refusal.message.contains(expected), "{refusal:?}");
    }
    let query = Query::parse(Some("wait=soon"), &["wait"]).unwrap();
    assert!(query.span("wait").unwrap_err().message.starts_with("wait: \"soon\""));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_query_makes_it_panic(raw: String) {
        if let Ok(query) = Query::parse(Some(&raw), &["wait", "after"]) {
            let _ = query.span("wait");
        }
    }
}

fn passes(headers: &[(&str, &str)]) -> bool {
    let mut request = Request::builder();
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    refuse_web_pages(&request.body(()).unwrap()).is_ok()
}

#[test]
fn programs_pass_and_pages_do_not() {
    for host in ["127.0.0.1:9199", "localhost", "LOCALHOST:1", "[::1]:9199", "127.8.8.8"] {
        assert!(passes(&[("host", host)]), "{host}");
    }
    for host in ["evil.example:9199", "localhost.evil.example", "10.0.0.1", "", "[::2]:1"] {
        assert!(!passes(&[("host", host)]), "{host}");
    }
    assert!(!passes(&[]));
    let local = ("host", "localhost");
    assert!(!passes(&[local, ("origin", "https://evil.example")]));
    assert!(!passes(&[local, ("origin", "null")]));
    assert!(passes(&[local, ("content-type", "application/json; charset=utf-8")]));
    for simple in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        assert!(!passes(&[local, ("content-type", simple)]), "{simple}");
    }
}
