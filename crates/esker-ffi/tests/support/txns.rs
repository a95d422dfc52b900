//! Transactions and conditional writes among the calls, against the same model.
//!
//! A transaction reads the model as it was when it began, with its own writes on top. A commit may
//! be refused for a conflict only if somebody wrote since the begin; if it succeeds, everything that
//! was read must still stand in the model, which is what serializable means for one thread.

use super::*;

/// A transaction and what it should see.
pub struct Txn {
    handle: *mut esker_txn,
    database: usize,
    opening: u64,
    /// What it sees; keyspaces that are made later are added as they are met, empty.
    model: Model,
    /// What it wrote: to which keyspace, by name and number.
    changes: Vec<(usize, u64, Change)>,
    /// What it read of others.
    reads: Vec<Seen>,
    /// How much the database had been changed when it began.
    changed: u64,
    /// What the model was at each savepoint, and how many changes there were.
    savepoints: Vec<(u64, Model, usize)>,
    ended: bool,
}

/// A key of a keyspace, by name and number, and its value.
type Seen = (usize, u64, Vec<u8>, Option<Vec<u8>>);

impl State {
    pub(super) unsafe fn txn_step(&mut self, input: &mut Input) {
        match input.below(8) {
            0 => self.txn_begin(input),
            1 | 2 => self.txn_read(input),
            3 | 4 => self.txn_write(input),
            5 => self.txn_end(input),
            6 => self.txn_savepoint(input),
            _ => self.conditional(input),
        }
    }

    unsafe fn txn_begin(&mut self, input: &mut Input) {
        let Some(Opened { handle: db, opening, database }) = self.database(input) else { return };
        if self.txns.len() >= 3 {
            return;
        }
        let mut handle = null_mut();
        let class = input.below(4) as i32;
        // Locks are waited for for a millisecond: nobody gives them up meanwhile.
        let begun = match input.below(3) {
            0 => call!(esker_txn_begin_locking(db, class, 1, &mut handle)),
            _ => call!(esker_txn_begin(db, class, &mut handle)),
        };
        assert!(matches!(begun, ESKER_OK | ESKER_CLOSED), "{begun:?}");
        assert_eq!(handle.is_null(), begun != ESKER_OK);
        if begun == ESKER_OK {
            self.txns.push(Txn {
                handle,
                database,
                opening,
                model: self.models[database].clone(),
                changes: Vec::new(),
                reads: Vec::new(),
                changed: self.changed[database],
                savepoints: Vec::new(),
                ended: false,
            });
        }
    }

    /// A transaction and a keyspace, with the keyspace's number.
    fn txn_and_space(&self, input: &mut Input) -> Option<(usize, Space, u64)> {
        let space = self.space(input)?;
        if self.txns.is_empty() {
            return None;
        }
        Some((input.below(self.txns.len()), space, space.number))
    }

    /// Whether a refusal is one that the state explains.
    fn txn_refused(&self, at: usize, space: Option<Space>, code: esker_code) {
        let txn = &self.txns[at];
        let foreign = space.is_some_and(|space| space.opening != txn.opening);
        let explained = match code {
            ESKER_MISUSE => txn.ended,
            // A closed database is told before a foreign keyspace, and one that was dropped, too.
            ESKER_INVALID_ARGUMENT => foreign,
            ESKER_CLOSED | ESKER_KEYSPACE_DROPPED | ESKER_LOCK_TIMEOUT | ESKER_DEADLOCK => true,
            _ => false,
        };
        assert!(explained, "{code:?}");
    }

    unsafe fn txn_read(&mut self, input: &mut Input) {
        let Some((at, space, number)) = self.txn_and_space(input) else { return };
        let wanted = input.key();
        let (key, len) = bytes(&wanted);
        let handle = self.txns[at].handle;
        let mut value = null_mut();
        let mode = input.below(4);
        let code = match mode {
            0 => call!(esker_txn_get_for_update(handle, space.handle, key, len, &mut value)),
            1 => call!(esker_txn_get_for_share(handle, space.handle, key, len, &mut value)),
            _ => call!(esker_txn_get(handle, space.handle, key, len, &mut value)),
        };
        if code != ESKER_OK {
            assert!(value.is_null());
            self.txn_refused(at, Some(space), code);
            return;
        }
        let mut len = 0;
        let data = esker_value_data(value, &mut len);
        let found =
            (!value.is_null()).then(|| std::slice::from_raw_parts(data.cast::<u8>(), len).to_vec());
        esker_value_free(value);
        let txn = &mut self.txns[at];
        let seen = txn.model.get(&space.name).filter(|(same, _)| *same == number);
        let seen = seen.and_then(|(_, map)| map.get(&wanted).cloned());
        let own = txn.changes.iter().any(|(name, same, change)| {
            *name == space.name && *same == number && change.concerns(&wanted)
        });
        // Under its lock a key is read as it stands, and one that locks begins to read late.
        if found != seen {
            assert!(!own, "its own write is seen: {found:?} {seen:?} {wanted:?} {:?}", txn.changes);
            assert_ne!(txn.changed, self.changed[space.database], "nobody wrote since");
        }
        if !own {
            txn.reads.push((space.name, number, wanted, found));
        }
    }

    unsafe fn txn_write(&mut self, input: &mut Input) {
        let Some((at, space, number)) = self.txn_and_space(input) else { return };
        let change = Self::change(input);
        if space.name == 3 && matches!(change, Change::DeleteRange(..)) {
            return;
        }
        let handle = self.txns[at].handle;
        let ttl = input.below(4) == 0;
        let done = match &change {
            Change::Put(key, value) => {
                let ((key, key_len), (value, value_len)) = (bytes(key), bytes(value));
                if ttl {
                    let hour = 3_600_000;
                    let (txn, space) = (handle, space.handle);
                    call!(esker_txn_put_ttl(txn, space, key, key_len, value, value_len, hour))
                } else {
                    call!(esker_txn_put(handle, space.handle, key, key_len, value, value_len))
                }
            }
            Change::Delete(key) => {
                let (key, len) = bytes(key);
                call!(esker_txn_delete(handle, space.handle, key, len))
            }
            Change::DeleteRange(start, end) => {
                let ((start, start_len), (end, end_len)) = (bound(start), bound(end));
                let (txn, space) = (handle, space.handle);
                call!(esker_txn_delete_range(txn, space, start, start_len, end, end_len))
            }
        };
        if done != ESKER_OK {
            self.txn_refused(at, Some(space), done);
            return;
        }
        let txn = &mut self.txns[at];
        let (same, map) = txn.model.entry(space.name).or_insert_with(|| (number, Map::new()));
        if *same != number {
            (*same, *map) = (number, Map::new());
        }
        change.apply(map);
        txn.changes.push((space.name, number, change));
    }

    unsafe fn txn_savepoint(&mut self, input: &mut Input) {
        if self.txns.is_empty() {
            return;
        }
        let at = input.below(self.txns.len());
        let choice = input.byte() as usize;
        let txn = &mut self.txns[at];
        if choice.is_multiple_of(2) || txn.savepoints.is_empty() {
            let mut point = 77;
            let code = call!(esker_txn_savepoint(txn.handle, &mut point));
            if code == ESKER_OK {
                txn.savepoints.push((point, txn.model.clone(), txn.changes.len()));
            } else {
                self.txn_refused(at, None, code);
            }
            return;
        }
        let chosen = choice / 2 % txn.savepoints.len();
        let (point, model, changes) = txn.savepoints[chosen].clone();
        let code = call!(esker_txn_rollback_to(txn.handle, point));
        if code == ESKER_OK {
            txn.model = model;
            txn.changes.truncate(changes);
            // Later ones are gone, as going back to them tells.
            for (point, _, _) in txn.savepoints.drain(chosen + 1..) {
                let code = call!(esker_txn_rollback_to(txn.handle, point));
                assert_eq!(code, ESKER_INVALID_ARGUMENT);
            }
        } else {
            self.txn_refused(at, None, code);
        }
    }

    unsafe fn txn_end(&mut self, input: &mut Input) {
        if self.txns.is_empty() {
            return;
        }
        let at = input.below(self.txns.len());
        let handle = self.txns[at].handle;
        match input.below(6) {
            0 => {
                esker_txn_free(handle);
                self.txns.remove(at);
            }
            1 => {
                let code = call!(esker_txn_rollback(handle));
                if code != ESKER_OK {
                    self.txn_refused(at, None, code);
                }
                self.txns[at].ended = true;
            }
            _ => self.txn_commit(at),
        }
    }

    unsafe fn txn_commit(&mut self, at: usize) {
        let txn = &mut self.txns[at];
        let was_ended = std::mem::replace(&mut txn.ended, true);
        let mut position = 7;
        let code = call!(esker_txn_commit(txn.handle, &mut position));
        let now = &self.models[txn.database];
        match code {
            ESKER_OK => {
                assert!(!was_ended);
                for (name, number, key, value) in &txn.reads {
                    let space = now.get(name).filter(|(same, _)| same == number);
                    let stands = space.and_then(|(_, map)| map.get(key));
                    // What only reads is as of its begin, and commits whatever came later.
                    assert!(txn.changes.is_empty() || stands == value.as_ref(), "{name} {key:?}");
                }
                let (database, changes) = (txn.database, std::mem::take(&mut txn.changes));
                // What is removed between a key and an earlier one is nothing.
                let nothing = changes.iter().all(|(_, _, change)| change.is_nothing());
                assert_eq!(position == 0, nothing, "{changes:?}");
                for (name, number, change) in &changes {
                    assert_eq!(self.models[database].get(name).map(|space| space.0), Some(*number));
                    self.note(database, *name, change);
                }
            }
            ESKER_CONFLICT => {
                assert!(!was_ended && position == 0);
                assert!(!txn.reads.is_empty(), "what reads nothing conflicts with nobody");
                assert_ne!(txn.changed, self.changed[txn.database], "nobody wrote since");
            }
            ESKER_MISUSE => assert!(was_ended),
            other => {
                assert!(matches!(other, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{other:?}");
                assert!(!was_ended);
            }
        }
    }

    /// Writes that look first: compare-and-set, insert-if-absent, update.
    unsafe fn conditional(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        let (wanted, new) = (input.key(), input.value());
        let stands = self.models[space.database].get(&space.name);
        let stands = stands.and_then(|(_, map)| map.get(&wanted)).cloned();
        let ((key, len), (value, value_len)) = (bytes(&wanted), bytes(&new));
        let mut done = true;
        let (code, expected_done, after) = match input.below(4) {
            0 => {
                let to = &mut done;
                let code =
                    call!(esker_insert_if_absent(space.handle, key, len, value, value_len, to));
                (code, stands.is_none(), Some(new))
            }
            1 => {
                let (expected, expected_len) = bound(&stands);
                let (to, handle) = (&mut done, space.handle);
                let none = null();
                let code = call!(esker_compare_and_set(
                    handle,
                    key,
                    len,
                    expected,
                    expected_len,
                    none,
                    0,
                    to
                ));
                (code, true, None)
            }
            2 => {
                let (to, handle) = (&mut done, space.handle);
                let code = call!(esker_compare_and_set(
                    handle, key, len, value, value_len, value, value_len, to
                ));
                (code, stands.as_ref() == Some(&new), Some(new))
            }
            _ => {
                let mut updated = null_mut();
                let place = &mut updated;
                let (change, context) = (Some(longer as _), null_mut());
                let code = call!(esker_update(space.handle, key, len, change, context, place));
                let mut after = stands.unwrap_or_default();
                after.push(b'+');
                if code == ESKER_OK {
                    let mut len = 0;
                    let data = esker_value_data(updated, &mut len);
                    assert_eq!(std::slice::from_raw_parts(data.cast::<u8>(), len), after);
                }
                esker_value_free(updated);
                (code, true, Some(after))
            }
        };
        if code != ESKER_OK {
            assert!(matches!(code, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{code:?}");
            return;
        }
        assert!(done == expected_done);
        if done {
            let change = match after {
                Some(value) => Change::Put(wanted, value),
                None => Change::Delete(wanted),
            };
            self.note(space.database, space.name, &change);
        }
    }

    /// Frees one transaction; whether there was one.
    pub(super) unsafe fn txn_free(&mut self) -> bool {
        let txn = self.txns.pop();
        txn.map(|txn| esker_txn_free(txn.handle)).is_some()
    }
}

/// Adds a plus sign.
unsafe extern "C" fn longer(
    _context: *mut c_void,
    existing: *const c_char,
    existing_len: usize,
    sink: *mut esker_sink,
) {
    let mut value = Vec::new();
    if !existing.is_null() {
        value.extend(std::slice::from_raw_parts(existing.cast::<u8>(), existing_len));
    }
    value.push(b'+');
    assert_eq!(esker_sink_put(sink, value.as_ptr().cast(), value.len()), ESKER_OK);
}
