//! Tokens of service accounts.

use http::Method;
use k8s_openapi::ByteString;
use kube::Client;
use ring::signature;
use serde_json::{Value, json};

use super::world::{Answer, World, pod, text};

async fn with_account(client: Client) -> World {
    let world = World::new(client).await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reconciler"},
    });
    world.post("serviceaccounts", &account).await.good();
    world
}

async fn request(world: &World, account: &str, spec: Value) -> Answer {
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec,
    });
    let path = world.path("serviceaccounts", &format!("{account}/token"));
    world.send(Method::POST, &path, &request).await
}

fn decode(part: &str) -> Vec<u8> {
    let mut base64 = part.replace('-', "+").replace('_', "/");
    while !base64.len().is_multiple_of(4) {
        base64.push('=');
    }
    serde_json::from_value::<ByteString>(json!(base64)).unwrap().0
}

fn parts(token: &str) -> (Value, Value) {
    let mut parts = token.split('.').map(decode);
    let mut next = || serde_json::from_slice(&parts.next().unwrap()).unwrap();
    (next(), next())
}

pub async fn a_token_names_account_audience_and_pod(client: Client) {
    let world = with_account(client).await;
    let mut object = pod("logs-0");
    object["spec"]["serviceAccountName"] = json!("reconciler");
    let pod = world.post("pods", &object).await.good();
    let uid = text(&pod["metadata"]["uid"]);
    let audience = format!("stayput:{}/{uid}", world.namespace);
    let spec = json!({
        "audiences": [audience], "expirationSeconds": 600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "logs-0", "uid": uid},
    });
    let issued = request(&world, "reconciler", spec).await;
    assert_eq!(issued.code, 201);
    let issued = issued.good();
    assert_eq!(issued["kind"], "TokenRequest");
    assert!(text(&issued["status"]["expirationTimestamp"]).ends_with('Z'));
    let (_, claims) = parts(&text(&issued["status"]["token"]));
    assert_eq!(claims["aud"], json!([audience]));
    let account = format!("system:serviceaccount:{}:reconciler", world.namespace);
    assert_eq!(claims["sub"], account);
    let seconds = |name: &str| claims[name].as_u64().unwrap();
    assert_eq!(seconds("exp") - seconds("iat"), 600);
    assert!(seconds("nbf") <= seconds("iat"));
    assert!(!text(&claims["jti"]).is_empty());
    let about = &claims["kubernetes.io"];
    assert_eq!(about["namespace"], world.namespace);
    assert_eq!(about["pod"], json!({"name": "logs-0", "uid": uid}));
    assert_eq!(about["serviceaccount"]["name"], "reconciler");
    let keys = world.get("/.well-known/openid-configuration").await.good();
    assert_eq!(claims["iss"], keys["issuer"]);
    let (_, claims) = parts(&text(
        &request(&world, "reconciler", json!({"audiences": []})).await.good()["status"]["token"],
    ));
    assert_eq!(claims["aud"], json!([claims["iss"]]), "its own, if none is asked for");
}

pub async fn a_token_is_verified_with_the_published_key(client: Client) {
    let world = with_account(client).await;
    let issued = request(&world, "reconciler", json!({"audiences": ["stayput"]})).await.good();
    let token = text(&issued["status"]["token"]);
    let keys = world.get("/openid/v1/jwks").await;
    assert_eq!(keys.content_type, "application/jwk-set+json");
    let keys = keys.good();
    let (header, _) = parts(&token);
    let mut keys = keys["keys"].as_array().unwrap().iter();
    let key = keys.find(|key| key["kid"] == header["kid"]).expect("the key it names");
    assert_eq!(key["alg"], header["alg"]);
    let (message, signature_) = token.rsplit_once('.').unwrap();
    let (message, signature_) = (message.as_bytes(), decode(signature_));
    let part = |name: &str| decode(&text(&key[name]));
    let verified = match key["kty"].as_str().unwrap() {
        "EC" => {
            let point = [&[4][..], &part("x"), &part("y")].concat();
            signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                .verify(message, &signature_)
        }
        _ => signature::RsaPublicKeyComponents { n: part("n"), e: part("e") }.verify(
            &signature::RSA_PKCS1_2048_8192_SHA256,
            message,
            &signature_,
        ),
    };
    verified.expect("signed by that key");
}

pub async fn a_token_for_what_is_not_there_is_refused(client: Client) {
    let world = with_account(client).await;
    request(&world, "nobody", json!({"audiences": ["a"]})).await.refused(404, "NotFound");
    let short = json!({"audiences": ["a"], "expirationSeconds": 60});
    let refused = request(&world, "reconciler", short).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.expirationSeconds");
    let bound = |name: &str, uid: &str| {
        json!({"audiences": ["a"], "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid,
        }})
    };
    let missing = bound("logs-0", "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a");
    request(&world, "reconciler", missing.clone()).await.refused(404, "NotFound");
    let mut object = pod("logs-0");
    object["spec"]["serviceAccountName"] = json!("reconciler");
    world.post("pods", &object).await.good();
    request(&world, "reconciler", missing).await.refused(409, "Conflict");
    let mut object = pod("logs-1");
    object["spec"]["serviceAccountName"] = json!("other");
    world.post("pods", &object).await.good();
    request(&world, "reconciler", bound("logs-1", "")).await.refused(400, "BadRequest");
}
