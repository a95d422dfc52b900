//! smoke
use esker::{Db, Options};
use std::collections::BTreeMap;

fn rng(x: &mut u64) -> u64 {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    *x
}

#[test]
fn model() {
    for seed in 1..6u64 {
        let dir = tempfile::tempdir().unwrap();
        let mut x = seed * 7919;
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let opts = || {
            let mut o = Options::default();
            o.memory = Some(4 << 20);
            o.memtable_bytes = Some(16 << 10);
            o.partition_bytes = 32 << 10;
            o.segment_bytes = 4 << 10;
            o.block_bytes = 512;
            o.log_segment_bytes = 64 << 10;
            o
        };
        let mut db = Db::open_with(dir.path().join("db"), opts()).unwrap();
        for i in 0..40_000u64 {
            let k = format!("key{:05}", rng(&mut x) % 3000).into_bytes();
            match rng(&mut x) % 100 {
                0..=69 => {
                    let v = format!("value{i}").into_bytes();
                    db.insert(&k, &v).unwrap();
                    model.insert(k, v);
                }
                70..=84 => {
                    db.remove(&k).unwrap();
                    model.remove(&k);
                }
                85 if i % 7 == 0 => {
                    let e = format!("key{:05}", rng(&mut x) % 3000).into_bytes();
                    if k < e {
                        db.remove_range(k.clone()..e.clone()).unwrap();
                        let ks: Vec<_> = model.range(k..e).map(|(k, _)| k.clone()).collect();
                        for k in ks {
                            model.remove(&k);
                        }
                    }
                }
                86..=97 => assert_eq!(
                    db.get(&k).unwrap(),
                    model.get(&k).cloned(),
                    "seed {seed} op {i} {k:?}"
                ),
                98 if i % 50 == 0 => {
                    let got: Vec<_> = db.iter().unwrap().map(|e| e.unwrap()).collect();
                    let want: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                    assert_eq!(got.len(), want.len(), "seed {seed} op {i}");
                    assert!(got == want);
                    let got: Vec<_> = db.iter().unwrap().rev().map(|e| e.unwrap()).collect();
                    assert!(got.into_iter().rev().collect::<Vec<_>>() == want);
                }
                99 if i % 40 == 0 => {
                    db.close().unwrap();
                    drop(db);
                    db = Db::open_with(dir.path().join("db"), opts()).unwrap();
                }
                _ => {}
            }
        }
        db.wait_until_idle().unwrap();
        let r = db.verify().unwrap();
        assert!(r.problems.is_empty(), "{:?}", r.problems);
        db.compact().unwrap();
        let got: Vec<_> = db.iter().unwrap().map(|e| e.unwrap()).collect();
        let want: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert!(got == want);
        eprintln!("{:#?}", db.stats());
        db.close().unwrap();
    }
}
