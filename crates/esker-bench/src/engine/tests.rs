//! One behaviour for all adapters: what the workloads rely on.

use super::*;

fn keys_of(session: &mut dyn Session, from: Option<&[u8]>, direction: Direction) -> Vec<Vec<u8>> {
    let mut cursor = session.cursor(from, direction).unwrap();
    let mut keys = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        assert!(!value.is_empty());
        keys.push(key.to_vec());
    }
    keys
}

fn conforms(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    let class = Durability::Process;
    for n in 0..2_500_u32 {
        session.put(format!("k{n:05}").as_bytes(), b"value", class).unwrap();
    }
    session.put(b"k00001", b"longer value", class).unwrap();
    session.delete(b"k00000", class).unwrap();
    session.batch_put(b"k90000", b"batched");
    session.batch_delete(b"k00002");
    assert_eq!(session.get(b"k90000").unwrap(), None, "a batch is invisible before its commit");
    session.batch_commit(class).unwrap();

    engine.flush().unwrap();
    assert_eq!(session.get(b"k00000").unwrap(), None);
    assert_eq!(session.get(b"k00001").unwrap(), Some(12));
    assert_eq!(session.get(b"k00002").unwrap(), None);
    assert_eq!(session.get(b"k00003").unwrap(), Some(5));
    assert_eq!(session.get(b"k90000").unwrap(), Some(7));
    let mut lengths = Vec::new();
    let asked = [b"k00001".to_vec(), b"nothing".to_vec(), b"k00003".to_vec()];
    session.multi_get(&asked, &mut |length| lengths.push(length)).unwrap();
    assert_eq!(lengths, [12, 5]);

    let mut expected: Vec<Vec<u8>> = vec![b"k00001".to_vec()];
    expected.extend((3..2_500).map(|n| format!("k{n:05}").into_bytes()));
    expected.push(b"k90000".to_vec());
    assert_eq!(keys_of(&mut *session, None, Direction::Forward), expected);
    let from = keys_of(&mut *session, Some(b"k02498x"), Direction::Forward);
    assert_eq!(from, [b"k02499".to_vec(), b"k90000".to_vec()]);
    assert_eq!(keys_of(&mut *session, Some(b"k00003"), Direction::Reverse), [b"k00003", b"k00001"]);
    expected.reverse();
    assert_eq!(keys_of(&mut *session, None, Direction::Reverse), expected);

    session.put(b"synced", b"value", Durability::Disk).unwrap();
    session.batch_put(b"synced2", b"value");
    session.batch_commit(Durability::Disk).unwrap();
    assert_eq!(session.get(b"synced2").unwrap(), Some(5));
    drop(session);
    engine.compact().unwrap();
    engine.wait_idle().unwrap();
    assert!(!engine.settings().is_empty());
}

#[test]
fn mem_conforms() {
    conforms(&mem::MemEngine::default());
}

fn open_in_fresh_directory(kind: EngineKind) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions {
        dir: &dir.path().join("db"),
        memory: Some(32 << 20),
        durability: Durability::Process,
    };
    let engine = kind.open(&options).unwrap();
    conforms(&*engine);
    engine.close().unwrap();
}

#[test]
fn esker_conforms() {
    open_in_fresh_directory(EngineKind::Esker);
}

#[cfg(feature = "peer-fjall")]
#[test]
fn fjall_conforms() {
    open_in_fresh_directory(EngineKind::Fjall);
}

#[test]
fn engines_parse() {
    assert_eq!(EngineKind::parse_list("esker, MEM").unwrap(), [EngineKind::Esker, EngineKind::Mem]);
    let error = EngineKind::parse_list("esker,oracle").unwrap_err();
    assert!(error.to_string().contains("choose from esker, mem, null, fjall"), "{error}");
}
