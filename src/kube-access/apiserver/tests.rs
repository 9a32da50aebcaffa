use kube::Client;
use kube::core::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn server(caller: Caller) -> Apiserver {
    server_at(1, caller)
}

fn server_at(port: u16, caller: Caller) -> Apiserver {
    let config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    Apiserver { client: Client::try_from(config).unwrap(), caller, counter: None }
}

/// An apiserver behind a proxy that refuses one call, in its own form.
async fn behind_a_proxy_that_refuses() -> Apiserver {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let answer = "HTTP/1.1 502 Bad Gateway\r\ndate: Thu, 01 Jan 1970 00:01:40 GMT\r\n\
                      content-length: 16\r\n\r\n{\"error\":\"down\"}";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    server_at(port, Caller::Kubectl)
}

/// Without it, the Lease would be compared with the clock of this machine.
#[tokio::test]
async fn the_time_of_the_apiserver_is_known_from_a_refusal_too() {
    assert_eq!(behind_a_proxy_that_refuses().await.time().await.unwrap(), Some(100));
}

#[tokio::test]
async fn a_refusal_without_a_message_is_told_by_its_status() {
    let refused = behind_a_proxy_that_refuses().await.document("/openid/v1/jwks").await;
    let message = refused.unwrap_err().to_string();
    assert!(message.ends_with(": answered 502 Bad Gateway"), "{message}");
}

#[tokio::test]
async fn what_only_reads_is_no_dry_run() {
    use k8s_openapi::api::core::v1::Secret;

    let secrets = behind_a_proxy_that_refuses().await.objects::<Secret>("search").dry_run(true);
    let message = secrets.find("logs").await.unwrap_err().to_string();
    assert!(message.contains("get secrets logs in namespace search: "), "{message}");
}

/// The error of a call that was refused with this code.
fn refused(call: &Call, code: u16, message: &str) -> ApiError {
    let status = Status::failure(message, "").with_code(code);
    ApiError::of(call, kube::Error::Api(status.boxed()))
}

/// Who may patch pods can do more than stop nodes: nobody is told to ask for more than was refused.
#[tokio::test] // proves UPDATE-47
async fn who_may_not_is_told_the_right_that_is_missing() {
    use crate::cluster::SearchCluster;
    use k8s_openapi::api::apps::v1::ControllerRevision;
    use k8s_openapi::api::core::v1::Pod;

    let server = server(Caller::Kubectl);
    for (call, told) in [
        (
            server.objects::<Pod>("search").about("list"),
            "you may not list pods in namespace search: ask for a Role there with the verb list on \
             pods; the apiserver says: no",
        ),
        (
            server.objects::<ControllerRevision>("search").about("get").named("a"),
            "you may not get controllerrevisions.apps a in namespace search: ask for a Role there \
             with the verb get on controllerrevisions.apps; the apiserver says: no",
        ),
        (
            server.everywhere::<SearchCluster>().about("list"),
            "you may not list searchclusters.stayput.dev in the whole cluster: ask for a \
             ClusterRole with the verb list on searchclusters.stayput.dev; the apiserver says: no",
        ),
    ] {
        assert_eq!(refused(&call, 403, "no").to_string(), told);
    }
}

#[tokio::test]
async fn calls_have_names_in_metrics_and_in_messages() {
    use k8s_openapi::api::apps::v1::StatefulSet;
    use k8s_openapi::api::core::v1::Pod;

    let server = server(Caller::Reconciler);
    let resize = server.objects::<Pod>("search").dry_run(true).about("patch");
    for (call, label, text) in [
        (
            resize.subresource("resize").named("logs-0"),
            "try_to_patch_pods_resize",
            "patch pods/resize logs-0 in namespace search (dry run)",
        ),
        (
            server.objects::<StatefulSet>("search").about("list"),
            "list_statefulsets",
            "list statefulsets.apps in namespace search",
        ),
        (
            server.about("get", "/openid/v1/jwks"),
            "get_openid_v1_jwks",
            "get /openid/v1/jwks in the whole cluster",
        ),
    ] {
        assert_eq!((call.label().as_str(), call.to_string().as_str()), (label, text));
    }
}

#[tokio::test]
async fn a_patch_whose_test_does_not_hold_is_a_conflict_and_an_invalid_object_is_none() {
    use k8s_openapi::api::core::v1::Pod;

    let pods = server(Caller::Reconciler).objects::<Pod>("search");
    assert!(refused(&pods.about("patch"), 422, "the test failed").is_conflict());
    assert!(!refused(&pods.about("create"), 422, "the test failed").is_conflict());
    let of_policy = "ValidatingAdmissionPolicy 'images' denied request";
    assert!(!refused(&pods.about("patch"), 422, of_policy).is_conflict());
    let details = serde_json::from_str(r#"{"name": "logs-0"}"#).expect("details");
    let status = Status { details: Some(details), ..Status::failure("invalid", "").with_code(422) };
    let invalid = ApiError::of(&pods.about("patch"), kube::Error::Api(status.boxed()));
    assert!(!invalid.is_conflict() && invalid.is_unprocessable());
}
