//! Numbered file names, and which numbers are free.
//!
//! 1. A name is ours only if it is exactly the name that we make of its number: `0000000042.run`
//!    is, `00000000042.run` is not. Nothing reads, counts or removes a foreign name.
//! 2. We give out numbers one after the other. So a number that is out of reach is not ours, and
//!    does not raise the next number, which might otherwise overflow.

/// A database never gives out as many numbers as this.
const REACH: u64 = 1 << 48;

/// A kind of file name: a number between two fixed parts.
#[derive(Debug, Clone, Copy)]
pub struct NumberedName {
    /// The text before the number.
    pub prefix: &'static str,
    /// The least number of digits; smaller numbers are padded with zeros.
    pub digits: usize,
    /// The text after the number.
    pub suffix: &'static str,
}

impl NumberedName {
    /// The name with this number.
    pub fn of(&self, number: u64) -> String {
        format!("{}{number:0digits$}{}", self.prefix, self.suffix, digits = self.digits)
    }

    /// The number of a name that [`NumberedName::of`] makes.
    pub fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().filter(|number| self.of(*number) == name)
    }
}

/// Whether we may have given out `number`, if all numbers before `next` were given out.
pub fn within_reach(number: u64, next: u64) -> bool {
    // Seeded: a foreign file with a large number uses up the numbers.
    bug!("base_every_number_is_ours") || number < next.saturating_add(REACH)
}

/// Returns the first number from `next` on after which all numbers within reach are free. `taken`
/// may be in any order.
pub fn first_free(next: u64, mut taken: Vec<u64>) -> u64 {
    taken.sort_unstable();
    taken.into_iter().fold(next, |next, number| {
        if within_reach(number, next) { next.max(number.saturating_add(1)) } else { next }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_have_a_number() {
        let kind = NumberedName { prefix: "a-", digits: 4, suffix: ".b" };
        for number in [0, 7, 9999, 10_000, u64::MAX] {
            assert_eq!(kind.number(&kind.of(number)), Some(number));
        }
        let others =
            ["a-.b", "a-1.b", "a-00001.b", "a-+001.b", "a-0001", "0001.b", "a-0001.b~", "a-.b.b"];
        for name in others.into_iter().chain(["a-18446744073709551616.b", "a-００01.b"]) {
            assert_eq!(kind.number(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_out_of_reach_move_nothing() {
        assert_eq!(first_free(1, Vec::new()), 1);
        assert_eq!(first_free(1, vec![77, 1, 5]), 78);
        assert_eq!(first_free(100, vec![77, 1, 5]), 100);
        assert_eq!(first_free(1, vec![u64::MAX, 3, u64::MAX - 1]), 4);
        assert_eq!(first_free(1, vec![REACH, 3]), REACH + 1);
        assert_eq!(first_free(1, vec![REACH + 1]), 1);
        assert_eq!(first_free(u64::MAX, vec![u64::MAX]), u64::MAX);
    }
}
