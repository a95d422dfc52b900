use super::*;
use crate::border::give;
use crate::fault::Fault;
use esker::Error;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: every text that an error hands out ends with a zero byte.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned())
}

/// The kinds that the engine declares, from its source: the enum cannot be listed.
fn kinds() -> Vec<String> {
    let source = include_str!("../../../esker/src/error/kind.rs");
    let (_, body) = source.split_once("pub enum ErrorKind {").unwrap();
    let (body, _) = body.split_once('}').unwrap();
    let names = body.split(',').map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_kind_of_the_engine_has_a_code_of_its_name() {
    let (codes, mapping) = (include_str!("../code.rs"), include_str!("../fault.rs"));
    let kinds = kinds();
    assert!(kinds.len() >= 20, "{kinds:?}");
    for kind in kinds {
        let mut constant = "ESKER".to_owned();
        for letter in kind.chars() {
            if letter.is_uppercase() {
                constant.push('_');
            }
            constant.push(letter.to_ascii_uppercase());
        }
        assert!(mapping.contains(&format!("Kind::{kind} => {constant},")), "{kind} has no code");
        let number = codes.split(&format!("    {constant} = ")).nth(1).unwrap();
        let number: i32 = number.split(',').next().unwrap().parse().unwrap();
        let name = text(esker_code_name(number)).unwrap().replace('-', "_").to_uppercase();
        assert_eq!(format!("ESKER_{name}"), constant);
    }
}

#[test]
fn corruption_has_all_its_details() {
    let mut error = Error::corruption(&PathBuf::from("/data/7.run"), 4096, "block", "torn");
    if let Error::Corruption(corruption) = &mut error {
        corruption.keyspace = Some("users".to_owned());
        corruption.key_range = Some((b"a".to_vec(), b"b\0c".to_vec()));
    }
    let handle = give::<esker_error>(ErrorInfo::new(Fault::Engine(error)));
    let (mut len, mut offset) = (0, 0);
    // SAFETY: the handle was just given; the places are locals.
    unsafe {
        assert_eq!(esker_error_code(handle), ESKER_CORRUPTION);
        assert!(text(esker_error_message(handle)).unwrap().contains("torn"));
        assert_eq!(text(esker_error_path(handle, &mut len)).unwrap(), "/data/7.run");
        assert_eq!(len, 11);
        assert!(esker_error_offset(handle, &mut offset));
        assert_eq!(offset, 4096);
        assert_eq!(text(esker_error_section(handle, &mut len)).unwrap(), "block");
        assert_eq!(text(esker_error_keyspace(handle, &mut len)).unwrap(), "users");
        assert_eq!(text(esker_error_low_key(handle, &mut len)).unwrap(), "a");
        esker_error_high_key(handle, &mut len);
        assert_eq!(len, 3, "a key may hold zero bytes");
        assert!(esker_error_cause(handle).is_null());
        esker_error_free(handle);
    }
}

#[test]
fn a_cause_belongs_to_its_error() {
    let path = PathBuf::from("/data/log");
    let io = std::io::Error::from_raw_os_error(5);
    let cause = Error::Io { operation: "sync", path, source: Arc::new(io) };
    let poisoned = Error::Poisoned { cause: Box::new(cause) };
    let handle = give::<esker_error>(ErrorInfo::new(Fault::Engine(poisoned)));
    // SAFETY: the handle was just given.
    unsafe {
        assert_eq!(esker_error_code(handle), ESKER_POISONED);
        let cause = esker_error_cause(handle);
        esker_error_free(cause.cast_mut());
        assert_eq!(esker_error_code(cause), ESKER_IO);
        assert_eq!(esker_error_os_code(cause), 5);
        assert_eq!(text(esker_error_path(cause, std::ptr::null_mut())).unwrap(), "/data/log");
        esker_error_free(handle);
    }
}

#[test]
fn every_number_of_a_code_leads_back_to_it() {
    let mut known = 0;
    for number in -3..200 {
        // SAFETY: names are constant texts that end with a zero byte.
        let name = unsafe { CStr::from_ptr(esker_code_name(number)) };
        match esker_code::of_number(number) {
            Some(code) => assert_eq!(code as i32, number),
            None => assert_eq!(name, c"unknown"),
        }
        known += u32::from(name != c"unknown");
    }
    assert!(known > 30, "{known} codes have names");
}
