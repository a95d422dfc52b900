use super::answer::Answer;
use super::clock::{Clock, Question};
use super::load::{Load, Mix, Run, World, compacted, merged};
use super::seen::Random;
use super::tree::{Part, Tree};
use esker::internals::compaction::policy;

const FLUSH: f64 = 1e6;

fn question(load: Load, ratio: f64) -> Question {
    Question {
        load,
        ratio,
        flush_bytes: FLUSH,
        rate: 1e8,
        workers: 2,
        speed: 1.5e8,
        flat: false,
        warm: 1.0,
        measured: 1.0,
        seed: 1,
    }
}

const LOADS: [Load; 7] = [
    Load::Uniform,
    Load::Skewed,
    Load::Ascending,
    Load::Insert,
    Load::Fill,
    Load::Delete,
    Load::Mixed,
];

/// Checks the rules of a tree.
fn check(tree: &Tree) {
    for (row, parts) in tree.rows.iter().enumerate() {
        assert_eq!(parts[0].from, f64::NEG_INFINITY);
        assert_eq!(parts[parts.len() - 1].to, f64::INFINITY);
        for pair in parts.windows(2) {
            assert!(pair[0].to == pair[1].from && pair[0].from < pair[0].to, "row {row}: {pair:?}");
        }
        for part in parts {
            let inside = |run: &Run| run.from >= part.from && run.to <= part.to;
            assert!(part.runs.iter().all(inside), "row {row}: {part:?}");
            assert!(row == 0 || part.base.is_none());
            let is_bound = |below: &Vec<Part>| below.iter().any(|below| below.from == part.from);
            assert!(row == 0 || is_bound(&tree.rows[row - 1]), "row {row}: {part:?}");
        }
    }
}

#[test]
fn bytes_are_conserved_and_bounds_nest() {
    for load in LOADS {
        let mut clock = Clock::new(question(load, 200.0));
        let begun = clock.tree.bytes;
        for _ in 0..8 {
            clock.write(40.0 * FLUSH, |_| false);
            check(&clock.tree);
            let tree = &clock.tree;
            let counted: f64 = tree.rows.iter().flatten().map(Part::bytes).sum();
            assert!((counted - tree.bytes).abs() < 1.0, "{load:?}: {counted} {}", tree.bytes);
            // What was flushed is there, or was dropped by a push or a compaction.
            let seen = &clock.seen;
            let left = begun + seen.flushes - seen.dropped;
            let off = (left - tree.bytes).abs() / tree.bytes;
            assert!(off < 1e-6, "{load:?}: {left} is left, {} is there", tree.bytes);
        }
    }
}

#[test]
fn no_path_grows_beyond_its_bound() {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ESKER_SEED={seed}");
    let mut random = Random(seed);
    for _ in 0..24 {
        let load = LOADS[(random.unit() * LOADS.len() as f64) as usize];
        let asked = Question {
            ratio: 10_f64.powf(1.0 + 2.2 * random.unit()).round(),
            workers: 1 + (random.unit() * 4.0) as usize,
            speed: 2e7 + 3e8 * random.unit(),
            rate: 1e9 * random.unit() + 1e6,
            ..question(load, 0.0)
        };
        let mut clock = Clock::new(asked);
        for _ in 0..16 {
            clock.write(0.1 * asked.ratio * FLUSH, |_| false);
            let tree = &clock.tree;
            let bound = policy::runs_bound(tree.tiers(), tree.runs_max);
            assert!(tree.deepest() <= bound, "{asked:?}: {} of {bound}", tree.deepest());
            let end = clock.world.end;
            for _ in 0..200 {
                let key = random.unit() * end;
                assert!(tree.runs_over(key) <= tree.deepest(), "{asked:?} at {key}");
            }
        }
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    let answers = || super::answer::answer(question(Load::Uniform, 150.0), false).cells();
    assert_eq!(answers(), answers());
    assert_ne!(answers(), super::answer::answer(question(Load::Uniform, 300.0), false).cells());
}

#[test]
fn without_tiers_a_byte_is_rewritten_for_each_nine_flushes() {
    let flat = Question { flat: true, rate: 1e6, ..question(Load::Uniform, 200.0) };
    let answer = super::answer::answer(flat, true);
    assert_eq!(answer.tiers, 0);
    // One flush, and a base for nine deltas.
    let expected = 1.0 + 200.0 / 9.0;
    assert!((answer.amplification - expected).abs() < 1.0, "{answer:?}");
}

#[test]
fn tiers_keep_what_was_promised() {
    let keeps = |answer: &Answer, amplification: f64, runs: [f64; 2], space: f64| {
        assert!(answer.amplification <= amplification, "{answer:?}");
        assert!(answer.runs[0] <= runs[0] + 0.6 && answer.runs[1] <= runs[1] + 1.0, "{answer:?}");
        assert!(answer.space[0] <= space && answer.space[1] <= space + 0.15, "{answer:?}");
    };
    let both = |ratio| {
        let full = super::answer::answer(question(Load::Uniform, ratio), false);
        let calm = Question { rate: full.rate / 10.0, ..question(Load::Uniform, ratio) };
        (full, super::answer::answer(calm, true))
    };
    // Bytes written for a byte, runs over a key, and space: the targets. A tree without tiers may
    // have a burst of runs at full speed.
    let (full, calm) = both(30.0);
    keeps(&full, 5.0, [14.0, policy::RUNS_BURST as f64], 1.45);
    keeps(&calm, 5.0, [6.0, 10.0], 1.2);
    let (full, calm) = both(300.0);
    keeps(&full, 6.3, [9.0, 17.0], 1.3);
    keeps(&calm, 6.3, [9.0, 17.0], 1.3);
    let ascending = super::answer::answer(question(Load::Ascending, 300.0), false);
    assert!(ascending.amplification <= 1.1, "{ascending:?}");
}

#[test]
fn runs_are_merged_as_independent_draws() {
    let world = World::new(116.0 * 1_000.0);
    let run = |over, fresh, dead| Run { from: 0.0, to: 1.0, mix: [Mix { over, fresh, dead }; 2] };
    let both = merged(&[run(500.0, 10.0, 0.0), run(500.0, 20.0, 5.0)], &world);
    let mix = Mix { over: 750.0, fresh: 30.0, dead: 5.0 };
    assert_eq!(both.mix, [mix; 2]);
    // Half of the keys have half of the entries.
    let half = Run { to: 0.2, ..run(500.0, 0.0, 0.0) };
    assert_eq!(merged(&[half], &world).bytes(&world), half.bytes(&world));
    let out = compacted(Some(world.base()), &[both], &world);
    assert_eq!(out.mix[0], Mix { over: 1_025.0, ..Mix::default() });
    assert_eq!(compacted(None, &[both], &world).mix[1], Mix { over: 780.0, ..Mix::default() });
    assert!(both.part(2.0, 3.0).is_empty());
}
