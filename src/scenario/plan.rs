//! A scenario resolved for one arch: names looked up, places turned into addresses, files read,
//! every step tried on a scratch memory. What is a [`Plan`] can be run.

use super::expects::{self, Expect};
use super::faults::{self, FaultPlan};
use super::files::Files;
use super::host_side::{News, PringPlan};
use super::regions::{self, Memory, PringTable};
use super::scope::{Content, Context, Scope};
use super::sequencers::{self, SequencerPlan};
use super::stage::Scratch;
use super::steps::{self, PlannedStep, StepRead};
use super::waits::{self, Outputs};
use crate::arch::Arch;
use crate::config::Config;
use crate::document::{At, Document, Mark, NoValue, Read, Table, keys};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A scenario ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The scenario file.
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) config: Config,
    pub(super) seed: u64,
    /// Contents of memory before the first step.
    pub(super) contents: Vec<Content>,
    pub(super) prings: Vec<PringPlan>,
    pub(super) steps: Vec<PlannedStep>,
    pub(super) sequencers: Vec<SequencerPlan>,
    pub(super) faults: Vec<FaultPlan>,
    pub(super) expects: Vec<Expect>,
}

keys! {
    /// What a scenario says of itself.
    pub(super) struct Head {
        name: String,
        description: String = String::new(),
        config: Option<String>,
        runs_on: Option<At<Vec<Arch>>>,
        seed: u64 = 0,
    }
}

/// What a plan is made of.
pub(super) struct Source<'a> {
    pub document: &'a Document,
    pub files: &'a Files,
    pub head: &'a Head,
    pub root: &'a Table<'a>,
}

/// Resolves a scenario that has been checked without an arch.
pub(super) fn build(source: &Source<'_>, config: Config, seed: u64) -> Read<Plan> {
    let Source {
        document,
        files,
        head,
        root,
    } = *source;
    let mut scope = Scope::new(document, files, &config, seed)?;
    let contents = each(root, "memory", |_, table| {
        regions::memory(&mut scope, &regions::read::<Memory>(table)?)
    });
    let prings = each(root, "pring", |_, table| {
        regions::pring(&mut scope, &regions::read::<PringTable>(table)?)
    });
    // Whatever names a region would only repeat that the region is wrong.
    contents?;
    let prings = prings?;
    let names = each(root, "sequencer", |_, table| {
        sequencers::name(&mut scope, table)
    });
    let loaded = scope.host.load(&prings, &mut Scratch(&mut scope.scratch));
    loaded.map_err(|error| document.report_file(error.to_string()))?;
    let tried = try_steps(&mut scope, root);
    let mut names = names?.into_iter();
    let Tried { steps, outputs } = tried?;
    let sequencers = each(root, "sequencer", |_, table| {
        let name = names.next().flatten();
        name.map(|name| sequencers::program(&mut scope, name, table))
            .transpose()
    })?;
    let sequencers: Vec<SequencerPlan> = sequencers.into_iter().flatten().collect();
    waits::check(&scope, &steps, &outputs, &sequencers);
    let context = Context(Some(&scope));
    let faults = each(root, "fault", |_, table| faults::read(table, context));
    let expects = each(root, "expect", |_, table| expects::read(table, context))?;
    let faults = faults?.into_iter().flatten().collect();
    Ok(Plan {
        path: document.path().to_path_buf(),
        name: head.name.clone(),
        description: head.description.clone(),
        config,
        seed,
        contents: scope.contents,
        prings,
        steps,
        sequencers,
        faults,
        expects: expects.into_iter().flatten().collect(),
    })
}

/// Reads every table of an array, so that one bad table does not hide the next.
fn each<T>(
    root: &Table<'_>,
    key: &'static str,
    mut read: impl FnMut(usize, &Table<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let tables = root.tables(key);
    let read = tables.iter().map(|(index, table)| read(*index, table));
    let found: Vec<Read<T>> = read.collect();
    found.into_iter().collect()
}

/// The steps of this arch, and where queues write as they are let run.
struct Tried {
    steps: Vec<PlannedStep>,
    outputs: Outputs,
}

/// Reads the steps of this arch and tries them, one after the other.
fn try_steps(scope: &mut Scope<'_>, root: &Table<'_>) -> Read<Tried> {
    let mut outputs = Outputs::default();
    // The last step that added something to a vring.
    let mut authors: BTreeMap<String, Mark> = BTreeMap::new();
    let mut steps = Vec::new();
    for (index, table) in root.tables("step") {
        let step = steps::read(index, &table, Context(Some(scope)));
        let planned = step.and_then(|read| match read {
            Some(read) => planned(scope, read, &mut outputs, &mut authors).map(Some),
            None => Ok(None),
        });
        match planned {
            Ok(step) => steps.extend(step),
            // What was not done would only make later steps fail: they are resolved, not tried.
            Err(NoValue) => scope.trying = false,
        }
    }
    if !scope.trying {
        return Err(NoValue);
    }
    for vring in scope.host.undumped() {
        if let Some(mark) = authors.get(vring) {
            let message = format!(
                "this descriptor of vring \"{vring}\" is never dumped; add a dump_to_pring step after it"
            );
            scope.report(mark, message);
        }
    }
    outputs.note_all(&scope.host, &scope.scratch);
    Ok(Tried { steps, outputs })
}

/// Makes known what a step says, and does it on the scratch memory.
fn planned(
    scope: &mut Scope<'_>,
    read: StepRead,
    outputs: &mut Outputs,
    authors: &mut BTreeMap<String, Mark>,
) -> Read<PlannedStep> {
    let StepRead {
        index,
        mark,
        label,
        call,
        step,
    } = read;
    if let Some(label) = &label {
        // Repetitions of one step share its label, if they do not tell themselves apart.
        let first = *scope.labels.entry(label.value.clone()).or_insert(index);
        if first != index {
            let message = format!(
                "label \"{}\" is already taken by step[{first}]",
                label.value
            );
            return Err(scope.report(&label.mark, message));
        }
    }
    step.declare(scope)?;
    if scope.trying {
        let Scope { host, scratch, .. } = scope;
        let done = step.perform(host, &mut Scratch(scratch));
        done.map_err(|error| scope.report(&mark, error.to_string()))?;
        outputs.note(&step.effect(), &scope.host, &scope.scratch);
        for news in scope.host.take_news() {
            if let News::Authored(vring) = news {
                authors.insert(vring, mark.clone());
            }
        }
    }
    let label = label.map(|label| label.value);
    scope.steps.push(label.clone());
    Ok(PlannedStep {
        source: index,
        line: scope.document.line(&mark),
        mark,
        label,
        call,
        detail: step.detail(),
        step,
    })
}
