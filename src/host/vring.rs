//! The vring: where a descriptor program is authored before the device sees any of it.

use super::pages::{PagesError, VringPages};
use crate::arch::Arch;
use crate::arch::regs::Direction;
use crate::desc::{
    BarrierMode, BuildError, CceError, CopyFlags, CopyPacketError, Descriptor, MAX_DESC_BYTES,
    RingId, TemplatePtr, TransposeError, build_copy,
};
use crate::units::Addr;

/// Longest name of a vring in bytes: 256 with the terminator.
const MAX_NAME_BYTES: usize = 255;

/// Ring id of every descriptor of a vring, as the runtime's allocator forces it.
pub(super) const VRING_RING_ID: RingId = RingId::FIRST_LAP;

/// A descriptor program under construction: Tx and Rx halves in host memory, of any length. A clone
/// is a deep copy.
#[derive(Clone, Debug)]
pub struct Vring {
    pub(super) arch: Arch,
    pub(super) name: String,
    pub(super) tx: VringPages,
    pub(super) rx: VringPages,
    pub(super) total_tx_size: u64,
    pub(super) total_rx_size: u64,
    pub(super) stochastic_rounding: bool,
}

/// Why nothing was added to a vring. The vring is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VringError {
    /// The name has no room for its terminator.
    #[error("a vring name has {0} bytes; at most {MAX_NAME_BYTES} fit")]
    NameTooLong(usize),
    /// A half gave out no descriptor.
    #[error("Failed to add descriptor {number}/{count} to vring {vring}: {source}")]
    Allocate {
        /// Which descriptor of the call, from 1.
        number: u64,
        /// Descriptors the call needs in each half.
        count: u64,
        /// Name of the vring.
        vring: String,
        /// Why not.
        source: PagesError,
    },
    /// The builder refused.
    #[error("vring {vring}: {source}")]
    Build {
        /// Name of the vring.
        vring: String,
        /// Why.
        source: BuildError,
    },
    /// A transfer leaves the address space.
    #[error("vring {vring}: {size} bytes at {at} run past the end of the address space")]
    PastEnd {
        /// Name of the vring.
        vring: String,
        /// Source or destination of the transfer.
        at: Addr,
        /// Bytes of the transfer.
        size: u64,
    },
    /// The device has no such event or semaphore.
    #[error(
        "vring {vring}: {arch} does not have {cell} {index} in block {block}; it has blocks 0 to {last_block} of 256 each"
    )]
    NoCell {
        /// Name of the vring.
        vring: String,
        /// Generation of the device.
        arch: Arch,
        /// `event` or `semaphore`.
        cell: &'static str,
        /// Event/semaphore block asked for.
        block: u32,
        /// Cell asked for.
        index: u32,
        /// Last block of the device.
        last_block: u32,
    },
    /// A semaphore increment from the State Buffer on a generation without it.
    #[error("vring {vring}: semaphore_inc_from_sb needs v3; this device is {arch}")]
    SemaphoreFromSb {
        /// Name of the vring.
        vring: String,
        /// Generation of the device.
        arch: Arch,
    },
    /// A copy packet was refused.
    #[error("Failed to build packet for vring {vring}: {source}")]
    Packet {
        /// Name of the vring.
        vring: String,
        /// Why.
        source: CopyPacketError,
    },
    /// A compute packet was refused.
    #[error("Failed to add CCE {op} packet to vring {vring}: {source}")]
    Cce {
        /// Name of the vring.
        vring: String,
        /// Operation asked for.
        op: u32,
        /// Why.
        source: CceError,
    },
    /// A transpose was refused.
    #[error("Failed to add transpose packet to vring {vring}: {source}")]
    Transpose {
        /// Name of the vring.
        vring: String,
        /// Why.
        source: TransposeError,
    },
    /// A transpose flush on a generation without it.
    #[error("vring {vring}: v2 arch does not support transpose flush")]
    TransposeFlush {
        /// Name of the vring.
        vring: String,
    },
    /// No such NeuronCore.
    #[error("vring {vring}: NeuronCore {core} does not exist; the device has 0 to {last}")]
    NoCore {
        /// Name of the vring.
        vring: String,
        /// Core asked for.
        core: u32,
        /// Last core of the device.
        last: u32,
    },
    /// A symbolic address in a vring that is no template.
    #[error(
        "vring {vring}: {at} is a symbol of variable {var_id}, but the vring is not a template"
    )]
    NoTemplate {
        /// Name of the vring.
        vring: String,
        /// The symbolic address.
        at: Addr,
        /// Its variable.
        var_id: u32,
    },
    /// A symbol of a variable that the template has not.
    #[error("vring {vring}: var_id {var_id} exceeds the template's max_var_id {max_var_id}")]
    VarId {
        /// Name of the vring.
        vring: String,
        /// Variable asked for.
        var_id: u32,
        /// Largest variable of the template.
        max_var_id: u32,
    },
}

impl Vring {
    /// An empty vring for a device of generation `arch`.
    ///
    /// # Errors
    /// [`VringError::NameTooLong`] above 255 bytes.
    pub fn new(arch: Arch, name: impl Into<String>) -> Result<Vring, VringError> {
        let name = name.into();
        if name.len() > MAX_NAME_BYTES {
            return Err(VringError::NameTooLong(name.len()));
        }
        Ok(Vring {
            arch,
            name,
            tx: VringPages::default(),
            rx: VringPages::default(),
            total_tx_size: 0,
            total_rx_size: 0,
            stochastic_rounding: false,
        })
    }

    /// An empty template: its addresses may be symbols of the variables 0 to `max_var_id`, see
    /// [`TemplatePtr`](crate::desc::TemplatePtr), which
    /// [`Vring::build_from_template`](super::Vring::build_from_template) resolves.
    ///
    /// # Errors
    /// [`VringError::NameTooLong`] above 255 bytes.
    pub fn new_template(
        arch: Arch,
        name: impl Into<String>,
        max_var_id: u32,
    ) -> Result<Vring, VringError> {
        let mut vring = Vring::new(arch, name)?;
        vring.tx.set_template(Some(max_var_id));
        vring.rx.set_template(Some(max_var_id));
        Ok(vring)
    }

    /// Whether the compute packets of the ring round stochastically.
    pub fn stochastic_rounding_en(&self) -> bool {
        self.stochastic_rounding
    }

    /// Forgets both halves and the totals. The name and the flags stay.
    pub fn free(&mut self) {
        self.tx.truncate(0);
        self.rx.truncate(0);
        self.total_tx_size = 0;
        self.total_rx_size = 0;
    }

    /// The same vring under another name.
    ///
    /// # Errors
    /// [`VringError::NameTooLong`] above 255 bytes.
    pub fn named(mut self, name: impl Into<String>) -> Result<Vring, VringError> {
        self.name = Vring::new(self.arch, name)?.name;
        Ok(self)
    }

    /// Name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Generation of the device it is for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The Tx (m2s) half.
    pub fn tx(&self) -> &VringPages {
        &self.tx
    }

    /// The Rx (s2m) half.
    pub fn rx(&self) -> &VringPages {
        &self.rx
    }

    /// One of the halves.
    pub fn half(&self, direction: Direction) -> &VringPages {
        match direction {
            Direction::M2s => &self.tx,
            Direction::S2m => &self.rx,
        }
    }

    pub(super) fn half_mut(&mut self, direction: Direction) -> &mut VringPages {
        match direction {
            Direction::M2s => &mut self.tx,
            Direction::S2m => &mut self.rx,
        }
    }

    /// Bytes that the Tx descriptors read.
    pub fn total_tx_size(&self) -> u64 {
        self.total_tx_size
    }

    /// Bytes that the Rx descriptors write.
    pub fn total_rx_size(&self) -> u64 {
        self.total_rx_size
    }

    /// Appends a copy of `size` bytes, ordered as the runtime orders it: strong-order write on the
    /// last chunk where the device has it, else DMB on the last chunk. A size of 0 adds nothing.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_transfer(&mut self, src: Addr, dst: Addr, size: u64) -> Result<(), VringError> {
        self.add_desc_transfer_with_barrier(src, dst, size, self.default_barrier())
    }

    /// As [`Vring::add_desc_transfer`], with DMB on the last chunk on every device.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_transfer_ex(
        &mut self,
        src: Addr,
        dst: Addr,
        size: u64,
    ) -> Result<(), VringError> {
        self.add_desc_transfer_with_barrier(src, dst, size, BarrierMode::Dmb)
    }

    /// As [`Vring::add_desc_transfer`], with `barrier` on the last chunk.
    ///
    /// # Errors
    /// [`VringError`]; the vring is then as it was.
    pub fn add_desc_transfer_with_barrier(
        &mut self,
        src: Addr,
        dst: Addr,
        size: u64,
        barrier: BarrierMode,
    ) -> Result<(), VringError> {
        self.all_or_nothing(|vring| {
            vring.append_chunks(src, dst, size, barrier)?;
            vring.total_tx_size += size;
            vring.total_rx_size += size;
            tracing::trace!(vring = vring.name, %src, %dst, size, "added transfer");
            Ok(())
        })
    }

    /// Adds something; if that fails, the vring is as it was.
    pub(super) fn all_or_nothing<T, E>(
        &mut self,
        add: impl FnOnce(&mut Vring) -> Result<T, E>,
    ) -> Result<T, E> {
        let counts = (self.tx.used_desc_count(), self.rx.used_desc_count());
        let totals = (self.total_tx_size, self.total_rx_size);
        let added = add(self);
        if added.is_err() {
            self.tx.truncate(counts.0);
            self.rx.truncate(counts.1);
            (self.total_tx_size, self.total_rx_size) = totals;
        }
        added
    }

    /// Refuses a range that leaves the address space, or a symbol that a template cannot resolve.
    pub(super) fn check_range(&self, at: Addr, size: u64) -> Result<(), VringError> {
        let vring = || self.name.clone();
        let Some(last) = size.checked_sub(1) else {
            return Ok(());
        };
        let symbol = TemplatePtr::from(at);
        let past_end = || VringError::PastEnd {
            vring: vring(),
            at,
            size,
        };
        if !self.tx.is_template() || !symbol.is_template() {
            // Bit 61 alone is a physical address that no device has; a whole symbol is a mistake.
            if Ok(symbol) == TemplatePtr::symbol(symbol.var_id(), symbol.offset()) {
                let var_id = symbol.var_id();
                return Err(VringError::NoTemplate {
                    vring: vring(),
                    at,
                    var_id,
                });
            }
            return at.checked_add(last).map(|_| ()).ok_or_else(past_end);
        }
        let var_id = symbol.var_id();
        let max_var_id = self.tx.max_var_id();
        if var_id > max_var_id {
            return Err(VringError::VarId {
                vring: vring(),
                var_id,
                max_var_id,
            });
        }
        let end = symbol.offset().checked_add(last);
        match end.map(|end| TemplatePtr::symbol(var_id, end)) {
            Some(Ok(_)) => Ok(()),
            _ => Err(past_end()),
        }
    }

    /// The barrier that the runtime puts on a copy when it is not told otherwise.
    pub(super) fn default_barrier(&self) -> BarrierMode {
        if self.arch.spec().caps.strong_order_writes {
            BarrierMode::StrongOrder
        } else {
            BarrierMode::Dmb
        }
    }

    /// A pair of descriptors for each chunk of at most 64 KiB, each pair a packet; the barrier on
    /// the last pair only.
    fn append_chunks(
        &mut self,
        src: Addr,
        dst: Addr,
        size: u64,
        barrier: BarrierMode,
    ) -> Result<(), VringError> {
        let count = size.div_ceil(u64::from(MAX_DESC_BYTES));
        self.check_room(count, count)?;
        self.check_range(src, size)?;
        self.check_range(dst, size)?;
        for number in 1..=count {
            let done = (number - 1) * u64::from(MAX_DESC_BYTES);
            let chunk = (size - done).min(u64::from(MAX_DESC_BYTES)) as u32;
            let ordered = if number == count {
                barrier
            } else {
                BarrierMode::None
            };
            let (tx, rx) = build_copy(
                self.arch,
                Addr(src.0 + done),
                Addr(dst.0 + done),
                chunk,
                VRING_RING_ID,
                ordered,
                CopyFlags::default(),
            )
            .map_err(|source| VringError::Build {
                vring: self.name.clone(),
                source,
            })?;
            for (half, desc) in [
                (&mut self.tx, Descriptor::from(tx)),
                (&mut self.rx, rx.into()),
            ] {
                *half
                    .allocate_next_desc()
                    .map_err(|source| VringError::Allocate {
                        number,
                        count,
                        vring: self.name.clone(),
                        source,
                    })? = desc;
            }
        }
        Ok(())
    }

    /// Refuses what cannot fit before any of it is built.
    pub(super) fn check_room(&self, tx_count: u64, rx_count: u64) -> Result<(), VringError> {
        for (half, count) in [(&self.tx, tx_count), (&self.rx, rx_count)] {
            let room = u64::from(half.room());
            if count > room {
                return Err(VringError::Allocate {
                    number: room + 1,
                    count,
                    vring: self.name.clone(),
                    source: PagesError::LimitReached {
                        used: half.used_desc_count(),
                    },
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
