//! The numbers of a pool's browsers, for operators.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trawl_common::ports::Browsers;
use trawl_handlers::Usage;

/// The numbers of a pool, and the processor time that its browsers have taken.
#[derive(Debug, Default)]
pub struct Counts(Mutex<(Browsers, Duration)>);

impl Counts {
    /// Returns the numbers now; `None` as long as no page has needed a browser.
    pub fn now(&self) -> Option<Browsers> {
        let (browsers, cpu) = *self.0.lock();
        let is_used = browsers != Browsers::default();
        is_used.then_some(Browsers { cpu_seconds: cpu.as_secs(), ..browsers })
    }

    /// Counts a page that was rendered.
    pub(crate) fn add_rendered(&self) {
        self.0.lock().0.rendered += 1;
    }

    /// Counts a browser that has died.
    pub(crate) fn add_died(&self) {
        self.0.lock().0.died += 1;
    }

    /// Counts a page that waits for a place, until the result is dropped.
    pub(crate) fn waiting(self: &Arc<Self>) -> Counted {
        Counted::new(self, |browsers| &mut browsers.waiting)
    }

    /// Counts a page that has a place, until the result is dropped.
    pub(crate) fn page(self: &Arc<Self>) -> Counted {
        Counted::new(self, |browsers| &mut browsers.pages)
    }

    /// Counts a browser, until the result is dropped.
    pub(crate) fn browser(self: &Arc<Self>) -> CountedBrowser {
        let counted = Counted::new(self, |browsers| &mut browsers.running);
        CountedBrowser { counted, usage: Usage::default() }
    }
}

/// Something that is counted as long as it is there.
pub(crate) struct Counted {
    counts: Arc<Counts>,
    number: fn(&mut Browsers) -> &mut u64,
}

impl Counted {
    fn new(counts: &Arc<Counts>, number: fn(&mut Browsers) -> &mut u64) -> Self {
        *number(&mut counts.0.lock().0) += 1;
        Self { counts: Arc::clone(counts), number }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *(self.number)(&mut self.counts.0.lock().0) -= 1;
    }
}

/// A browser that is counted as long as it is there, with its memory. Its processor time counts for good.
pub(crate) struct CountedBrowser {
    counted: Counted,
    usage: Usage,
}

impl CountedBrowser {
    /// Replaces what the browser was last known to use.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        let (browsers, cpu) = &mut *self.counted.counts.0.lock();
        browsers.memory = browsers.memory - self.usage.memory + usage.memory;
        *cpu += usage.cpu.saturating_sub(self.usage.cpu);
        self.usage = usage;
    }
}

impl Drop for CountedBrowser {
    fn drop(&mut self) {
        self.counted.counts.0.lock().0.memory -= self.usage.memory;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_no_longer_counts_but_for_its_processor_time() {
        let counts = Arc::<Counts>::default();
        assert_eq!(counts.now(), None);
        let (waiting, page) = (counts.waiting(), counts.page());
        let (mut one, mut other) = (counts.browser(), counts.browser());
        one.set_usage(Usage { memory: 5, cpu: Duration::from_secs(2) });
        one.set_usage(Usage { memory: 3, cpu: Duration::from_secs(3) });
        other.set_usage(Usage { memory: 10, cpu: Duration::from_millis(1_500) });
        drop(waiting);
        counts.add_rendered();
        let both =
            Browsers { running: 2, pages: 1, waiting: 0, memory: 13, cpu_seconds: 4, rendered: 1, died: 0 };
        assert_eq!(counts.now(), Some(both));
        drop((page, other));
        counts.add_died();
        assert_eq!(counts.now(), Some(Browsers { running: 1, pages: 0, memory: 3, died: 1, ..both }));
    }
}
