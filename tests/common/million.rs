//! A scenario of many descriptors on sixteen queues, as text.

/// Descriptors of a copy and an increment.
const ROUND: u64 = 65;

/// Queues, one an engine.
pub const QUEUES: u64 = 16;

/// At least `descriptors` Tx descriptors in all: in each queue copies of 4 MiB, which are 64 of them, then as
/// many increments with SOW. The host waits for the last increment of each queue and looks at what its
/// first copy wrote. Without `sow` that is a race for each of the 64 chunks.
pub fn scenario(descriptors: u64, sow: bool) -> String {
    let rounds = descriptors.div_ceil(QUEUES * ROUND);
    let slots = (rounds * ROUND).next_multiple_of(16).max(32);
    let barrier = if sow { "sow" } else { "none" };
    format!(
        r#"name = "many"
config = "cayman"

[[pring]]
repeat = {{ q = "0..{QUEUES}" }}
name = "tx{{q}}"
type = "tx"
at = "hbm0 + {{q}} * 8MiB"
descriptors = {slots}

[[pring]]
repeat = {{ q = "0..{QUEUES}" }}
name = "rx{{q}}"
type = "rx"
at = "hbm0 + 4MiB + {{q}} * 8MiB"
descriptors = {slots}

[[step]]
repeat = {{ stack = "0..4", n = "0..4", round = "0..{rounds}" }}
do = "add_desc_transfer"
vring = "v{{stack}}{{n}}"
from = "hbm0 + 512MiB"
to = "hbm{{stack}} + 1GiB + {{n}} * 5GiB + {{round}} * 4MiB"
size = "4MiB"
barrier = "none"

[[step]]
repeat = {{ stack = "0..4", n = "0..4", round = "0..{rounds}" }}
do = "add_desc_semaphore_inc"
vring = "v{{stack}}{{n}}"
semaphore = "{{stack}}.{{n}}"
barrier = "{barrier}"

[[step]]
repeat = [{names}]
do = "dump_to_pring"
vring = "v{{name}}"
tx = "tx{{q}}"
rx = "rx{{q}}"

[[step]]
repeat = {{ q = "0..{QUEUES}" }}
do = "init_queue"
engine = "{{q}}"
queue = 0
tx = "tx{{q}}"
rx = "rx{{q}}"

[[step]]
repeat = {{ q = "0..{QUEUES}" }}
do = "trigger"
engine = "{{q}}"
queue = 0

[[step]]
repeat = {{ stack = "0..4", n = "0..4" }}
do = "wait"
semaphore = "{{stack}}.{{n}}"
ge = {rounds}

[[step]]
repeat = {{ stack = "0..4", n = "0..4" }}
do = "observe"
name = "seen{{stack}}{{n}}"
at = "hbm{{stack}} + 1GiB + {{n}} * 5GiB"
size = "4MiB"
"#,
        names = (0..QUEUES)
            .map(|q| format!("{{ name = \"{}{}\", q = {q} }}", q / 4, q % 4))
            .collect::<Vec<_>>()
            .join(", "),
    )
}
