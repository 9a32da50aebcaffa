//! Three real OpenSearch nodes in pods of the OpenSearch operator, whose part a stand-in plays with its timing: it
//! looks whenever its objects change, and in its intervals.

mod itself;
mod races;
mod running;
mod stage;
mod worst_moment;
