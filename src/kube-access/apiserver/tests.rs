use kube::Client;
use kube::core::Status;

use super::*;

fn server(caller: Caller) -> Apiserver {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    Apiserver { client: Client::try_from(config).unwrap(), caller, counter: None }
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
