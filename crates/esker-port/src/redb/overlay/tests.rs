//! The overlay beside a plain vector of bytes.

use super::*;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn it_reads_as_a_file_would_and_the_file_stays() {
    let mut seed = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("replay with ESKER_SEED={seed}");
    let original: Vec<u8> = (0..50_000u32).map(|at| (at % 251) as u8).collect();
    let place = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(place.path(), &original).unwrap();
    let overlay = Overlay::new(File::open(place.path()).unwrap()).unwrap();
    let mut model = original.clone();
    for _ in 0..3000 {
        let offset = random(&mut seed) % 60_000;
        let len = random(&mut seed) % 9000;
        let fits = offset + len <= model.len() as u64;
        let range = offset as usize..(offset + len) as usize;
        match random(&mut seed) % 8 {
            0 => {
                let len = random(&mut seed) % 70_000;
                overlay.set_len(len).unwrap();
                model.resize(len as usize, 0);
            }
            1..=3 => {
                let data: Vec<u8> = (0..len).map(|_| random(&mut seed) as u8).collect();
                assert_eq!(overlay.write(offset, &data).is_ok(), fits);
                if fits {
                    model[range].copy_from_slice(&data);
                }
            }
            _ => {
                let mut out = vec![1; len as usize];
                assert_eq!(overlay.read(offset, &mut out).is_ok(), fits);
                if fits {
                    assert!(out == model[range]);
                }
            }
        }
        assert_eq!(overlay.len().unwrap(), model.len() as u64);
    }
    assert!(std::fs::read(place.path()).unwrap() == original);
}
