//! Calls that count entries, and those that remove many at once.

use super::*;

impl State {
    /// The entries of a range, counted and estimated, and keys that part it.
    pub(super) unsafe fn count(&self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        let some = |input: &mut Input| (input.below(3) == 0).then(|| input.key());
        // A range is cut by bytes here, so the other order has none.
        let range = if space.name == 3 { (None, None) } else { (some(input), some(input)) };
        let ((start, start_len), (end, end_len)) = (bound(&range.0), bound(&range.1));
        let handle = space.handle;
        let mut exact = 7;
        let code = call!(esker_count(handle, start, start_len, end, end_len, &mut exact));
        let (mut about, mut deviation) = (7, 7);
        let place = &mut about;
        let estimated = call!(esker_approximate_count(
            handle,
            start,
            start_len,
            end,
            end_len,
            place,
            &mut deviation,
        ));
        let mut list = null_mut();
        let parts = input.below(5);
        let parted =
            call!(esker_split_points(handle, start, start_len, end, end_len, parts, &mut list));
        assert_eq!(list.is_null(), parted != ESKER_OK);
        assert_eq!(code, estimated);
        if code != ESKER_OK {
            assert!(matches!(code, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED), "{code:?}");
            assert_eq!((exact, about), (0, 0));
            return;
        }
        assert!(matches!(parted, ESKER_OK | ESKER_INVALID_ARGUMENT), "{parted:?}");
        let within =
            |key: &Vec<u8>| Change::DeleteRange(range.0.clone(), range.1.clone()).concerns(key);
        let (_, map) = &self.models[space.database][&space.name];
        let expected = map.keys().filter(|key| within(key)).count() as u64;
        assert_eq!(exact, expected);
        assert!(about.abs_diff(expected) <= deviation, "{about} ± {deviation}, {expected}");
        assert!(esker_list_len(list) < parts.max(1));
        esker_list_free(list);
    }

    /// All keys of a keyspace, or those with a prefix.
    pub(super) unsafe fn remove_many(&mut self, input: &mut Input) {
        let Some(space) = self.space(input) else { return };
        let class = input.below(4) as i32;
        let (prefix, all) = (input.key(), input.below(4) == 0);
        let (data, len) = bytes(&prefix);
        let removed = match all {
            true => call!(esker_clear(space.handle, class)),
            false => call!(esker_delete_prefix(space.handle, data, len, class)),
        };
        if matches!(removed, ESKER_CLOSED | ESKER_KEYSPACE_DROPPED) {
            return;
        }
        if space.name == 3 && !all {
            assert_eq!(removed, ESKER_INVALID_ARGUMENT);
            return;
        }
        assert_eq!(removed, ESKER_OK);
        // Keys have letters only.
        let end = [&prefix[..], b"~"].concat();
        let range = if all || prefix.is_empty() { (None, None) } else { (Some(prefix), Some(end)) };
        self.note(space.database, space.name, &Change::DeleteRange(range.0, range.1));
    }
}
