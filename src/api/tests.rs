//! Contract of the messages.
