//! Expectations of bytes: of memory and of observations, compared with contents of all kinds.

use super::{Check, Expected, Subject, Wanted};
use crate::document::{At, Keys, Mark, Read, Table, keys};
use crate::scenario::fill::{FillDecl, HashText};
use crate::scenario::given::Area;
use crate::scenario::place::Location;
use crate::scenario::scope::{Context, Scope};
use crate::units::Bytes;

keys! {
    struct Memory {
        memory: Area,
    }

    struct Observation {
        observation: At<String>,
    }

    struct Initial {
        initial: At<String>,
    }

    struct AtTheEnd {
        region: At<Location>,
    }

    struct Hash {
        sha256: HashText,
    }
}

/// Adds the keys of these expectations.
pub(super) fn keys(known: &mut Vec<&'static str>) {
    known.push("differs");
    <Memory as Keys<Context<'_>>>::names(known);
    <Observation as Keys<()>>::names(known);
    <Initial as Keys<()>>::names(known);
    <AtTheEnd as Keys<()>>::names(known);
    <Hash as Keys<()>>::names(known);
}

pub(super) fn memory(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let subject = Memory::read(table, context);
    let wanted = WantedKeys::read(table);
    let (Memory { memory }, wanted) = (subject?, wanted?);
    let scope = context.scope()?;
    scope.plain(&memory.mark, &memory.region)?;
    let bytes = memory.region.bytes;
    let subject = Compared {
        what: format!("{} ({})", memory.written, Bytes(bytes)),
        of: Subject::Memory(memory.region),
        bytes,
    };
    subject.with(&wanted, scope)
}

pub(super) fn observation(table: &Table<'_>, context: Context<'_>) -> Read<Expected> {
    let name = Observation::read(table, ());
    let wanted = WantedKeys::read(table);
    let (name, wanted) = (name?.observation, wanted?);
    let scope = context.scope()?;
    let bytes = scope.observations.get(&name.value);
    let bytes =
        *bytes.ok_or_else(|| scope.unknown(&name, "observation", scope.observations.keys()))?;
    let subject = Compared {
        what: format!("observation \"{}\" ({})", name.value, Bytes(bytes)),
        of: Subject::Observation(name.value),
        bytes,
    };
    subject.with(&wanted, scope)
}

/// Whether contents must be equal or must differ somewhere, and from what.
struct WantedKeys {
    equal: bool,
    content: ContentKeys,
}

enum ContentKeys {
    Fill(At<FillDecl>),
    /// What a buffer was filled with at the start.
    Initial(At<String>),
    /// What lies somewhere else at the end.
    Region(At<Location>),
    Sha256([u8; 32]),
}

impl WantedKeys {
    fn read(table: &Table<'_>) -> Read<WantedKeys> {
        let key = table.exactly_one("a comparison", &["equals", "differs"])?;
        let inner = table.req_table(key)?;
        let content = ContentKeys::read(&inner);
        inner.finish()?;
        Ok(WantedKeys {
            equal: key == "equals",
            content: content?,
        })
    }
}

impl ContentKeys {
    fn read(table: &Table<'_>) -> Read<ContentKeys> {
        let keys = [
            "zero", "byte", "counter", "hex", "file", "array", "initial", "region", "sha256",
        ];
        match table.exactly_one("a content", &keys)? {
            "initial" => Initial::read(table, ()).map(|keys| ContentKeys::Initial(keys.initial)),
            "region" => AtTheEnd::read(table, ()).map(|keys| ContentKeys::Region(keys.region)),
            "sha256" => Hash::read(table, ()).map(|keys| ContentKeys::Sha256(keys.sha256.0)),
            _ => FillDecl::read(table).map(ContentKeys::Fill),
        }
    }
}

/// What is compared, in words and in fact.
struct Compared {
    what: String,
    of: Subject,
    bytes: u64,
}

impl Compared {
    fn with(self, wanted: &WantedKeys, scope: &Scope<'_>) -> Read<Expected> {
        let (text, content) = self.content(&wanted.content, scope)?;
        let relation = match wanted.equal {
            true => "equals",
            false => "differs from",
        };
        Ok(Expected {
            text: format!("{} {relation} {text}", self.what),
            check: Check::Bytes {
                of: self.of,
                equal: wanted.equal,
                wanted: content,
            },
        })
    }

    fn content(&self, wanted: &ContentKeys, scope: &Scope<'_>) -> Read<(String, Wanted)> {
        Ok(match wanted {
            ContentKeys::Fill(fill) => {
                let resolved = scope.or_report(&fill.mark, fill.resolve(scope.files, ""))?;
                self.fits(resolved.own_bytes(), &fill.mark, scope)?;
                (fill.to_string(), Wanted::Fill(resolved))
            }
            ContentKeys::Initial(name) => {
                let region = scope.regions.get(&name.value);
                let region =
                    region.ok_or_else(|| scope.unknown(name, "buffer", scope.regions.keys()))?;
                self.fits(Some(region.bytes), &name.mark, scope)?;
                let mut contents = scope.contents.iter();
                let content = contents.find(|content| content.region == *region);
                let content = content.ok_or_else(|| {
                    let message = format!(
                        "\"{}\" is a pring; only a [[memory]] buffer has initial content",
                        name.value
                    );
                    scope.report(&name.mark, message)
                })?;
                let text = format!("the initial content of {}", name.value);
                (text, Wanted::Fill(content.fill.clone()))
            }
            ContentKeys::Region(at) => {
                let size = At {
                    value: Bytes(self.bytes),
                    mark: at.mark.clone(),
                };
                let region = scope.region(at, Some(&size))?;
                scope.plain(&at.mark, &region)?;
                (format!("{} at the end", at.value), Wanted::Region(region))
            }
            ContentKeys::Sha256(hash) => {
                let text = format!("sha256 {}", hex::encode(hash));
                (text, Wanted::Sha256(*hash))
            }
        })
    }

    /// Checks that what is compared with has as many bytes, if it has a number of its own.
    fn fits(&self, own: Option<u64>, mark: &Mark, scope: &Scope<'_>) -> Read<()> {
        match own {
            Some(own) if own != self.bytes => {
                let message = format!("has {own} bytes, but is compared with {}", self.what);
                Err(scope.report(mark, message))
            }
            _ => Ok(()),
        }
    }
}
