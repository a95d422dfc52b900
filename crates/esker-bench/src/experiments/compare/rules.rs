//! The rules of a comparison in words, for its report.
//!
//! Every report prints these sentences, so that a reader can judge the figures without knowing this
//! program. Each must be true of the code: change the sentence together with the rule.

use crate::engines::Durability;
use crate::harness::check;
use crate::harness::settings::Settings;

/// The rules that held for these settings.
pub fn of(settings: &Settings) -> Vec<String> {
    let class = match settings.durability {
        Durability::Buffered => "nothing",
        Durability::Process => "the death of the process",
        Durability::Disk => "power loss",
    };
    let mut rules = vec![
        format!("Durability: a finished write survives {class}, in every engine alike."),
        format!(
            "The same for all engines: keys, values, seeds, order of operations, and {} bytes of \
             memory, which each spends as its documentation recommends.",
            settings.memory.unwrap_or_default()
        ),
        "Each run of an engine has a process of its own and a fresh directory; CPU time, context \
         switches, device bytes and peak memory are those of that process, and of the server that \
         works for it if there is one. Before it begins, the system writes what still waits to be \
         written, so that no engine's syncs pay for the run before."
            .into(),
        "Rounds interleave the engines, and each round starts with the next one.".into(),
        "Figures are medians over rounds, with the lowest and the highest. A difference is called \
         faster or slower only if the rounds do not overlap and the medians differ by more than the \
         wider spread; otherwise it is a tie. One round has no spread and calls nothing."
            .into(),
    ];
    rules.push(warming(settings));
    rules.push(checking(settings));
    rules.push(format!(
        "An engine without cheap single writes is shown in batches of {}, where others write one by \
         one; its row says so, and it is not compared with them.",
        settings.batch_instead
    ));
    if let Some(duration) = settings.duration {
        rules.push(format!(
            "Steps that could go on for ever last {} s. A step that writes a given number of keys runs \
             to its end, however long it takes, so that every engine is asked for the same keys.",
            duration.as_secs_f64()
        ));
    }
    if let Some(limit) = settings.memory_limit {
        rules.push(format!(
            "The process of a run may use {limit} bytes of memory, the system's cache of its files \
             included (a control group)."
        ));
    }
    rules
}

fn warming(settings: &Settings) -> String {
    let cache = if settings.drop_caches {
        "the system's cache of files is emptied before each step, the engine's own is not"
    } else {
        "nothing is emptied"
    };
    format!(
        "Caches: no step is warmed up. Steps run in the order of the list on one database and find the \
         caches as the step before left them; {cache}. Every step draws its own keys, so that none \
         replays those of another."
    )
}

fn checking(settings: &Settings) -> String {
    let cost = check::cost_ns(settings.key_size, settings.value_size);
    format!(
        "Results: the XXH3 hashes of all keys and values that a step returned are summed; the sum \
         must be the same for all engines of a round. It costs {cost:.0} ns for an entry, the same for \
         all. After steps that return nothing, or that time ends, or beside which a writer runs, a \
         sample is read and scanned, untimed, and compared with what was written."
    )
}
