//! Transactions that are repeated automatically after a conflict.

#![allow(unsafe_code, reason = "these are exported functions, and they call C")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, exclusive, free, give, shared};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::error::{esker_error_free, take_error};
use crate::fault::{ErrorInfo, Fault, Result, esker_error, misuse};
use crate::txn::{TxnInner, esker_txn, options};
use std::ffi::c_void;
use std::time::Duration;

/// The body of a transaction. If it returns 0, the transaction is committed; after any other number
/// nothing of it is written. If it returns `ESKER_CONFLICT` or `ESKER_DEADLOCK`, as calls in it
/// may, it is called again with a new transaction; so it may be called more than once. `error` is
/// never NULL: it is the place for the error that belongs to the number, as calls fill it. The body
/// must not commit, roll back or free the transaction. It must return (no `longjmp`, no exception).
// SAFETY: the giver of such a function promises that it may be called so (B5).
pub type esker_transaction_body = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        txn: *mut esker_txn,
        error: *mut *mut esker_error,
    ) -> i32,
>;

/// Runs a function in a transaction, and in a new one whenever something that it read was written
/// meanwhile, up to 1000 times. `durability`, an `esker_durability`, is what its commit survives.
///
/// Errors: the number that the function returned, with its error, or `ESKER_ABORTED` if it is no
/// `esker_code`; otherwise as `esker_txn_begin` and `esker_txn_commit`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transact(
    db: *const esker_db,
    durability: i32,
    body: esker_transaction_body,
    context: *mut c_void,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || transact(db, durability, None, body, context))
}

/// As `esker_transact`, with locking transactions as `esker_txn_begin_locking` begins them.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transact_locking(
    db: *const esker_db,
    durability: i32,
    lock_timeout_ms: u64,
    body: esker_transaction_body,
    context: *mut c_void,
    error: *mut *mut esker_error,
) -> esker_code {
    let lock_timeout = Duration::from_millis(lock_timeout_ms);
    border(error, || transact(db, durability, Some(lock_timeout), body, context))
}

/// # Safety
/// B1 for `db`, B5 for `body`.
unsafe fn transact(
    db: *const esker_db,
    durability: i32,
    lock_timeout: Option<Duration>,
    body: esker_transaction_body,
    context: *mut c_void,
) -> Result<()> {
    let Some(body) = body else { return misuse("the function is NULL: give one") };
    let db = &shared(db)?.db;
    let options = options(durability, lock_timeout)?;
    let mut attempt = 1;
    loop {
        let lent = Lent(give(TxnInner::lend(db.begin_with(options)?)));
        let mut told: *mut esker_error = std::ptr::null_mut();
        let answer = body(context, lent.0, &raw mut told);
        let told = Told(told);
        let failed = if answer == 0 {
            let Some(transaction) = exclusive(lent.0)?.take_back() else {
                return misuse("the transaction has ended");
            };
            match transaction.commit() {
                Ok(_) => return Ok(()),
                Err(error) => Fault::Engine(error),
            }
        } else {
            told.fault(answer)
        };
        if attempt >= options.attempts || !failed.wants_retry() {
            return Err(failed);
        }
        attempt += 1;
        // The transaction that won may go on to use the same keys.
        std::thread::yield_now();
    }
}

/// A transaction that is passed to a body, and freed whatever happens.
struct Lent(*mut esker_txn);

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it was made here, and no body can free what is lent.
        unsafe { free(self.0) }
    }
}

/// The error that a body left.
struct Told(*mut esker_error);

impl Told {
    /// The result of a body that returned this number.
    unsafe fn fault(mut self, answer: i32) -> Fault {
        let known = esker_code::of_number(answer);
        let told = take_error(std::mem::replace(&mut self.0, std::ptr::null_mut()));
        let told = told.filter(|info| Some(info.code) == known);
        Fault::Told(Box::new(told.unwrap_or_else(|| {
            let code = known.unwrap_or(esker_code::ESKER_ABORTED);
            ErrorInfo::plain(code, format!("the function of the transaction returned {answer}"))
        })))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // SAFETY: a body leaves an error that it was given and did not free, or NULL.
        unsafe { esker_error_free(self.0) }
    }
}
