use crate::observe::engine::leaving::*;
use stayput_engine::Member;

fn cluster(uuid: &str, names: &[&str]) -> Members {
    let member = |name: &&str| Member {
        id: format!("id-{name}"),
        name: (*name).to_owned(),
        ephemeral_id: format!("e-{name}"),
    };
    Members {
        cluster_uuid: Some(uuid.to_owned()),
        elected_master: None,
        nodes: names.iter().map(member).collect(),
    }
}

#[test] // proves RESTART-113
fn the_cluster_of_the_pods_is_the_one_of_before_or_lists_most_of_them() {
    let ours = |cluster_uuid| Ours { cluster_uuid, nodes: ["a", "b", "c"].into() };
    let (most, own) = (cluster("1", &["b", "c"]), cluster("2", &["a"]));
    assert!(ours(None).is_of(&most) && !ours(None).is_of(&own));
    assert!(ours(Some("1")).is_of(&most) && !ours(Some("1")).is_of(&own));
    assert!(!ours(Some("2")).is_of(&most) && ours(Some("2")).is_of(&own));
    assert!(!ours(Some("1")).is_of(&cluster("1", &["x", "y"])), "other names than the pods");
    assert_eq!(ours(None).not_in(&most), ["a".to_owned()].into());
}
