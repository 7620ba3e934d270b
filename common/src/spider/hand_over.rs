//! `[[hand_over]]`: what a spider's pages hand to other spiders.

use super::{PageFollow, TaskTemplate};
use crate::mistake::Sited;
use crate::names::SpiderName;

/// `[[hand_over]]`: a rule for links or tasks that pages hand to a spider.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOver {
    /// The spider that they are handed to.
    pub spider: Sited<SpiderName>,
    /// The names of the kinds of pages on which it looks for them; every page if empty.
    pub page: Vec<Sited<String>>,
    /// The links that it hands over, and the values that go along with each.
    pub links: PageFollow,
    /// In place of links, a task for the spider's program.
    pub task: Option<TaskTemplate>,
}
