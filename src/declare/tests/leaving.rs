//! Nodes that leave: single decisions as tables in words, and whole runs.

mod runs;
mod table;
mod world;

use crate::leave;

/// Every case of `table.txt`: the action, and what each node waits for.
#[test] // proves RULE-8, DECLARE-32, DECLARE-33, DECLARE-34
fn each_decision_of_the_table() {
    let cases = table::cases(include_str!("leaving/table.txt"));
    assert!(cases.len() > 20, "{} cases were read", cases.len());
    for case in cases {
        let world = &case.world;
        let seen = world.seen();
        let seen = if case.is_silent { Err("the engine does not answer") } else { Ok(&seen) };
        let turn = leave(&world.sets, &world.facts(), seen, &world.debts);
        assert_eq!(table::action(turn.action.as_ref()), case.does, "{}: {turn:#?}", case.name);
        for (node, text) in &case.says {
            let waits = turn.nodes.get(node).unwrap_or_else(|| panic!("{}: {node}", case.name));
            assert!(waits.contains(text), "{}: {node}: {waits}", case.name);
        }
        let refused = turn.refusal.map(|refusal| refusal.to_string()).unwrap_or_default();
        assert_eq!(refused.is_empty(), case.refused.is_empty(), "{}: {refused}", case.name);
        assert!(refused.contains(&case.refused), "{}: {refused}", case.name);
    }
}
