//! Finds the seeded bugs in the engine's sources.

use crate::workspace::Result;
use std::fs;
use std::path::Path;

/// Where one stands.
#[derive(Debug)]
pub(crate) struct Site {
    /// The name that chooses it.
    pub name: String,
    /// What goes wrong, from the comment above it.
    pub what: String,
    /// The module of the engine whose unit tests are tried first.
    pub module: String,
}

/// All of them, by file. A name may stand at several places of one module, where a defect has two
/// halves; the first place explains it.
pub(crate) fn find(workspace: &Path) -> Result<Vec<Site>> {
    let root = workspace.join("crates/esker/src");
    let mut files = Vec::new();
    sources(&root, &mut files)?;
    files.sort();
    let mut sites: Vec<Site> = Vec::new();
    for path in files {
        let below = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let module = below.split(['/', '.']).next().unwrap_or_default().to_owned();
        if below == "base/bugs.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|e| format!("read {below}: {e}"))?;
        for (name, what) in in_text(&text) {
            match sites.iter().find(|site| site.name == name) {
                Some(known) if known.module != module => {
                    return Err(format!("{name} stands in {module} and in {}", known.module));
                }
                Some(_) => {}
                None if what.is_empty() => {
                    return Err(format!("{below}: no comment says `Seeded:` above {name}"));
                }
                None => sites.push(Site { name, what, module: module.clone() }),
            }
        }
    }
    Ok(sites)
}

fn sources(directory: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", directory.display()))?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The names in one file, each with the comment `// Seeded: ...` that stands above.
fn in_text(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    // Whether the arguments of a site stand on lines of their own.
    let mut broken = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(prose) = line.strip_prefix("//") {
            match prose.trim().strip_prefix("Seeded:") {
                Some(first) => comment = vec![first.trim()],
                None if !comment.is_empty() => comment.push(prose.trim()),
                None => {}
            }
            continue;
        }
        // `debug!` ends like it.
        let is_site = |at: &usize| !line[..*at].ends_with(|before: char| before.is_alphanumeric());
        let sites = line.match_indices("bug!(\"").map(|(at, _)| at).filter(is_site);
        let names = sites.map(|at| &line[at + 6..]);
        let names = names.chain(line.strip_prefix('"').filter(|_| broken));
        for rest in names {
            let name = rest.split('"').next().unwrap_or_default().to_owned();
            found.push((name, comment.join(" ")));
            comment.clear();
        }
        broken = line.ends_with("bug!(");
        // A comment belongs to the statement below it, which may have several lines.
        if line.ends_with([';', '}', ',']) {
            comment.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_the_comment_above_it() {
        let text = "
            // Something else.
            // Seeded: the file is
            // not synced.
            bug!(\"a_b\", return Ok(()));
            let x = bug!(\"c\");
            log::debug!(\"no site\");
            // Seeded: d.
            bug!(
                \"d\",
                continue
            );
        ";
        let expected = [("a_b".to_owned(), "the file is not synced.".to_owned())];
        let found = in_text(text);
        assert_eq!(found[..1], expected);
        assert_eq!(found[1], ("c".to_owned(), String::new()));
        assert_eq!(found[2], ("d".to_owned(), "d.".to_owned()));
    }

    #[test]
    fn every_seeded_bug_is_named_once_and_explained() {
        let sites = find(&crate::workspace::root()).expect("the sources are well formed");
        for Site { name, module, what } in &sites {
            assert!(name.starts_with(&format!("{module}_")), "{name} stands in {module}");
            assert!(what.ends_with('.') && !what.contains('|'), "{name}: {what}");
        }
    }
}
