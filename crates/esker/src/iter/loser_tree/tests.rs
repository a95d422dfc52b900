use super::*;
use crate::base::Bytewise;
use crate::iter::testing::*;

fn build<O: TestOrder>(
    random: &mut Random,
    sources: usize,
    entries: u64,
    fuse: &Fuse,
) -> (LoserTree<VecCursor<O>, O>, Vec<Entry>) {
    let mut lists = vec![Vec::new(); sources];
    for seq in 1..=entries {
        let key = random.key(30);
        lists[random.below(sources as u64) as usize].push(Entry::put(&key, seq, b"v"));
    }
    let mut all: Vec<Entry> = lists.iter().flatten().cloned().collect();
    all.sort_by(|a, b| cursor_order(&O::make(), a, b));
    let cursors = lists.into_iter().map(|list| VecCursor::new(O::make(), list, fuse)).collect();
    (LoserTree::new(O::make(), cursors), all)
}

fn assert_at<C: Cursor, O: KeyOrder>(
    tree: &LoserTree<C, O>,
    all: &[Entry],
    at: Option<usize>,
    order: &O,
) {
    assert_eq!(tree.valid(), at.is_some());
    if let Some(at) = at {
        assert_eq!((tree.key(), tree.seq()), (all[at].key.as_slice(), all[at].seq));
        assert_eq!((tree.kind(), tree.value()), (all[at].kind, all[at].value.as_slice()));
        assert_eq!(tree.long_head(), order.long_head(&all[at].key));
        assert_eq!(tree.peek(), Some((tree.key(), tree.seq(), tree.kind())));
    }
}

fn random_walk<O: TestOrder>() {
    let mut random = Random::from_env();
    let order = O::make();
    for round in 0..200 {
        let (sources, count) = ((round % 9) as usize + 1, random.below(60));
        let (mut tree, all) = build::<O>(&mut random, sources, count, &long_fuse());
        let mut at: Option<usize> = None;
        for _ in 0..120 {
            match random.below(12) {
                0 => {
                    tree.seek_to_first().expect("no fuse");
                    at = (!all.is_empty()).then_some(0);
                }
                1 => {
                    tree.seek_to_last().expect("no fuse");
                    at = all.len().checked_sub(1);
                }
                2 => {
                    let (key, below) = (random.key(32), random.below(count + 2));
                    tree.seek(&key, below).expect("no fuse");
                    at = all.iter().position(|entry| {
                        let ordering = order.compare(&entry.key, &key);
                        ordering.is_gt() || (ordering.is_eq() && entry.seq < below)
                    });
                }
                3 => {
                    let key = random.key(32);
                    tree.seek_before(&key).expect("no fuse");
                    at = all.iter().rposition(|entry| order.compare(&entry.key, &key).is_lt());
                }
                move_number => {
                    let Some(old) = at else { continue };
                    if move_number % 2 == 0 {
                        tree.next().expect("no fuse");
                        at = Some(old + 1).filter(|at| *at < all.len());
                    } else {
                        tree.prev().expect("no fuse");
                        at = old.checked_sub(1);
                    }
                }
            }
            assert_at(&tree, &all, at, &order);
        }
    }
}

#[test]
fn walks_like_one_sorted_list_bytewise() {
    random_walk::<Bytewise>();
}

#[test]
fn walks_like_one_sorted_list_in_a_custom_order() {
    random_walk::<Descending>();
}

#[test]
fn no_cursors_and_empty_cursors() {
    let mut tree = LoserTree::<VecCursor<Bytewise>, _>::new(Bytewise, Vec::new());
    tree.seek_to_first().expect("nothing can fail");
    assert!(!tree.valid());
    let empty = || VecCursor::new(Bytewise, Vec::new(), &long_fuse());
    let mut tree = LoserTree::new(Bytewise, vec![empty(), empty(), empty()]);
    tree.seek_to_last().expect("nothing can fail");
    assert!(!tree.valid());
    tree.next().expect("an invalid tree stays where it is");
}

#[test]
fn keys_with_the_greatest_head_are_not_taken_for_the_end() {
    let key = [0xff; 8];
    let cursors = vec![
        VecCursor::new(Bytewise, Vec::new(), &long_fuse()),
        VecCursor::new(Bytewise, vec![Entry::put(&key, 1, b"")], &long_fuse()),
        VecCursor::new(Bytewise, vec![Entry::put(b"", 2, b"")], &long_fuse()),
    ];
    let mut tree = LoserTree::new(Bytewise, cursors);
    tree.seek_to_first().expect("no fuse");
    assert_eq!(tree.key(), b"");
    tree.next().expect("no fuse");
    assert_eq!(tree.key(), key);
    tree.prev().expect("no fuse");
    assert_eq!(tree.key(), b"");
    tree.prev().expect("no fuse");
    assert!(!tree.valid());
}

#[test]
fn an_error_stays_until_the_tree_is_positioned_anew() {
    let mut random = Random::from_env();
    let mut fired = 0;
    for burn in 0..60 {
        let fuse = long_fuse();
        let (mut tree, all) = build::<Bytewise>(&mut random, 3, 40, &fuse);
        fuse.set(burn);
        let mut seen = 0;
        let mut walk = || -> Result<()> {
            tree.seek_to_first()?;
            while tree.valid() {
                seen += 1;
                tree.next()?;
            }
            Ok(())
        };
        if walk().is_ok() {
            assert_eq!(seen, all.len());
            continue;
        }
        fired += 1;
        assert!(!tree.valid());
        assert!(tree.next().is_err() && tree.prev().is_err() && tree.check().is_err());
        fuse.set(u64::MAX);
        assert!(tree.next().is_err(), "only a new position ends an error");
        tree.seek_to_last().expect("the fuse was renewed");
        assert_at(&tree, &all, Some(all.len() - 1), &Bytewise);
    }
    assert!(fired > 30, "only {fired} faults fired");
}

#[test]
fn a_leap_moves_only_the_eligible_cursors() {
    let list = |keys: &[&str], seq| {
        let entries = keys.iter().map(|key| Entry::put(key.as_bytes(), seq, b"")).collect();
        VecCursor::new(Bytewise, entries, &long_fuse())
    };
    let mut tree =
        LoserTree::new(Bytewise, vec![list(&["a", "c", "e", "g"], 1), list(&["b", "d", "h"], 2)]);
    let walk = |tree: &mut LoserTree<_, _>, backward: bool| {
        let mut keys = String::new();
        while tree.valid() {
            keys.push_str(std::str::from_utf8(tree.key()).expect("the keys are letters"));
            if backward { tree.prev() } else { tree.next() }.expect("no fuse");
        }
        keys
    };
    for (limit, expected) in [(Some(b"f".as_slice()), "bdgh"), (None, "bdh")] {
        tree.seek_to_first().expect("no fuse");
        tree.leap(limit, |source| source == 0).expect("no fuse");
        assert_eq!(walk(&mut tree, false), expected);
    }
    for (limit, expected) in [(Some(b"d".as_slice()), "hdcba"), (None, "hdb")] {
        tree.seek_to_last().expect("no fuse");
        tree.leap(limit, |source| source == 0).expect("no fuse");
        assert_eq!(walk(&mut tree, true), expected);
    }
}
