//! The imports of the sources against ARCHITECTURE.md: a module imports only from floors below its own,
//! and the parts of the engine and of scenarios do not import each other in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// A path from the root of the crate, as its segments.
type Names = Vec<String>;

/// What one module names of others.
#[derive(Default)]
struct Module {
    imports: Vec<Names>,
    /// Names under which it passes on what others define.
    exports: BTreeMap<String, Names>,
}

/// All modules, by path.
#[derive(Default)]
struct Sources {
    modules: BTreeMap<Names, Module>,
}

/// Reads one file; tests are left out.
struct Reader<'a> {
    sources: &'a mut Sources,
    at: Names,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let test = |list: &syn::MetaList| list.tokens.to_string().contains("test");
        attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(test)
    })
}

impl Reader<'_> {
    /// The path that `names` stands for in this module, if it leads into this crate.
    fn absolute(&self, names: &[String]) -> Option<Names> {
        let mut at = match names.first()?.as_str() {
            "crate" | "udma_sim" => Names::new(),
            "self" => self.at.clone(),
            "super" => self.at[..self.at.len().checked_sub(1)?].to_vec(),
            child => {
                let mut at = self.at.clone();
                at.push(child.to_string());
                self.sources.modules.contains_key(&at).then_some(at)?
            }
        };
        for name in &names[1..] {
            match name.as_str() {
                "super" => drop(at.pop()),
                "self" => {}
                _ => at.push(name.clone()),
            }
        }
        Some(at)
    }

    fn module(&mut self) -> &mut Module {
        self.sources.modules.entry(self.at.clone()).or_default()
    }

    fn import(&mut self, names: &[String]) {
        if let Some(path) = self.absolute(names) {
            self.module().imports.push(path);
        }
    }

    fn use_tree(&mut self, before: &[String], tree: &UseTree, exported: bool) {
        let mut path = before.to_vec();
        let name = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.use_tree(&path, &tree.tree, exported);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(before, tree, exported);
                }
                return;
            }
            UseTree::Glob(_) => return self.import(&path),
            UseTree::Name(tree) => {
                path.push(tree.ident.to_string());
                tree.ident.to_string()
            }
            UseTree::Rename(tree) => {
                path.push(tree.ident.to_string());
                tree.rename.to_string()
            }
        };
        if !exported {
            self.import(&path);
        } else if let Some(path) = self.absolute(&path) {
            self.module().exports.insert(name, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.at.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.use_tree(&[], &item.tree, exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = (path.segments.iter().map(|part| part.ident.to_string())).collect();
        if names.len() > 1 {
            self.import(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        // What a macro is given is text to the compiler too: paths from the root can be told apart.
        let text = call.tokens.to_string().replace(' ', "");
        for (at, _) in text.match_indices("crate::") {
            let path = text[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let names: Names = (path.take(1))
                .flat_map(|path| path.split("::"))
                .filter(|name| !name.is_empty())
                .map(str::to_string)
                .collect();
            self.import(&names);
        }
    }
}

impl Sources {
    /// The sources of the package, and those of the C library above it.
    fn read() -> Sources {
        let mut files = Vec::new();
        rust_files(Path::new("src"), &Names::new(), &mut files);
        let mut sources = Sources::default();
        for (_, at) in &files {
            sources.modules.insert(at.clone(), Module::default());
        }
        for (file, at) in files {
            let text = fs::read_to_string(&file).unwrap();
            let parsed = syn::parse_file(&text).unwrap();
            let sources = &mut sources;
            Reader { sources, at }.visit_file(&parsed);
        }
        sources
    }

    /// The module that defines what `path` leads to.
    fn owner(&self, path: &[String]) -> Names {
        let mut path = path.to_vec();
        for _ in 0..16 {
            let known = (0..=path.len())
                .rev()
                .find(|n| self.modules.contains_key(&path[..*n]));
            let module = path[..known.unwrap_or(0)].to_vec();
            let exports = &self.modules[&module].exports;
            let exported = path.get(module.len()).and_then(|name| exports.get(name));
            match exported {
                Some(target) => path = [target, &path[module.len() + 1..]].concat(),
                None => return module,
            }
        }
        panic!("{path:?} is exported in a circle");
    }

    /// Who imports whom among the parts that `part` tells apart; what it leaves out is in no part.
    fn edges(&self, part: impl Fn(&[String]) -> Option<String>) -> Graph {
        let mut graph = Graph::new();
        for (at, module) in &self.modules {
            for import in &module.imports {
                if let (Some(from), Some(to)) = (part(at), part(&self.owner(import)))
                    && from != to
                {
                    let note = format!("{} imports {}", at.join("::"), import.join("::"));
                    graph.entry(from).or_default().entry(to).or_insert(note);
                }
            }
        }
        graph
    }
}

/// For each part those it imports, with an example.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

fn rust_files(folder: &Path, at: &Names, files: &mut Vec<(PathBuf, Names)>) {
    let mut entries: Vec<PathBuf> = (fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_string();
        let below = [at.clone(), vec![name.clone()]].concat();
        if entry.is_dir() {
            rust_files(&entry, &below, files);
        } else if matches!(name.as_str(), "mod" | "lib") {
            files.push((entry, at.clone()));
        } else if entry.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            files.push((entry, below));
        }
    }
}

/// A circle of imports, each step with its example.
fn circle(graph: &Graph) -> Option<Vec<&str>> {
    fn search<'a>(
        graph: &'a Graph,
        at: &'a str,
        trail: &mut Vec<(&'a str, &'a str)>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        for (to, note) in graph.get(at).into_iter().flatten() {
            trail.push((at, note));
            if let Some(start) = trail.iter().position(|(part, _)| part == to) {
                return Some(trail[start..].iter().map(|(_, note)| *note).collect());
            }
            if !done.contains(to.as_str())
                && let Some(found) = search(graph, to, trail, done)
            {
                return Some(found);
            }
            trail.pop();
        }
        done.insert(at);
        None
    }
    let mut done = BTreeSet::new();
    (graph.keys()).find_map(|start| search(graph, start, &mut Vec::new(), &mut done))
}

/// The floor of each room, as the table of ARCHITECTURE.md has it.
fn floors() -> BTreeMap<String, u32> {
    let text = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let mut floors = BTreeMap::new();
    for row in text.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(floor) = cells.get(1).and_then(|cell| cell.parse().ok()) else {
            continue;
        };
        for room in cells[2].split('`').skip(1).step_by(2) {
            let room = room.trim_end_matches('/').trim_end_matches(".rs");
            floors.insert(room.to_string(), floor);
        }
    }
    floors
}

#[test]
fn a_module_imports_only_from_floors_below_its_own() {
    let sources = Sources::read();
    let floors = floors();
    // `main.rs` starts what is in `cli/`.
    let room = |path: &[String]| match path.first()?.as_str() {
        "main" => Some("cli".to_string()),
        name => Some(name.to_string()),
    };
    let graph = sources.edges(room);
    assert!(graph["system"].contains_key("device"), "imports are found");
    let mut upward = Vec::new();
    for (from, imports) in &graph {
        for (to, note) in imports {
            let floor = |room: &String| match floors.get(room) {
                Some(floor) => *floor,
                None => panic!("ARCHITECTURE.md has no floor for {room}"),
            };
            if floor(to) >= floor(from) {
                upward.push(note);
            }
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
    assert_eq!(circle(&graph), None);
}

#[test]
fn there_are_no_circles_inside_the_device_and_the_scenarios() {
    let sources = Sources::read();
    for room in ["device", "scenario"] {
        let mut compared = 0;
        let inside = |at: &&Names| at.first().is_some_and(|first| first == room);
        for parent in sources.modules.keys().filter(inside) {
            // A room's own file is a part like the others. Further down, a module may share its own
            // types with its children: these are compared with each other.
            let part = |path: &[String]| match path.strip_prefix(&parent[..])? {
                [child, ..] => Some(child.clone()),
                [] => (parent.len() == 1).then(|| "mod".to_string()),
            };
            let graph = sources.edges(part);
            compared += graph.len();
            assert_eq!(circle(&graph), None, "in {}", parent.join("::"));
        }
        assert!(compared > 20, "{compared} parts of {room}");
    }
}

#[test]
fn a_circle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            let imports = graph.entry(from.to_string()).or_default();
            imports.insert(to.to_string(), format!("{from}>{to}"));
        }
        graph
    };
    let diamond = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")];
    assert_eq!(circle(&graph(&diamond)), None);
    let ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")];
    assert_eq!(circle(&graph(&ring)), Some(vec!["b>c", "c>d", "d>b"]));
}
