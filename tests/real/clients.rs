//! Clients and tokens of other vendors: curl, PyJWT.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::curl::Curl;
use crate::support::engine::{Kind, Node, work_directory};
use crate::support::manager::{Launch, Manager};
use crate::support::namespace::cannot_isolate;
use crate::support::ports::free_loopback_port;
use crate::support::skip;
use crate::support::wait::eventually;

/// A manager with TLS that knows keys of all kinds, and the tokens that were made with them.
struct Secured {
    manager: Manager,
    curl: Curl,
    tokens: Value,
}

impl Secured {
    /// Starts it in front of an engine; `Err` names what is missing here.
    fn start(work: &Path, launch: Launch) -> Result<Self, String> {
        if let Some(why) = cannot_isolate() {
            return Err(why);
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/tokens.py");
        let made = Command::new("/usr/bin/python3").arg(script).arg(work).output();
        let made = made.map_err(|error| format!("no /usr/bin/python3: {error}"))?;
        let errors = String::from_utf8_lossy(&made.stderr);
        if errors.contains("ModuleNotFoundError") {
            return Err("no PyJWT in /usr/bin/python3".to_owned());
        }
        assert!(made.status.success(), "{errors}");
        let tokens = serde_json::from_slice(&made.stdout).expect("JSON");

        let port = free_loopback_port();
        let certificate = certify(work);
        let listen = format!("127.0.0.1:{port}");
        let at = |name: &str| work.join(name).to_str().expect("UTF-8").to_owned();
        let launch = launch.options([
            "--listen",
            &listen,
            "--tls-cert",
            &at("tls.crt"),
            "--tls-key",
            &at("tls.key"),
            "--jwt-key",
            &at("shared.key"),
            "--jwt-public-key",
            &at("public.pem"),
            "--jwks",
            &at("jwks.json"),
            "--jwt-issuer",
            "https://kubernetes.default.svc",
            "--jwt-audience",
            "stayput-test",
            "--allow-subject",
            "system:serviceaccount:search:stayput=control",
        ]);
        let manager = launch.start();
        Ok(Self { manager, curl: Curl::tls(port, &certificate), tokens })
    }

    fn tokens(&self, kind: &str) -> impl Iterator<Item = (&str, &str)> {
        let all = self.tokens[kind].as_object().expect("tokens");
        all.iter().map(|(name, token)| (name.as_str(), token.as_str().expect("a token")))
    }
}

/// Writes a certificate for localhost and its key; returns the certificate's path.
fn certify(work: &Path) -> PathBuf {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(work.join("tls.key"), made.signing_key.serialize_pem()).expect("a key");
    let path = work.join("tls.crt");
    fs::write(&path, made.cert.pem()).expect("a certificate");
    path
}

#[test] // proves ACCESS-5
fn tokens_made_by_pyjwt() {
    let work = work_directory(&[]);
    let launch = Launch::new(work.path(), ["sleep", "infinity"]).never_ready();
    let secured = match Secured::start(work.path(), launch) {
        Ok(secured) => secured,
        Err(why) => return skip("clients::tokens_made_by_pyjwt", &why),
    };
    let curl = &secured.curl;
    for (name, token) in secured.tokens("good") {
        let status = curl.bearer(token).get("/es/status");
        assert_eq!(status.status, 200, "{name}: {:#}", status.body);
        let start = curl.bearer(token).post("/es/start", "{}");
        assert!(matches!(start.status, 200 | 202), "{name}: {:#}", start.body);
        let by = start.body["last_request"]["by"].as_str().expect("a subject").to_owned();
        let expected = if name.starts_with("service account") {
            "system:serviceaccount:search:stayput"
        } else {
            "pyjwt"
        };
        assert!(by.ends_with(expected), "{name}: {by}");
    }
    for (name, token) in secured.tokens("read") {
        assert_eq!(curl.bearer(token).get("/es/status").status, 200, "{name}");
        curl.bearer(token).post("/es/stop", "{}").expect_problem(403, "forbidden");
    }
    let mut refusals = vec![curl.get("/es/status").expect_problem(401, "unauthenticated")];
    for (name, token) in secured.tokens("bad") {
        let answer = curl.bearer(token).post("/es/stop", "{}");
        assert_eq!(answer.status, 401, "{name}: {:#}", answer.body);
        refusals.push(answer.body);
    }
    // The answer does not name the check that failed.
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:#?}");
    assert_eq!(secured.manager.api.status()["desired"], "running");
    for why in ["expired: ", "another audience: ", "subject is not allowed: ", "wrong signature"] {
        // The log is written after the answer.
        eventually(why, || secured.manager.log().contains(why).then_some(()));
    }
    let log = secured.manager.log();
    for kind in ["good", "read", "bad"] {
        for (name, token) in secured.tokens(kind) {
            assert!(!log.contains(token), "the token {name} is in the log");
        }
    }
}

#[test]
fn curl_on_every_route() {
    let work = work_directory(&[]);
    let secured = match Secured::start(work.path(), Launch::new(work.path(), ["sleep", "infinity"]))
    {
        Ok(secured) => secured,
        Err(why) => return skip("clients::curl_on_every_route", &why),
    };
    secured.manager.api.until_state("starting");
    let (_, token) = secured.tokens("good").next().expect("a token");
    let over_tls = secured.curl.bearer(token);
    let over_socket = Curl::socket(&secured.manager.api.socket);
    for curl in [&over_tls, &over_socket] {
        curl.get("/livez").expect(200);
        curl.get("/readyz").expect(503);
        let metrics = curl.get("/metrics").expect(200);
        assert!(metrics.as_str().is_some_and(|text| text.contains("# TYPE stayput_")), "{metrics}");
        // Writing down a start changes the cursor, too.
        secured
            .manager
            .api
            .status_when("it is written down", |status| status["manager"]["durable"] == true);
        let status = curl.get("/es/status").expect(200);
        let cursor = status["cursor"].as_str().expect("a cursor");
        curl.get(&format!("/es/status?after={cursor}&timeout=50ms")).expect(204);
        let status = curl.post("/es/stop?wait=60s", r#"{"grace":"5s","drain":"0s"}"#).expect(200);
        assert_eq!(status["state"], "stopped");
        let moved = curl.get(&format!("/es/status?after={cursor}&timeout=30s")).expect(200);
        assert_ne!(moved["cursor"], cursor);
        let sequence = moved["sequence"].as_u64().expect("a number") + 1;
        let body = json!({ "sequence": sequence, "config": "mounted" }).to_string();
        curl.post("/es/start", &body).expect(202);
        curl.post("/es/stop", r#"{"grce":"5s"}"#).expect_problem(400, "invalid_body");
        curl.get("/es/stop").expect_problem(405, "method_not_allowed");
        curl.get("/es/none").expect_problem(404, "not_found");
    }
    // The probes of a kubelet have neither token nor certificate.
    secured.curl.get("/livez").expect(200);
    secured.curl.get("/metrics").expect(401);
}

#[test]
fn a_real_engine_restarted_with_curl() {
    let mut node = match Node::new(Kind::OpenSearch) {
        Ok(node) => node,
        Err(why) => return skip("clients::a_real_engine_restarted_with_curl", &why),
    };
    let work = node.work().to_owned();
    let secured = match Secured::start(&work, node.launch()) {
        Ok(secured) => secured,
        Err(why) => return skip("clients::a_real_engine_restarted_with_curl", &why),
    };
    secured.manager.api.until_ready();
    let (_, token) = secured.tokens("good").next().expect("a token");
    let curl = secured.curl.bearer(token);
    eventually("the engine answers in time", || (curl.get("/readyz").status == 200).then_some(()));
    curl.post("/es/stop?wait=5m", "{}").expect(200);
    let checksum = node.swap("node.attr.stayput: curled");
    let body = json!({ "checksum": checksum }).to_string();
    let status = curl.post("/es/start?wait=5m", &body).expect(200);
    assert_eq!(status["run"]["checksum"], json!(checksum));
    assert_eq!(node.attribute(), "curled");
}
