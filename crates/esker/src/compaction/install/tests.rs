use super::*;
use crate::catalog::Catalog;
use crate::compaction::partitioning::tests::{partition, run, segment, settings};
use crate::run::Role;

/// Keyspaces 1 and 2, which are twins of each other here.
fn keyspaces() -> [Arc<KeyspaceState>; 2] {
    let mut catalog = Catalog::new(Vec::new());
    [catalog.create(1, "a", "", 10), catalog.create(2, "b", "", 10)]
}

/// Two partitions with a delta each.
fn parts() -> Vec<Arc<Partition>> {
    let with_delta = |part: Arc<Partition>| {
        Arc::new(part.with_delta(run(Role::Delta, &[("c", "d"), ("n", "o")])))
    };
    let parts =
        [partition(None, Some("m"), &[("a", "e")]), partition(Some("m"), None, &[("m", "p")])];
    parts.into_iter().map(with_delta).collect()
}

/// One tier with one span over two partitions.
fn tiered() -> Tree {
    let span = partition(None, None, &[]).with_delta(run(Role::Delta, &[("c", "d"), ("n", "o")]));
    let rows = [parts(), vec![Arc::new(span)]];
    Tree::of_rows(rows.into_iter().map(crate::manifest::Row::new).collect())
}

/// A database whose trees 1 and 2 are the same, or where only the first is there.
struct Setting {
    keyspaces: [Arc<KeyspaceState>; 2],
    version: Version,
    settings: Settings,
    elsewhere: bool,
    busy: Vec<PartitionKey>,
}

impl Setting {
    fn of(trees: &[Arc<Tree>]) -> Self {
        let trees = (1..).zip(trees).map(|(id, tree)| (id, Some(tree.clone()))).collect();
        Self {
            keyspaces: keyspaces(),
            version: Version::default().with_trees(trees),
            settings: settings(),
            elsewhere: true,
            busy: Vec::new(),
        }
    }

    fn around<T>(&self, put: impl FnOnce(&Around<'_>) -> T) -> T {
        let busy = |keyspace, tier, lower: Option<&[u8]>| {
            let lower = lower.map(<[u8]>::to_vec);
            self.busy.contains(&PartitionKey { keyspace, tier, lower })
        };
        let twins = |of: &KeyspaceState, _: &Traits| {
            self.keyspaces.iter().filter(|other| other.id != of.id).cloned().collect()
        };
        put(&Around {
            version: &self.version,
            settings: &self.settings,
            elsewhere: &|_| self.elsewhere,
            busy: &busy,
            twins: &twins,
        })
    }

    /// The result of a compaction of a partition of a tree.
    fn compacted(&self, tree: usize, at: usize) -> Compacted {
        let keyspace = self.keyspaces[tree].clone();
        let old = self.version.tree(keyspace.id).unwrap().partitions()[at].clone();
        let key = old.lower.as_ref().map_or("a", |_| "m");
        let base = Run::new(Role::Base, vec![segment(key, &format!("{key}z"))], Vec::new());
        let traits = Traits::default();
        Compacted { keyspace, traits, old, base, filtered_under: None }
    }

    /// The result of a push of the only span of a tree.
    fn pushed(&self, tree: usize) -> Pushed {
        let keyspace = self.keyspaces[tree].clone();
        let old = self.version.tree(keyspace.id).unwrap().tiers()[0].partitions()[0].clone();
        let slice = Slice {
            lower: None,
            upper: Some(b"m".to_vec()),
            run: run(Role::Delta, &[("c", "d")]),
            hides_below: 0,
            bottom: false,
        };
        Pushed { keyspace, traits: Traits::default(), tier: 1, old, slices: vec![slice] }
    }

    /// The trees that compactions change, and those that were told the share of fresh entries.
    fn compact(&self, compacted: Vec<Compacted>) -> (Vec<(KeyspaceId, Tree)>, Vec<KeyspaceId>) {
        let told = std::cell::RefCell::new(Vec::new());
        let fresh = |id, _| told.borrow_mut().push(id);
        let installed = self.around(|around| compactions(compacted, around, &fresh)).unwrap();
        (trees(installed), told.into_inner())
    }

    fn push(&self, pushed: &[Pushed]) -> Vec<(KeyspaceId, Tree)> {
        trees(self.around(|around| pushes(pushed, around)).unwrap())
    }
}

fn trees(installed: Installed) -> Vec<(KeyspaceId, Tree)> {
    installed.into_iter().map(|(id, (_, rows))| (id, rows.finish().0)).collect()
}

fn ids(trees: &[(KeyspaceId, Tree)]) -> Vec<KeyspaceId> {
    trees.iter().map(|(id, _)| *id).collect()
}

fn shared(tree: Tree) -> Setting {
    let tree = Arc::new(tree);
    Setting::of(&[tree.clone(), tree])
}

#[test]
fn a_compaction_is_installed_in_every_tree_that_has_the_partition() {
    let setting = shared(Tree::new(parts()));
    let (trees, told) = setting.compact(vec![setting.compacted(0, 0), setting.compacted(0, 1)]);
    assert_eq!((ids(&trees), told), (vec![1, 2], vec![2, 2]));
    for (one, other) in trees[0].1.partitions().iter().zip(trees[1].1.partitions()) {
        // In each they were joined, because they are small.
        assert!(one.is_same(other) && one.deltas.is_empty());
    }
    assert_eq!(trees[0].1.partitions().len(), trees[1].1.partitions().len());
}

#[test]
fn a_compaction_stays_alone_where_nothing_is_shared() {
    let mut setting = shared(Tree::new(parts()));
    setting.elsewhere = false;
    let (trees, told) = setting.compact(vec![setting.compacted(0, 0)]);
    assert_eq!((ids(&trees), told), (vec![1], vec![]));
    // The branch has another partition, or no tree.
    let mut other = parts();
    other[0] = Arc::new(other[0].with_delta(run(Role::Delta, &[("c", "d")])));
    let trees = [Tree::new(parts()), Tree::new(other)].map(Arc::new);
    for count in [1, 2] {
        let setting = Setting::of(&trees[..count]);
        let (trees, _) = setting.compact(vec![setting.compacted(0, 0)]);
        assert_eq!(ids(&trees), [1], "{count} trees");
    }
}

#[test]
fn a_partition_that_is_compacted_in_a_branch_is_left_to_that() {
    let mut setting = shared(Tree::new(parts()));
    setting.busy = vec![PartitionKey::of_partition(2, None)];
    let (trees, told) = setting.compact(vec![setting.compacted(0, 0), setting.compacted(0, 1)]);
    assert_eq!((ids(&trees), told), (vec![1, 2], vec![2]), "the other one is shared");
    assert!(Arc::ptr_eq(
        &trees[1].1.partitions()[0],
        &setting.version.tree(2).unwrap().partitions()[0]
    ));
    // Both were compacted, and end with the same change: each tree gets its own result.
    setting.busy.push(PartitionKey::of_partition(1, None));
    let (trees, told) = setting.compact(vec![setting.compacted(0, 0), setting.compacted(1, 0)]);
    assert_eq!((ids(&trees), told), (vec![1, 2], vec![]));
    let first = |at: usize| &trees[at].1.partitions()[0];
    assert!(first(0).deltas.is_empty() && first(1).deltas.is_empty());
    assert!(!Arc::ptr_eq(first(0), first(1)));
}

#[test]
fn what_a_filter_may_have_changed_stays_alone() {
    let setting = shared(Tree::new(parts()));
    let mut filtered = setting.compacted(0, 0);
    filtered.traits.filter = "filter".to_owned();
    let (trees, _) = setting.compact(vec![filtered, setting.compacted(0, 1)]);
    let second = trees.iter().find(|(id, _)| *id == 2).unwrap();
    assert_eq!(second.1.partitions()[0].deltas.len(), 1);
    assert!(second.1.partitions()[1].deltas.is_empty(), "the other one is shared");
}

#[test]
fn results_of_a_tree_that_was_removed_meanwhile_go_nowhere() {
    let setting = shared(tiered());
    let (compacted, pushed) = (setting.compacted(1, 0), setting.pushed(1));
    let without = Setting::of(&[Arc::new(tiered())]);
    assert!(without.compact(vec![compacted]).0.is_empty());
    assert!(without.push(&[pushed]).is_empty());
}

#[test]
fn a_push_is_installed_in_every_tree_that_has_the_span_and_its_children() {
    let setting = shared(tiered());
    let trees = setting.push(&[setting.pushed(0)]);
    assert_eq!(ids(&trees), [1, 2]);
    for (one, other) in trees[0].1.all().zip(trees[1].1.all()) {
        assert!(Arc::ptr_eq(one, other));
    }
    // The tier is empty then, and so small a tree wants none.
    let first = &trees[1].1.partitions()[0];
    assert!(first.deltas.len() == 2 && trees[1].1.tiers().is_empty());
}

#[test]
fn a_push_stays_alone_where_nothing_is_shared_or_work_is_under_way() {
    let mut setting = shared(tiered());
    setting.elsewhere = false;
    assert_eq!(ids(&setting.push(&[setting.pushed(0)])), [1]);
    setting.elsewhere = true;
    let span = |keyspace| PartitionKey { keyspace, tier: 1, lower: None };
    for busy in [span(2), PartitionKey::of_partition(2, Some(b"m".to_vec()))] {
        setting.busy = vec![busy];
        assert_eq!(ids(&setting.push(&[setting.pushed(0)])), [1]);
    }
    // Both were pushed, and end with the same change.
    setting.busy = vec![span(1), span(2)];
    let trees = setting.push(&[setting.pushed(0), setting.pushed(1)]);
    assert_eq!(ids(&trees), [1, 2]);
    assert!(!Arc::ptr_eq(&trees[0].1.partitions()[0], &trees[1].1.partitions()[0]));
}
