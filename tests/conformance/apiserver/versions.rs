//! Versions of objects: the first writer succeeds, and later ones are refused.

use kube::Client;
use serde_json::json;

use super::world::{World, config_map, gauge, text, version};

pub async fn every_write_gets_a_higher_version(client: Client) {
    let world = World::with_gauges(client).await;
    let mut seen =
        vec![version(&world.post("configmaps", &config_map("a", json!({}))).await.good())];
    seen.push(version(&world.post("gauges", &gauge("a")).await.good()));
    for n in 0..3 {
        let patch = json!({"data": {"n": n.to_string()}});
        seen.push(version(&world.merge("configmaps", "a", &patch).await.good()));
    }
    let list = world.read("configmaps", "").await;
    assert!(seen.is_sorted() && seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert!(version(&list) >= seen[4]);
}

pub async fn a_write_that_changes_nothing_is_none(client: Client) {
    let world = World::with_gauges(client).await;
    for (plural, object) in
        [("configmaps", config_map("a", json!({"k": "v"}))), ("gauges", gauge("a"))]
    {
        let made = world.post(plural, &object).await.good();
        let same = world.put(plural, "a", &made).await.good();
        assert_eq!(version(&same), version(&made));
        let same = world.merge(plural, "a", &json!({"metadata": {"labels": {}}})).await.good();
        assert_eq!(version(&same), version(&made));
        let labelled =
            world.merge(plural, "a", &json!({"metadata": {"labels": {"a": "b"}}})).await.good();
        assert!(version(&labelled) > version(&made));
        let same =
            world.merge(plural, "a", &json!({"metadata": {"labels": {"a": "b"}}})).await.good();
        assert_eq!(version(&same), version(&labelled));
    }
}

pub async fn a_stale_put_conflicts(client: Client) {
    let world = World::with_gauges(client).await;
    for (plural, object) in [("configmaps", config_map("a", json!({}))), ("gauges", gauge("a"))] {
        let stale = world.post(plural, &object).await.good();
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let fresh = world.merge(plural, "a", &label).await.good();
        let refused = world.put(plural, "a", &stale).await.refused(409, "Conflict");
        assert_eq!(refused["details"]["name"], "a");
        assert_eq!(refused["details"]["kind"], plural);
        let message = text(&refused["message"]);
        assert!(message.starts_with("Operation cannot be fulfilled on "), "{message}");
        assert!(message.contains("the object has been modified"), "{message}");
        assert_eq!(world.read(plural, "a").await, fresh);
        world.put(plural, "a", &fresh).await.good();
    }
}

pub async fn a_put_without_a_version_is_a_matter_of_the_kind(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("configmaps", &config_map("a", json!({}))).await.good();
    let put = world.put("configmaps", "a", &config_map("a", json!({"k": "v"}))).await.good();
    assert_eq!(put["data"], json!({"k": "v"}));

    world.post("gauges", &gauge("a")).await.good();
    let refused = world.put("gauges", "a", &gauge("a")).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.resourceVersion");

    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"holderIdentity": "x"},
    });
    let made = world.put("leases", "a", &lease).await;
    assert_eq!(made.code, 201, "{made:?}");
    let refused = world.put("leases", "a", &lease).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.resourceVersion");
}

pub async fn a_version_that_is_no_number_is_an_error(client: Client) {
    let world = World::new(client).await;
    let mut object = world.post("configmaps", &config_map("a", json!({}))).await.good();
    object["metadata"]["resourceVersion"] = json!("soon");
    assert_eq!(world.put("configmaps", "a", &object).await.code, 500);
    let patch = json!({"metadata": {"resourceVersion": "soon"}});
    assert_eq!(world.merge("configmaps", "a", &patch).await.code, 500);
    let mut object = config_map("b", json!({}));
    object["metadata"]["resourceVersion"] = json!("12");
    let refused = world.post("configmaps", &object).await;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (500, None), "{refused:?}");
    let path = world.path("configmaps", "?resourceVersion=soon");
    world.get(&path).await.refused(400, "BadRequest");
    let path = world.path("configmaps", "?watch=true&resourceVersion=soon");
    assert_eq!(world.get(&path).await.code, 500);
}

pub async fn another_uid_conflicts(client: Client) {
    let world = World::with_gauges(client).await;
    for (plural, object) in [("configmaps", config_map("a", json!({}))), ("gauges", gauge("a"))] {
        let mut made = world.post(plural, &object).await.good();
        made["metadata"]["uid"] = json!("0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a");
        let refused = world.put(plural, "a", &made).await.refused(409, "Conflict");
        let message = text(&refused["message"]);
        assert!(message.contains("Precondition failed: UID in precondition"), "{message}");
        let uid = json!({"metadata": {"uid": "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a"}});
        let refused = world.merge(plural, "a", &uid).await.refused(422, "Invalid");
        assert_eq!(refused["details"]["causes"][0]["field"], "metadata.uid");
    }
}
