//! One half of a vring: a list of pages that grows a page at a time.

use crate::desc::Descriptor;

/// Descriptors of a page. Exactly 65536, so that a flat index splits into page (`idx >> 16`) and
/// slot (`idx & 0xffff`).
pub const PAGE_DESCS: u32 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 16;

/// Most descriptors of a half: a few short of 256 pages, so that no index needs a 257th.
pub const MAX_VRING_DESCS: u32 = 16_777_200;

/// Why a half gave out no descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PagesError {
    /// The half is full.
    #[error("Descriptor limit reached. Descriptors in vring {used}, Max allowed {MAX_VRING_DESCS}")]
    LimitReached {
        /// Descriptors in the half.
        used: u32,
    },
    /// The process has no memory for another page.
    #[error("Failed to expand vring page pool")]
    OutOfMemory,
}

/// The Tx or the Rx descriptors of a vring, addressed by flat index. A clone is a deep copy.
#[derive(Clone, Debug, Default)]
pub struct VringPages {
    used_desc_count: u32,
    /// All but the last are full; each has room for [`PAGE_DESCS`] from the start.
    pages: Vec<Vec<Descriptor>>,
    /// Largest variable id of a template's symbols; `None` if the half is no template.
    template: Option<u32>,
}

impl VringPages {
    /// Descriptors in use; also the index of the next one.
    pub fn used_desc_count(&self) -> u32 {
        self.used_desc_count
    }

    /// Whether addresses may be symbols, see [`TemplatePtr`](crate::desc::TemplatePtr).
    pub fn is_template(&self) -> bool {
        self.template.is_some()
    }

    /// Largest variable id that a symbol may have; 0 if the half is no template.
    pub fn max_var_id(&self) -> u32 {
        self.template.unwrap_or(0)
    }

    pub(super) fn set_template(&mut self, max_var_id: Option<u32>) {
        self.template = max_var_id;
    }

    /// Descriptors that still fit.
    pub fn room(&self) -> u32 {
        MAX_VRING_DESCS - self.used_desc_count
    }

    /// Claims the next descriptor, all zero.
    ///
    /// # Errors
    /// [`PagesError`]; the half is then as it was.
    pub fn allocate_next_desc(&mut self) -> Result<&mut Descriptor, PagesError> {
        let used = self.used_desc_count;
        // Before the page boundary is looked at: index 0xffffff must never be reached.
        if used >= MAX_VRING_DESCS {
            return Err(PagesError::LimitReached { used });
        }
        let (page, slot) = split(used);
        if slot == 0 {
            let mut fresh = Vec::new();
            fresh
                .try_reserve_exact(PAGE_DESCS as usize)
                .map_err(|_| PagesError::OutOfMemory)?;
            self.pages.push(fresh);
        }
        self.pages[page].push(Descriptor::default());
        self.used_desc_count = used + 1;
        Ok(&mut self.pages[page][slot])
    }

    /// The used descriptors of the page with the given number, `idx >> 16` of the indices it holds;
    /// `None` past the last page.
    pub fn find_page_by_idx(&self, page: u32) -> Option<&[Descriptor]> {
        self.pages.get(page as usize).map(Vec::as_slice)
    }

    /// The descriptor with the given flat index; `None` if it is not in use.
    pub fn get(&self, idx: u32) -> Option<&Descriptor> {
        let (_, slot) = split(idx);
        self.find_page_by_idx(idx >> PAGE_SHIFT)?.get(slot)
    }

    /// As [`VringPages::get`], to rewrite.
    pub(super) fn get_mut(&mut self, idx: u32) -> Option<&mut Descriptor> {
        if idx >= self.used_desc_count {
            return None;
        }
        let (page, slot) = split(idx);
        self.pages.get_mut(page)?.get_mut(slot)
    }

    /// As [`VringPages::runs`], to rewrite.
    pub(super) fn runs_mut(&mut self) -> impl Iterator<Item = &mut [Descriptor]> {
        self.pages.iter_mut().map(Vec::as_mut_slice)
    }

    /// The used descriptors in order, page by page: a run never spans two pages.
    pub fn runs(&self) -> impl Iterator<Item = &[Descriptor]> {
        (0..).map_while(|page| self.find_page_by_idx(page))
    }

    /// Gives back the descriptors from index `used` on.
    pub(super) fn truncate(&mut self, used: u32) {
        if used < self.used_desc_count {
            let (page, slot) = split(used);
            self.pages.truncate(page + usize::from(slot > 0));
            if let Some(last) = self.pages.get_mut(page) {
                last.truncate(slot);
            }
            self.used_desc_count = used;
        }
    }
}

/// Page and slot of a flat index.
fn split(idx: u32) -> (usize, usize) {
    let slot = idx & (PAGE_DESCS - 1);
    ((idx >> PAGE_SHIFT) as usize, slot as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u32) -> VringPages {
        let mut pages = VringPages::default();
        for n in 0..count {
            pages.allocate_next_desc().unwrap().words[0] = n;
        }
        pages
    }

    #[test]
    fn a_page_is_a_mebibyte() {
        let page = &filled(1).pages[0];
        assert_eq!(page.capacity() * size_of::<Descriptor>(), 0x10_0000);
    }

    #[test]
    fn indices_split_at_the_page_boundary() {
        let pages = filled(2 * PAGE_DESCS + 1);
        let word = |idx| pages.get(idx).map(|desc| desc.words[0]);
        for idx in [0, 1, 65535, 65536, 131071, 131072] {
            assert_eq!(word(idx), Some(idx));
        }
        assert_eq!(word(131073), None);
        assert_eq!(word(u32::MAX), None);
        let lengths: Vec<usize> = pages.runs().map(<[_]>::len).collect();
        assert_eq!(lengths, [65536, 65536, 1]);
        assert_eq!(pages.find_page_by_idx(2).unwrap()[0].words[0], 131072);
        assert!(pages.find_page_by_idx(3).is_none());
    }

    #[test]
    fn a_full_page_needs_no_second() {
        assert_eq!(filled(0).runs().count(), 0);
        assert_eq!(filled(65535).runs().count(), 1);
        assert_eq!(filled(65536).runs().count(), 1);
        assert_eq!(filled(65537).runs().count(), 2);
    }

    /// Untouched pages cost no memory, so the cap itself can be reached.
    #[test]
    fn the_cap_is_the_last_that_fits() {
        let mut pages = VringPages::default();
        for _ in 0..MAX_VRING_DESCS - 1 {
            pages.allocate_next_desc().unwrap();
        }
        assert_eq!(pages.room(), 1);
        pages.allocate_next_desc().unwrap();
        let full = Err(PagesError::LimitReached { used: 16_777_200 });
        assert_eq!(pages.allocate_next_desc().map(|desc| *desc), full);
        assert_eq!(pages.used_desc_count(), 0xff_fff0);
        assert_eq!(pages.runs().count(), 256);
        let bytes: usize = pages
            .pages
            .iter()
            .map(|page| size_of::<Descriptor>() * page.capacity())
            .sum();
        assert!(bytes <= MAX_VRING_DESCS as usize * 16 * 110 / 100);
    }

    #[test]
    fn rewriting_reaches_what_is_in_use() {
        let mut pages = filled(PAGE_DESCS + 1);
        pages.get_mut(PAGE_DESCS).unwrap().words[1] = 7;
        assert_eq!(pages.get_mut(PAGE_DESCS + 1), None);
        let lengths: Vec<usize> = pages.runs_mut().map(|run| run.len()).collect();
        assert_eq!(lengths, [65536, 1]);
        let copy = pages.clone();
        for run in pages.runs_mut() {
            run.fill(Descriptor::default());
        }
        assert_eq!(copy.get(PAGE_DESCS).unwrap().words, [65536, 7, 0, 0]);
        assert_eq!(pages.get(PAGE_DESCS).unwrap().words, [0; 4]);
    }

    #[test]
    fn truncating_forgets() {
        let mut pages = filled(PAGE_DESCS + 3);
        pages.truncate(PAGE_DESCS + 9);
        assert_eq!(pages.used_desc_count(), PAGE_DESCS + 3);
        pages.truncate(PAGE_DESCS);
        assert_eq!(pages.runs().count(), 1);
        pages.truncate(5);
        assert_eq!(*pages.allocate_next_desc().unwrap(), Descriptor::default());
        assert_eq!(pages.used_desc_count(), 6);
        pages.truncate(0);
        assert_eq!(pages.runs().count(), 0);
    }
}
