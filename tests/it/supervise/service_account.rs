//! A manager accepts tokens of the stand-in apiserver like those of the real one.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod as KubePod, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use stayput_api::State;
use stayput_http::jwt::pod_audience;
use stayput_http::manager_client::{Address, ClientError, Credentials, ManagerClient, Token};

use super::pod::Pod;
use crate::support::pki::Pki;
use stayput_standin::apiserver::ApiServer;

/// Much longer than it takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);

#[tokio::test] // proves RESTART-8
async fn a_token_of_the_standin_apiserver_opens_the_pod_it_is_for() {
    let server = ApiServer::start().await.expect("a server");
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account = serde_json::from_value(json!({"metadata": {"name": "reconciler"}}));
    let account = account.expect("an account");
    accounts.create(&PostParams::default(), &account).await.expect("made");
    let pods: Api<KubePod> = Api::default_namespaced(server.client());
    let object = serde_json::from_value(json!({
        "metadata": {"name": "logs-0"},
        "spec": {
            "serviceAccountName": "reconciler",
            "containers": [{"name": "engine", "image": "engine:1"}],
        },
    }));
    let object = pods.create(&PostParams::default(), &object.expect("a pod")).await.expect("made");
    let uid = object.uid().expect("a uid");

    let pod = Pod::new();
    let pki = Pki::named(&["stayput"]);
    pod.write("jwks", &server.key_set().to_string());
    let path = |path: std::path::PathBuf| path.display().to_string();
    let options = [
        ["--listen", "127.0.0.1:0"].map(str::to_owned),
        ["--tls-cert".to_owned(), path(pki.file("cert"))],
        ["--tls-key".to_owned(), path(pki.file("key"))],
        ["--jwks".to_owned(), path(pod.path("jwks"))],
        ["--jwt-issuer", server.issuer()].map(str::to_owned),
        ["--allow-subject", "system:serviceaccount:default:reconciler=control"].map(str::to_owned),
    ];
    let mut command = pod.command(&options.concat(), &["sleep", "600"]);
    command.env("STAYPUT_POD_NAMESPACE", "default").env("STAYPUT_POD_NAME", "logs-0");
    let manager = pod.spawn(command.env("STAYPUT_POD_UID", &uid));
    manager.until("ready", |status| status["ready"] == true);
    let port = manager.port();

    let ask = async |audience: String| {
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some("logs-0".to_owned()),
            uid: Some(uid.clone()),
        };
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience],
                bound_object_ref: Some(bound),
                expiration_seconds: Some(600),
            },
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let made = accounts.create_token_request("reconciler", &params, &request).await;
        let token = made.expect("a token").status.expect("a status").token;
        let address = Address::Url {
            url: format!("https://127.0.0.1:{port}"),
            server_name: Some("stayput".into()),
            credentials: Credentials { tls: Some(pki.tls()), token: Some(Token::Text(token)) },
        };
        ManagerClient::new(address).expect("a client").status().await
    };
    let opened = ask(pod_audience("default", &uid)).await.expect("an answer");
    assert_eq!(opened.status.state, State::Running);
    let refused = ask(pod_audience("default", "another")).await;
    assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");

    // The apiserver's keys change, and so does the mounted copy of them. Nothing is restarted.
    server.rotate_keys();
    let refused = ask(pod_audience("default", &uid)).await;
    assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
    pod.write("jwks", &server.key_set().to_string());
    let taken = async {
        while ask(pod_audience("default", &uid)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, taken).await.expect("the new key is taken");
}
