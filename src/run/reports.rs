//! What the kernel reports, and when it is shown.
//!
//! Part of `run`.
//! Watch for: while the list is being mounted, failed starts wait here. If the list is found unfit for them, the message
//! that says so has the same words, and they are not said twice.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cordis::{Loader, Report, Service, What};
use crate::harness::cli::console::Console;

pub(super) struct Reports {
    console: Rc<Console>,
    /// What waits; nothing waits any more once the list was judged.
    held: RefCell<Option<Vec<Report>>>,
}

impl Reports {
    pub(super) fn to(console: Rc<Console>) -> Self {
        Reports { console, held: RefCell::new(Some(Vec::new())) }
    }

    pub(super) fn receive(&self, report: &Report) {
        if is_fault_of_list(report) {
            return;
        }
        match &mut *self.held.borrow_mut() {
            Some(held) if report.what == What::BodyFailed => held.push(report.clone()),
            _ => self.console.report(report),
        }
    }

    /// The list was judged in these words, if it had to be. What they leave out is shown now.
    pub(super) fn release(&self, judgement: Option<&str>) {
        let held = self.held.take().unwrap_or_default();
        let is_said = |report: &Report| {
            let cause = report.error.as_ref().map(ToString::to_string);
            judgement.zip(cause).is_some_and(|(said, cause)| said.contains(&cause))
        };
        held.iter().filter(|it| !is_said(it)).for_each(|it| self.console.report(it));
    }
}

/// What the loader refuses ends the program with the same words, or is said by the loader itself.
fn is_fault_of_list(report: &Report) -> bool {
    report.plugin == Loader::NAME && report.what == What::BodyFailed
}
