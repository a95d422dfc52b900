//! An explanation as text of several lines.

use super::explanation::{BlockCounts, Explanation, Outcome, Step, StepSource};
use std::fmt;

impl fmt::Display for StepSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memtable { number, of, sealed } => {
                let sealed = if sealed { ", sealed" } else { "" };
                write!(f, "memtable {number} of {of}{sealed}")
            }
            Self::Run { tier, partition, age, file, segment } => {
                match (tier, age) {
                    (0, 0) => write!(f, "partition {partition}, base")?,
                    (0, age) => write!(f, "partition {partition}, delta {age}")?,
                    (tier, age) => write!(f, "tier {tier}, span {partition}, run {age}")?,
                }
                match (file, segment) {
                    (Some(file), Some(segment)) => write!(f, ", file {file} at {segment}"),
                    _ => Ok(()),
                }
            }
            Self::Operands => f.write_str("operands of all sources"),
            Self::Admission => f.write_str("admission"),
            Self::Reservation => f.write_str("reservation"),
            Self::Log => f.write_str("copy to the log"),
            Self::Apply => f.write_str("insertion into the memtable"),
            Self::Publication => f.write_str("publication"),
            Self::Sync => f.write_str("sync of the log"),
        }
    }
}

/// What a reader of a report understands without the glossary.
fn sentence(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Found => "found",
        Outcome::Deleted => "deleted here",
        Outcome::RangeDeleted => "hidden by a range tombstone here",
        Outcome::Expired => "expired",
        Outcome::Operand => "an operand: older values are needed too",
        Outcome::OutsideSegments => "key outside its segments",
        Outcome::FilterAbsent => "filter says absent",
        Outcome::FalsePositive => "filter was wrong: not there",
        Outcome::Absent => "not there",
        Outcome::NotReached => "not reached",
        Outcome::Done => "done",
    }
}

impl fmt::Display for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cached, page_cache, device } = self;
        write!(f, "{cached} cached, {page_cache} from the page cache, {device} from the device")
    }
}

fn uses(step: &Step) -> String {
    let mut uses = String::new();
    if step.blocks != BlockCounts::default() {
        uses += &format!("; blocks: {}", step.blocks);
    }
    if step.bytes_read > 0 {
        uses += &format!("; {} bytes read", step.bytes_read);
    }
    if step.entries > 0 {
        uses += &format!("; {} entries", step.entries);
    }
    uses
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = match (self.operation, self.found) {
            ("get", true) => ", found",
            ("get", false) => ", not found",
            _ => "",
        };
        writeln!(f, "{} in keyspace {}{found}: {:?}", self.operation, self.keyspace, self.time)?;
        if self.operation == "scan" {
            writeln!(f, "  {} entries, {} stepped over", self.entries, self.stepped_over)?;
        }
        for step in &self.steps {
            write!(f, "  {}: {}", step.source, sentence(step.outcome))?;
            if step.outcome != Outcome::NotReached {
                write!(f, "; {:?}{}", step.time, uses(step))?;
            }
            writeln!(f)?;
        }
        for wait in &self.waits {
            writeln!(f, "  waited for {}: {:?}", wait.cause.as_str(), wait.time)?;
        }
        write!(f, "  blocks: {}; {} bytes read", self.blocks, self.bytes_read)
    }
}
