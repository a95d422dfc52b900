use super::*;

#[test]
fn durability_classes_are_parsed_by_their_names() {
    let classes = [Durability::Buffered, Durability::Process, Durability::Disk];
    let names = ["buffered", "process", "disk"];
    for (class, name) in classes.into_iter().zip(names) {
        assert_eq!(class.to_string(), name);
        assert_eq!(name.parse::<Durability>().unwrap(), class);
    }
    for wrong in ["", "Disk", "disk ", "safe"] {
        let error = wrong.parse::<Durability>().unwrap_err().to_string();
        assert!(names.iter().all(|name| error.contains(name)), "{wrong:?}: {error}");
    }
}
