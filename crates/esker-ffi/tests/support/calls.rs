//! Arbitrary bytes as a sequence of calls of the C interface: right ones, and ones with NULL,
//! handles of another kind, closed databases and lengths that cannot be. What is undefined by the
//! contract of the border is left out: freed handles, foreign memory, lengths beyond the bytes.
//!
//! What should be stored is kept in maps beside it, and every answer is compared.

#![allow(unsafe_code, reason = "this is what a C program does")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract of the border is kept throughout")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use esker_ffi::esker_code::*;
use esker_ffi::*;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What keyspaces should hold, by their names; with a number that no other keyspace had.
type Model = BTreeMap<usize, (u64, Map)>;

/// The bytes, one after the other; zeros when there are no more.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: usize) -> usize {
        self.byte() as usize % end
    }

    /// A short key out of few, so that calls meet each other's.
    fn key(&mut self) -> Vec<u8> {
        let byte = self.byte();
        let len = (byte >> 6) as usize;
        (0..len).map(|place| b'a' + ((byte >> (2 * place)) & 3)).collect()
    }

    fn value(&mut self) -> Vec<u8> {
        let byte = self.byte();
        vec![byte; byte as usize % 40 * if byte.is_multiple_of(16) { 100 } else { 1 }]
    }
}

/// A database that was opened.
#[derive(Clone, Copy)]
struct Opened {
    handle: *mut esker_db,
    /// Which of the two.
    database: usize,
    /// Which opening of all.
    opening: u64,
}

/// A keyspace handle and what it stands for.
#[derive(Clone, Copy)]
struct Space {
    handle: *mut esker_keyspace,
    database: usize,
    opening: u64,
    name: usize,
    /// Which keyspace of that name: a dropped one is not the next one.
    number: u64,
}

const NAMES: [&str; 4] = ["default", "one", "two", "reverse"];

#[derive(Default)]
struct State {
    /// What each of two databases should hold.
    models: [Model; 2],
    /// How many numbers were given out.
    numbers: u64,
    databases: Vec<Opened>,
    spaces: Vec<Space>,
    snapshots: Vec<Taken>,
    iters: Vec<*mut esker_iter>,
    /// A batch and the operations in it: of which keyspace, key, value.
    batches: Vec<(*mut esker_batch, Vec<Pending>)>,
    values: Vec<(*mut esker_value, Vec<u8>)>,
    comparators: Vec<*mut esker_comparator>,
    txns: Vec<txns::Txn>,
    /// How often each database was changed.
    changed: [u64; 2],
}

/// A snapshot and what it should show.
struct Taken {
    handle: *mut esker_snapshot,
    opening: u64,
    model: Model,
}

#[derive(Clone)]
struct Pending {
    database: usize,
    opening: u64,
    name: usize,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Option<Vec<u8>>, Option<Vec<u8>>),
}

impl Change {
    /// Whether it is a range that holds no key.
    fn is_nothing(&self) -> bool {
        matches!(self, Self::DeleteRange(Some(start), Some(end)) if start >= end)
    }

    /// Whether it says what stands under a key.
    fn concerns(&self, key: &[u8]) -> bool {
        match self {
            Self::Put(own, _) | Self::Delete(own) => own == key,
            Self::DeleteRange(start, end) => {
                start.as_ref().is_none_or(|start| **start <= *key)
                    && end.as_ref().is_none_or(|end| *key < **end)
            }
        }
    }

    fn apply(&self, map: &mut Map) {
        match self {
            Self::Put(key, value) => {
                map.insert(key.clone(), value.clone());
            }
            Self::Delete(key) => {
                map.remove(key);
            }
            Self::DeleteRange(start, end) => map.retain(|key, _| {
                start.as_ref().is_some_and(|start| key < start)
                    || end.as_ref().is_some_and(|end| key >= end)
            }),
        }
    }
}

unsafe extern "C" fn reverse(
    _context: *mut c_void,
    a: *const c_char,
    a_len: usize,
    b: *const c_char,
    b_len: usize,
) -> c_int {
    let a = std::slice::from_raw_parts(a.cast::<u8>(), a_len);
    let b = std::slice::from_raw_parts(b.cast::<u8>(), b_len);
    b.cmp(a) as c_int
}

/// The place for an error, which must hold one exactly if the call failed, with the same code.
struct Told(*mut esker_error);

impl Told {
    unsafe fn check(self, code: esker_code) -> esker_code {
        assert_eq!(esker_error_code(self.0), code);
        assert_eq!(self.0.is_null(), code == ESKER_OK);
        assert_ne!(
            code,
            ESKER_PANIC,
            "{:?}",
            std::ffi::CStr::from_ptr(esker_error_message(self.0))
        );
        esker_error_free(self.0);
        code
    }
}

/// Calls a function with a place for its error, and checks what it tells.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let mut told = Told(null_mut());
        let code = $function($($argument,)* &mut told.0);
        told.check(code)
    }};
}

// Behind the macro, which they use.
#[path = "counts.rs"]
mod counts;
#[path = "txns.rs"]
mod txns;

fn bytes(data: &[u8]) -> (*const c_void, usize) {
    (data.as_ptr().cast(), data.len())
}

fn bound(data: &Option<Vec<u8>>) -> (*const c_void, usize) {
    data.as_ref().map_or((null(), 0), |data| bytes(data))
}

/// Runs the calls that `input` stands for, in a directory that is empty.
pub fn run(input: &[u8], directory: &Path) {
    let mut input = Input(input);
    let mut state = State::default();
    // SAFETY: the calls keep the contract of the border.
    unsafe {
        while !input.0.is_empty() {
            state.step(&mut input, directory);
        }
        state.end(directory);
    }
}

impl State {
    /// Some handle that is alive, of any kind.
    fn any(&self, choice: usize) -> *const c_void {
        let spaces = self.spaces.iter().map(|space| space.handle.cast::<c_void>());
        let all = self.databases.iter().map(|opened| opened.handle.cast::<c_void>());
        let all = all.chain(spaces).chain(self.snapshots.iter().map(|taken| taken.handle.cast()));
        let all = all.chain(self.iters.iter().map(|handle| handle.cast()));
        let all = all.chain(self.batches.iter().map(|(handle, _)| handle.cast()));
        let all: Vec<*mut c_void> =
            all.chain(self.values.iter().map(|(handle, _)| handle.cast())).collect();
        if all.is_empty() { null() } else { all[choice % all.len()] }
    }

    /// A call with a handle that is wrong: NULL, or of another kind, or not even aligned.
    unsafe fn wrong_call(&self, input: &mut Input) {
        let choice = input.below(16);
        let handle = match input.below(4) {
            0 => null(),
            1 => self.any(choice).wrapping_byte_add(4),
            _ => self.any(choice),
        };
        let which = input.below(17);
        fn is(mut kinds: impl Iterator<Item = *const c_void>, handle: *const c_void) -> bool {
            kinds.any(|kind| std::ptr::eq(kind, handle))
        }
        let db = is(self.databases.iter().map(|db| db.handle.cast_const().cast()), handle);
        let space = is(self.spaces.iter().map(|space| space.handle.cast_const().cast()), handle);
        let iter = is(self.iters.iter().map(|iter| iter.cast_const().cast()), handle);
        let batch = is(self.batches.iter().map(|(batch, _)| batch.cast_const().cast()), handle);
        let snapshot = is(self.snapshots.iter().map(|s| s.handle.cast_const().cast()), handle);
        let mut value = null_mut();
        let mut iter_place = null_mut();
        let mut snapshot_place = null_mut();
        let mut list = null_mut();
        let mut found = true;
        let refused = match which {
            0 if !db => call!(esker_flush(handle.cast())),
            1 if !db => call!(esker_close(handle.cast())),
            2 if !db => call!(esker_keyspaces(handle.cast(), &mut list)),
            3 if !db => call!(esker_snapshot_new(handle.cast(), &mut snapshot_place)),
            4 if !db => call!(esker_write(handle.cast(), null(), 0, null_mut())),
            5 if !space => call!(esker_put(handle.cast(), null(), 0, null(), 0, 0)),
            6 if !space => call!(esker_get(handle.cast(), null(), 0, &mut value)),
            7 if !space => call!(esker_contains(handle.cast(), null(), 0, &mut found)),
            8 if !space => {
                let place = &mut iter_place;
                call!(esker_iter_new(handle.cast(), null(), null(), 0, null(), 0, place))
            }
            9 if !iter => call!(esker_iter_next(handle.cast_mut().cast())),
            10 if !iter => call!(esker_iter_first(handle.cast_mut().cast())),
            11 if !batch => call!(esker_batch_clear(handle.cast_mut().cast())),
            12 if !snapshot => {
                let space = self.spaces.first().map_or(null_mut(), |space| space.handle);
                call!(esker_snapshot_get(handle.cast(), space, null(), 0, &mut value))
            }
            13 if !iter => {
                esker_iter_free(handle.cast_mut().cast());
                return;
            }
            14 if !db => {
                esker_db_free(handle.cast_mut().cast());
                return;
            }
            15 if !batch => {
                assert_eq!(esker_batch_len(handle.cast()), 0);
                return;
            }
            16 if !iter => {
                let mut len = 9;
                assert!(esker_iter_key(handle.cast(), &mut len).is_null() && len == 0);
                return;
            }
            _ => return,
        };
        assert_eq!(refused, ESKER_MISUSE);
        assert!(value.is_null() && iter_place.is_null() && snapshot_place.is_null());
        assert!(list.is_null());
    }

    /// A call with lengths or NULLs that cannot be.
    unsafe fn wrong_bytes(&self, input: &mut Input) {
        let Some(space) = self.spaces.last() else { return };
        let data: *const c_void = b"data".as_ptr().cast();
        let len = usize::MAX - input.below(9);
        let mut value = null_mut();
        let mut found = true;
        let refused = match input.below(10) {
            0 => call!(esker_put(space.handle, data, len, data, 1, 0)),
            1 => call!(esker_put(space.handle, null(), 1, data, 1, 0)),
            2 => call!(esker_get(space.handle, data, len, &mut value)),
            3 => call!(esker_get(space.handle, data, 1, null_mut())),
            4 => call!(esker_delete_range(space.handle, data, len, null(), 0, 0)),
            5 => call!(esker_explain_get(space.handle, data, len, &mut value)),
            6 => call!(esker_explain_scan(space.handle, data, len, null(), 0, 1, &mut value)),
            7 => call!(esker_explain_put(space.handle, data, 1, data, len, &mut value)),
            8 => call!(esker_explain_put(space.handle, data, 1, data, 1, null_mut())),
            _ => call!(esker_contains(space.handle, null(), len, &mut found)),
        };
        assert_eq!(refused, ESKER_MISUSE);
        assert!(value.is_null());
    }

    unsafe fn step(&mut self, input: &mut Input, directory: &Path) {
        match input.below(32) {
            0 => self.open(input, directory),
            1 => self.open_space(input),
            2..6 => self.write(input),
            6..9 => self.read(input),
            9 => match input.below(3) {
                0 => self.scan(input),
                1 => self.count(input),
                _ => self.remove_many(input),
            },
            10 => self.batch_new(),
            11..13 => self.batch_add(input),
            13 => self.batch_write(input),
            14 => match input.below(3) {
                0 => self.snapshot_new(input),
                _ => self.snapshot_read(input),
            },
            15 => self.iter_new(input),
            16..18 => self.iter_move(input),
            18 => self.upkeep(input),
            19 => self.drop_space(input),
            20 => self.close(input),
            21 => self.free_one(input),
            22 => self.wrong_call(input),
            23..31 => self.txn_step(input),
            _ => self.wrong_bytes(input),
        }
    }

    unsafe fn open(&mut self, input: &mut Input, directory: &Path) {
        if self.databases.len() >= 4 {
            return;
        }
        let database = input.below(2);
        let options = esker_options_new();
        for _ in 0..input.below(3) {
            // Of the values, many are none of the option's, which must be refused.
            let (option, value) = (input.below(20) as i32, u64::from(input.byte()));
            if ![3, 4, 5].contains(&option) && !(12..16).contains(&option) {
                let set = call!(esker_options_set(options, option, value));
                assert!(set == ESKER_OK || set == ESKER_INVALID_ARGUMENT);
            }
        }
        let comparator = self.comparator();
        assert_eq!(call!(esker_options_add_comparator(options, comparator)), ESKER_OK);
        let path = directory.join(database.to_string());
        let path = path.to_str().unwrap();
        let mut db = null_mut();
        let opened = call!(esker_open(path.as_ptr().cast(), path.len(), options, &mut db));
        assert_eq!(db.is_null(), opened != ESKER_OK);
        assert!(
            [ESKER_OK, ESKER_LOCKED, ESKER_INVALID_ARGUMENT].contains(&opened),
            "{opened:?} {path}"
        );
        if !db.is_null() {
            self.make(database, 0);
            let opening = self.number();
            self.databases.push(Opened { handle: db, database, opening });
        }
        esker_options_free(options);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Notes that a keyspace is there.
    fn make(&mut self, database: usize, name: usize) {
        let number = self.number();
        self.models[database].entry(name).or_insert((number, Map::new()));
    }

    fn database(&self, input: &mut Input) -> Option<Opened> {
        (!self.databases.is_empty()).then(|| self.databases[input.below(self.databases.len())])
    }

    unsafe fn comparator(&mut self) -> *mut esker_comparator {
        if let Some(comparator) = self.comparators.last() {
            return *comparator;
        }
        let mut comparator = null_mut();
        let name = c"reverse".as_ptr();
        let made = call!(esker_comparator_new(
            name,
            usize::MAX,
            Some(reverse),
            null_mut(),
            None,
            &mut comparator,
        ));
        assert_eq!(made, ESKER_OK);
        self.comparators.push(comparator);
        comparator
    }

    unsafe fn open_space(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, database, opening }) = self.database(input) else { return };
        if self.spaces.len() >= 6 {
            return;
        }
        let name = input.below(NAMES.len());
        let comparator = if name == 3 { self.comparator() } else { null_mut() };
        let mut handle = null_mut();
        let text = NAMES[name];
        let opened = call!(esker_keyspace_open(
            db,
            text.as_ptr().cast(),
            text.len(),
            comparator,
            &mut handle,
        ));
        assert!(matches!(opened, ESKER_OK | ESKER_CLOSED), "{opened:?}");
        assert_eq!(handle.is_null(), opened != ESKER_OK);
        if opened == ESKER_OK {
            self.make(database, name);
            let number = self.models[database][&name].0;
            self.spaces.push(Space { handle, database, opening, name, number });
        }
    }

    fn space(&self, input: &mut Input) -> Option<Space> {
        (!self.spaces.is_empty()).then(|| self.spaces[input.below(self.spaces.len())])
    }

    fn note(&mut self, database: usize, name: usize, change: &Change) {
        self.changed[database] += 1;
        change.apply(&mut self.models[database].get_mut(&name).unwrap().1);
    }

    fn change(input: &mut Input) -> Change {
        match input.below(4) {
            0 => Change::Delete(input.key()),
            1 if input.below(3) == 0 => {
                let some = |input: &mut Input| (input.below(4) != 0).then(|| input.key());
                Change::DeleteRange(some(input), some(input))
            }
            _ => Change::Put(input.key(), input.value()),
        }
    }

    unsafe fn write(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        // A range is cut by bytes here, so the other order is left out.
        let change = Self::change(input);
        if space.name == 3 && matches!(change, Change::DeleteRange(..)) {
            return;
        }
        let class = input.below(4) as i32;
        let done = match &change {
            Change::Put(key, value) => {
                let ((key, key_len), (value, value_len)) = (bytes(key), bytes(value));
                if input.below(4) == 0 {
                    let (space, hour) = (space.handle, 3_600_000);
                    call!(esker_put_ttl(space, key, key_len, value, value_len, hour))
                } else {
                    call!(esker_put(space.handle, key, key_len, value, value_len, class))
                }
            }
            Change::Delete(key) => {
                let (key, len) = bytes(key);
                // What expires at once was never there.
                if input.below(4) == 0 {
                    call!(esker_put_ttl(space.handle, key, len, key, len, 0))
                } else {
                    call!(esker_delete(space.handle, key, len, class))
                }
            }
            Change::DeleteRange(start, end) => {
                let ((start, start_len), (end, end_len)) = (bound(start), bound(end));
                call!(esker_delete_range(space.handle, start, start_len, end, end_len, class))
            }
        };
        if done == ESKER_OK {
            self.note(space.database, space.name, &change);
        } else {
            assert!(matches!(done, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{done:?}");
        }
    }

    unsafe fn read(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        let wanted = input.key();
        let (key, len) = bytes(&wanted);
        let expected = self.models[space.database].get(&space.name);
        let expected = expected.and_then(|(_, map)| map.get(&wanted)).cloned();
        let mut value = null_mut();
        let code = call!(esker_get(space.handle, key, len, &mut value));
        let (mut found, mut found_len) = (true, 99);
        let mut buffer = [0_u8; 16];
        let copied = call!(esker_get_copy(
            space.handle,
            key,
            len,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &mut found_len,
            &mut found,
        ));
        assert_eq!(code, copied);
        let mut json = null_mut();
        assert_eq!(call!(esker_explain_get(space.handle, key, len, &mut json)), code);
        assert_eq!(found_in(json), (code == ESKER_OK).then(|| !value.is_null()));
        esker_value_free(json);
        if code != ESKER_OK {
            assert!(matches!(code, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{code:?}");
            assert!(value.is_null() && !found && found_len == 0);
            return;
        }
        assert_eq!(found, expected.is_some());
        assert_eq!(value.is_null(), expected.is_none());
        let Some(expected) = expected else { return };
        assert_eq!(found_len, expected.len());
        let taken = found_len.min(buffer.len());
        assert_eq!(buffer[..taken], expected[..taken]);
        self.values.push((value, expected));
        if self.values.len() > 8 {
            let (value, _) = self.values.remove(0);
            esker_value_free(value);
        }
        for (value, expected) in &self.values {
            let mut len = 0;
            let data = esker_value_data(*value, &mut len);
            assert_eq!(std::slice::from_raw_parts(data.cast::<u8>(), len), expected);
        }
    }

    /// Everything in a keyspace, from either end, compared with the model.
    unsafe fn scan(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        let mut iter = null_mut();
        let made = call!(esker_iter_new(space.handle, null(), null(), 0, null(), 0, &mut iter));
        if made != ESKER_OK {
            assert!(matches!(made, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{made:?}");
            return;
        }
        let forward = input.below(2) == 0;
        let placed =
            if forward { call!(esker_iter_first(iter)) } else { call!(esker_iter_last(iter)) };
        assert_eq!(placed, ESKER_OK);
        let mut seen = Vec::new();
        while esker_iter_valid(iter) {
            let (mut key_len, mut value_len) = (0, 0);
            let key = esker_iter_key(iter, &mut key_len);
            let value = esker_iter_value(iter, &mut value_len);
            seen.push((
                std::slice::from_raw_parts(key.cast::<u8>(), key_len).to_vec(),
                std::slice::from_raw_parts(value.cast::<u8>(), value_len).to_vec(),
            ));
            let moved =
                if forward { call!(esker_iter_next(iter)) } else { call!(esker_iter_prev(iter)) };
            assert_eq!(moved, ESKER_OK);
        }
        esker_iter_free(iter);
        if forward == (space.name == 3) {
            seen.reverse();
        }
        let (_, expected) = self.models[space.database][&space.name].clone();
        assert_eq!(seen, expected.into_iter().collect::<Vec<_>>());
    }

    unsafe fn batch_new(&mut self) {
        if self.batches.len() < 3 {
            self.batches.push((esker_batch_new(), Vec::new()));
        }
    }

    unsafe fn batch_add(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        if self.batches.is_empty() {
            return;
        }
        let at = input.below(self.batches.len());
        let (batch, pending) = &mut self.batches[at];
        if input.below(12) == 0 {
            assert_eq!(call!(esker_batch_clear(*batch)), ESKER_OK);
            pending.clear();
            return;
        }
        let change = Self::change(input);
        // A range is cut by bytes here, so the other order is left out.
        if space.name == 3 && matches!(change, Change::DeleteRange(..)) {
            return;
        }
        let added = match &change {
            Change::Put(key, value) => {
                let ((key, key_len), (value, value_len)) = (bytes(key), bytes(value));
                call!(esker_batch_put(*batch, space.handle, key, key_len, value, value_len))
            }
            Change::Delete(key) => {
                let (key, len) = bytes(key);
                call!(esker_batch_delete(*batch, space.handle, key, len))
            }
            Change::DeleteRange(start, end) => {
                let ((start, start_len), (end, end_len)) = (bound(start), bound(end));
                let space = space.handle;
                call!(esker_batch_delete_range(*batch, space, start, start_len, end, end_len))
            }
        };
        assert_eq!(added, ESKER_OK);
        let Space { database, opening, name, .. } = space;
        pending.push(Pending { database, opening, name, change });
        assert_eq!(esker_batch_len(*batch), pending.len());
    }

    unsafe fn batch_write(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, opening, .. }) = self.database(input) else { return };
        if self.batches.is_empty() {
            return;
        }
        let (batch, pending) = self.batches[input.below(self.batches.len())].clone();
        let mut position = 7;
        let written = call!(esker_write(db, batch, input.below(4) as i32, &mut position));
        assert_eq!(position == 0, written != ESKER_OK || pending.is_empty());
        if pending.iter().any(|pending| pending.opening != opening) {
            // Keyspaces of another database, or of the same one when it was open before.
            assert_eq!(written, ESKER_INVALID_ARGUMENT);
        } else if written == ESKER_OK {
            for Pending { database, name, change, .. } in pending {
                self.note(database, name, &change);
            }
        } else {
            assert!(matches!(written, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{written:?}");
        }
    }

    unsafe fn snapshot_new(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, opening, database }) = self.database(input) else { return };
        if self.snapshots.len() >= 3 {
            return;
        }
        let mut handle = null_mut();
        let made = match input.below(2) {
            0 => call!(esker_snapshot_new(db, &mut handle)),
            _ => {
                let label: *const std::ffi::c_char = b"label".as_ptr().cast();
                let len = input.below(6);
                call!(esker_snapshot_new_with_label(db, label, len, &mut handle))
            }
        };
        assert!(matches!(made, ESKER_OK | ESKER_CLOSED), "{made:?}");
        if made == ESKER_OK {
            let model = self.models[database].clone();
            self.snapshots.push(Taken { handle, opening, model });
        }
    }

    unsafe fn snapshot_read(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        if self.snapshots.is_empty() {
            return;
        }
        let taken = &self.snapshots[input.below(self.snapshots.len())];
        let wanted = input.key();
        let (key, len) = bytes(&wanted);
        let mut value = null_mut();
        let code = call!(esker_snapshot_get(taken.handle, space.handle, key, len, &mut value));
        if taken.opening != space.opening {
            assert_eq!(code, ESKER_INVALID_ARGUMENT);
        } else if code == ESKER_OK {
            // A keyspace that was made later, under the same name, was empty then.
            let now = self.models[space.database][&space.name].0;
            let then = taken.model.get(&space.name).filter(|(number, _)| *number == now);
            let expected = then.and_then(|(_, map)| map.get(&wanted));
            assert_eq!(value.is_null(), expected.is_none());
            let mut len = 0;
            let data = esker_value_data(value, &mut len);
            if let Some(expected) = expected {
                assert_eq!(std::slice::from_raw_parts(data.cast::<u8>(), len), expected);
            }
        } else {
            assert!(matches!(code, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{code:?}");
        }
        let mut json = null_mut();
        let place = &mut json;
        let explained =
            call!(esker_snapshot_explain_get(taken.handle, space.handle, key, len, place));
        assert_eq!(explained, code);
        assert_eq!(found_in(json), (code == ESKER_OK).then(|| !value.is_null()));
        esker_value_free(json);
        esker_value_free(value);
    }

    unsafe fn iter_new(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        if self.iters.len() >= 4 {
            return;
        }
        let some = |input: &mut Input| (input.below(3) == 0).then(|| input.key());
        let (start, end) = (some(input), some(input));
        let ((start, start_len), (end, end_len)) = (bound(&start), bound(&end));
        let mut iter = null_mut();
        let place = &mut iter;
        let made =
            call!(esker_iter_new(space.handle, null(), start, start_len, end, end_len, place));
        assert!(matches!(made, ESKER_OK | ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{made:?}");
        assert_eq!(iter.is_null(), made != ESKER_OK);
        if made == ESKER_OK {
            self.iters.push(iter);
        }
    }

    unsafe fn iter_move(&mut self, input: &mut Input) {
        if self.iters.is_empty() {
            return;
        }
        let iter = self.iters[input.below(self.iters.len())];
        let which = input.below(6);
        let sought = input.key();
        let (key, len) = bytes(&sought);
        let moved = match which {
            0 => call!(esker_iter_first(iter)),
            1 => call!(esker_iter_last(iter)),
            2 => call!(esker_iter_seek(iter, key, len)),
            3 => call!(esker_iter_seek_back(iter, key, len)),
            4 => call!(esker_iter_next(iter)),
            _ => call!(esker_iter_prev(iter)),
        };
        let kept = call!(esker_iter_error(iter));
        assert_eq!(kept, moved);
        let mut len = 99;
        let there = !esker_iter_key(iter, &mut len).is_null();
        assert_eq!(there, esker_iter_valid(iter));
        assert!(moved == ESKER_OK || (moved == ESKER_CLOSED && !there), "{moved:?}");
    }

    unsafe fn upkeep(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, .. }) = self.database(input) else { return };
        let mut json = null_mut();
        let done = match input.below(8) {
            0 => call!(esker_flush(db)),
            1 => call!(esker_compact(db)),
            2 => call!(esker_sync(db)),
            3 => call!(esker_wait_until_idle(db)),
            4 => call!(esker_stats(db, &mut json)),
            6 => call!(esker_openmetrics(db, &mut json)),
            5 => {
                let mut problems = 9;
                let done = call!(esker_verify(db, &mut problems, &mut json));
                assert_eq!(problems, 0);
                done
            }
            _ => {
                let mut list = null_mut();
                let done = call!(esker_keyspaces(db, &mut list));
                assert_eq!(list.is_null(), done != ESKER_OK);
                esker_list_free(list);
                done
            }
        };
        assert!(matches!(done, ESKER_OK | ESKER_CLOSED), "{done:?}");
        esker_value_free(json);
    }

    unsafe fn drop_space(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, database, .. }) = self.database(input) else { return };
        let name = input.below(NAMES.len());
        let mut dropped = true;
        let text = NAMES[name];
        let code = call!(esker_drop_keyspace(db, text.as_ptr().cast(), text.len(), &mut dropped));
        match code {
            ESKER_OK => {
                self.changed[database] += 1;
                assert_eq!(dropped, self.models[database].remove(&name).is_some());
            }
            ESKER_INVALID_ARGUMENT => assert!(name == 0 && !dropped),
            other => assert!(other == ESKER_CLOSED && !dropped, "{other:?}"),
        }
    }

    unsafe fn close(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, .. }) = self.database(input) else { return };
        assert_eq!(call!(esker_close(db)), ESKER_OK);
    }

    unsafe fn free_one(&mut self, input: &mut Input) {
        let which = input.below(6);
        let choice = input.byte() as usize;
        fn take<T>(from: &mut Vec<T>, choice: usize) -> Option<T> {
            (!from.is_empty()).then(|| from.remove(choice % from.len()))
        }
        match which {
            0 => drop(take(&mut self.databases, choice).map(|db| esker_db_free(db.handle))),
            1 => drop(take(&mut self.spaces, choice).map(|s| esker_keyspace_free(s.handle))),
            2 => drop(take(&mut self.snapshots, choice).map(|s| esker_snapshot_free(s.handle))),
            3 => drop(take(&mut self.iters, choice).map(|iter| esker_iter_free(iter))),
            4 => drop(take(&mut self.batches, choice).map(|(batch, _)| esker_batch_free(batch))),
            _ => drop(take(&mut self.comparators, choice).map(|c| esker_comparator_free(c))),
        }
    }

    /// Frees everything, and looks whether the databases hold what they should.
    unsafe fn end(&mut self, directory: &Path) {
        for db in &self.databases {
            assert_eq!(call!(esker_close(db.handle)), ESKER_OK);
        }
        for (value, _) in self.values.drain(..) {
            esker_value_free(value);
        }
        while self.txn_free() {}
        while !(self.databases.is_empty()
            && self.spaces.is_empty()
            && self.snapshots.is_empty()
            && self.iters.is_empty()
            && self.batches.is_empty()
            && self.comparators.is_empty())
        {
            for which in 0..6 {
                self.free_one(&mut Input(&[which, 0]));
            }
        }
        for database in 0..2 {
            if self.models[database].is_empty() {
                continue;
            }
            self.open(&mut Input(&[database as u8, 0]), directory);
            assert_eq!(self.databases.len(), 1);
            for name in 0..NAMES.len() {
                if self.models[database].contains_key(&name) {
                    self.open_space(&mut Input(&[0, name as u8]));
                    self.scan(&mut Input(&[0, 0]));
                    self.free_one(&mut Input(&[1, 0]));
                }
            }
            self.free_one(&mut Input(&[0, 0]));
            self.free_one(&mut Input(&[5, 0]));
        }
    }
}

/// Whether an explanation says that the key was found; `None`: there is no explanation.
unsafe fn found_in(json: *const esker_value) -> Option<bool> {
    if json.is_null() {
        return None;
    }
    let mut len = 0;
    let data = esker_value_data(json, &mut len);
    let text = std::str::from_utf8(std::slice::from_raw_parts(data.cast::<u8>(), len)).unwrap();
    let found = text.contains("\"found\":true");
    assert_ne!(found, text.contains("\"found\":false"));
    Some(found)
}
