//! Errors in events, without what an error may say about keys and values.

use crate::error::Error;
use crate::events::EventKind;

/// The message of an error. Where the program's code has a say in the message, or the error is
/// about a single entry, it may hold keys or values: then only the kind is told.
pub fn message_of(error: &Error) -> String {
    match error {
        Error::Poisoned { cause } => message_of(cause),
        Error::MergeFailed { .. }
        | Error::UserCodePanicked { .. }
        | Error::Conflict { .. }
        | Error::Deadlock { .. }
        | Error::LockTimeout { .. } => error.kind().as_str().to_owned(),
        other => other.to_string(),
    }
}

/// The event about damage; `None`: the error is about something else.
pub fn corruption(error: &Error) -> Option<EventKind> {
    let damage = match error {
        Error::Corruption(damage) => damage,
        Error::Poisoned { cause } => return corruption(cause),
        _ => return None,
    };
    Some(EventKind::CorruptionFound {
        file: damage.path.display().to_string(),
        offset: damage.offset,
        section: damage.section,
        keyspace: damage.keyspace.clone(),
        message: damage.detail.clone(),
    })
}
