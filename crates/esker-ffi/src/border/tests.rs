use super::*;
use crate::error::{esker_error_code, esker_error_free, esker_error_message};
use crate::handle::kind;
use std::ffi::CStr;
use std::sync::Arc;

/// A kind that one thread uses at a time, and one for many.
struct alone(());
struct common(());

kind!(alone, b"alone...", Arc<u8>);
kind!(common, b"common..", u8);

fn misused<T>(result: Result<T>) -> String {
    match result {
        Err(Fault::Misuse(what)) => what,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was taken"),
    }
}

#[test]
fn a_panic_becomes_an_error() {
    let mut error = std::ptr::null_mut();
    // SAFETY: the place is a local.
    let code = unsafe { border(&mut error, || panic!("of {}", 42)) };
    assert_eq!(code, esker_code::ESKER_PANIC);
    // SAFETY: the handle was just given.
    unsafe {
        assert_eq!(esker_error_code(error), code);
        let message = CStr::from_ptr(esker_error_message(error)).to_str().unwrap();
        assert!(message.contains("of 42") && message.contains("report"), "{message}");
        esker_error_free(error);
    }
    // SAFETY: no place is fine.
    let code = unsafe { border(std::ptr::null_mut(), || panic!("constant")) };
    assert_eq!(code, esker_code::ESKER_PANIC);
    assert_eq!(quiet(7, || panic!("quietly")), 7);
    // What is thrown may be anything, and may panic again when it is dropped.
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    assert_eq!(quiet(7, || std::panic::panic_any(Loud)), 7);
}

#[test]
fn success_clears_the_place_of_the_error() {
    let mut error = std::ptr::NonNull::<esker_error>::dangling().as_ptr();
    // SAFETY: the place is a local.
    let code = unsafe { border(&mut error, || Ok(())) };
    assert_eq!(code, esker_code::ESKER_OK);
    assert!(error.is_null());
}

#[test]
fn handles_know_their_kind() {
    let handle: *mut common = give(9);
    // SAFETY: the handle was just given, and is freed at the end.
    unsafe {
        assert_eq!(*shared(handle).unwrap(), 9);
        assert!(misused(shared::<alone>(handle.cast())).contains("no alone"));
        assert!(misused(shared::<common>(std::ptr::null())).contains("NULL"));
        assert!(misused(shared::<common>(handle.byte_add(4))).contains("no common"));
        assert!(shared_or_null::<common>(std::ptr::null()).unwrap().is_none());
        // As another kind it is not freed.
        free::<alone>(handle.cast());
        assert_eq!(*shared(handle).unwrap(), 9);
        free(handle);
        free::<common>(std::ptr::null_mut());
    }
}

#[test]
fn a_freed_word_is_told() {
    // A handle whose memory still stands, as it mostly does just after it was freed.
    let handle = Handle::new::<common>(3);
    handle.word.store(FREED, Ordering::Relaxed);
    let pointer: *const common = std::ptr::from_ref(&handle).cast();
    // SAFETY: the handle is a local.
    assert!(misused(unsafe { shared(pointer) }).contains("freed"));
}

#[test]
fn a_handle_in_use_is_neither_used_again_nor_freed() {
    let kept = Arc::new(1);
    let handle: *mut alone = give(kept.clone());
    // SAFETY: the handle was just given, and is freed at the end.
    unsafe {
        let first = exclusive(handle).unwrap();
        assert!(misused(exclusive(handle)).contains("in use"));
        free(handle);
        assert_eq!(Arc::strong_count(&kept), 2, "it was not freed");
        drop(first);
        drop(exclusive(handle).unwrap());
        // Also after a panic it can be used again.
        let code = border(std::ptr::null_mut(), || {
            let _used = exclusive(handle)?;
            panic!("while in use")
        });
        assert_eq!(code, esker_code::ESKER_PANIC);
        drop(exclusive(handle).unwrap());
        free(handle);
    }
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn lengths_and_texts_are_checked() {
    let data: *const c_void = c"bytes".as_ptr().cast();
    // SAFETY: every length that is believed is right.
    unsafe {
        assert_eq!(bytes(data, 5, "key").unwrap(), b"bytes");
        assert_eq!(bytes(std::ptr::null(), 0, "key").unwrap(), b"");
        assert!(misused(bytes(std::ptr::null(), 1, "key")).contains("NULL"));
        assert!(misused(bytes(data, usize::MAX, "key")).contains("no memory"));
        assert!(misused(bytes(data, isize::MAX as usize + 1, "key")).contains("no memory"));
        assert_eq!(bound(std::ptr::null(), 0, "start").unwrap(), None);
        assert_eq!(bound(data, 0, "start").unwrap(), Some(&b""[..]));
        assert_eq!(name(data.cast(), ESKER_NUL, "name").unwrap(), "bytes");
        assert_eq!(name(data.cast(), 2, "name").unwrap(), "by");
        assert!(misused(name(std::ptr::null(), ESKER_NUL, "name")).contains("NULL"));
        assert!(matches!(name(c"\xff".as_ptr(), 1, "name"), Err(Fault::Engine(_))));
        assert!(misused(path(data.cast(), 0)).contains("empty"));
        let mut number = 5;
        *place(&mut number, "n", 0).unwrap() += 1;
        assert_eq!(number, 1);
        assert!(misused(place::<u64>(std::ptr::null_mut(), "n", 0)).contains("NULL"));
        let odd = (&raw mut number).cast::<u8>().add(1).cast::<u32>();
        assert!(misused(place(odd, "n", 0)).contains("aligned"));
    }
    let text = Text::new("abc");
    let mut len = 0;
    // SAFETY: the place is a local.
    let pointer = unsafe { answer(Some(&text), &mut len) };
    // SAFETY: a zero byte follows each text.
    assert_eq!((unsafe { CStr::from_ptr(pointer) }.to_bytes(), len), (&b"abc"[..], 3));
}
