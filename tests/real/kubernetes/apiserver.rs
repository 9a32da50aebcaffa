//! Only the API.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::curl::Curl;
use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::skip;

#[test]
fn an_apiserver_of_its_own() {
    let began = Instant::now();
    let mut server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => return skip("kubernetes::apiserver::an_apiserver_of_its_own", &why),
    };
    println!("the API was there after {} ms", began.elapsed().as_millis());
    let version = server.admin().json(&["version"]);
    assert_eq!(version["serverVersion"]["gitVersion"], version["clientVersion"]["gitVersion"]);
    assert!(server.admin().kubeconfig().is_file());
    a_custom_resource(&server);
    a_token_for_an_audience(&server);
    rbac_decides(&server);
    it_survives_its_own_death(&mut server);
}

fn a_custom_resource(server: &ApiServer) {
    let schema = json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": {
            "replicas": { "type": "integer", "maximum": 3 },
        } } },
    });
    server.admin().apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.test.stayput.dev" },
        "spec": {
            "group": "test.stayput.dev",
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Namespaced",
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }],
        },
    }));
    let name = "customresourcedefinition/things.test.stayput.dev";
    server.admin().run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    let thing = |replicas: u8| {
        json!({
            "apiVersion": "test.stayput.dev/v1",
            "kind": "Thing",
            "metadata": { "name": "one", "namespace": "default" },
            "spec": { "replicas": replicas },
        })
    };
    server.admin().apply(&thing(3));
    let refused = server.admin().attempt(&["apply", "-f", "-"], &thing(4).to_string());
    assert!(refused.is_err_and(|reason| reason.contains("less than or equal to 3")));
    let things = server.admin().json(&["get", "things"]);
    assert_eq!(things["items"][0]["spec"]["replicas"], 3, "{things:#}");
}

fn a_token_for_an_audience(server: &ApiServer) {
    server.admin().run(&["create", "serviceaccount", "reconciler"]);
    let token = server.token("default", "reconciler", "stayput");
    let review = |audience: &str| {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token, "audiences": [audience] },
        });
        let args = ["create", "--filename", "-", "--output", "json"];
        let printed = server.admin().attempt(&args, &review.to_string()).expect("a review");
        serde_json::from_str::<Value>(&printed).expect("JSON")["status"].clone()
    };
    let status = review("stayput");
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:reconciler");
    assert_ne!(review("another")["authenticated"], true);

    let keys = server.raw("/openid/v1/jwks");
    assert_eq!(keys["keys"][0]["alg"], "RS256", "{keys:#}");
    let discovery = server.raw("/.well-known/openid-configuration");
    assert_eq!(discovery["issuer"], server.url());
}

fn rbac_decides(server: &ApiServer) {
    let reader = server.user("reader", "readers");
    let refused = reader.attempt(&["get", "configmaps"], "").expect_err("the right is not granted");
    assert!(refused.contains("Forbidden"), "{refused}");
    // The controller-manager fills `view` and the like: here they are empty.
    server.admin().run(&["create", "role", "reader", "--verb=list", "--resource=configmaps"]);
    server.admin().run(&["create", "rolebinding", "readers", "--role=reader", "--group=readers"]);
    // The authorizer uses a watch, so it may not have seen the binding yet.
    crate::support::wait::eventually("the binding counts", || {
        reader.attempt(&["get", "configmaps"], "").ok()
    });
    assert!(
        reader.attempt(&["get", "secrets"], "").is_err(),
        "the right to secrets is not granted"
    );
}

fn it_survives_its_own_death(server: &mut ApiServer) {
    let authority = server.authority();
    let port = server.url().rsplit_once(':').expect("a port").1.parse().expect("a number");
    let curl = Curl::tls(port, &authority);
    assert_eq!(curl.get("/livez").status, 200);
    server.freeze();
    let asked = ["get", "things"];
    let briefly = ["get", "things", "--request-timeout=1s"];
    let late = server.admin().attempt(&briefly, "").expect_err("it does not answer");
    assert!(!late.contains("refused"), "{late}");
    server.thaw();
    server.admin().run(&["get", "things"]);
    server.kill();
    let refused = server.admin().attempt(&asked, "").expect_err("it does not listen");
    assert!(refused.contains("refused"), "{refused}");
    server.start_again();
    assert_eq!(server.admin().json(&["get", "things"])["items"][0]["spec"]["replicas"], 3);
}
