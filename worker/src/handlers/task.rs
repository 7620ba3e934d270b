//! Tasks that a program does.

use async_trait::async_trait;
use trawl_common::handler::{Answer, Verdict};
use trawl_common::names::CrawlRef;
use trawl_common::task::TaskView;
use trawl_handlers::Ended;

use super::logs::log;
use super::page::said_so;
use crate::spiders::Loaded;
use crate::tasks::{Gave, Ran, TaskRunner};

/// Has tasks done by the programs that their spiders' files name.
pub(crate) struct Programs;

#[async_trait]
impl TaskRunner for Programs {
    fn runs(&self, spider: &Loaded) -> bool {
        spider.program.is_some()
    }

    async fn run(&self, spider: &Loaded, task: TaskView) -> Ran {
        let Some(program) = &spider.program else {
            return Ran::NotRun("the spider has no [handler]".to_owned());
        };
        let crawl = CrawlRef { id: task.crawl.clone(), spider: task.spider.clone() };
        let name = format!("task:{}", task.id);
        match program.task(task).await {
            Ended::Answered(answer) => {
                log(&crawl, &name, &answer.logs);
                ran(answer)
            }
            Ended::Failed { failure, logs } => {
                log(&crawl, &name, &logs);
                Ran::Failed(failure)
            }
            Ended::NotRun(why) => Ran::NotRun(why),
        }
    }
}

fn ran(answer: Answer) -> Ran {
    match answer.verdict {
        Verdict::Done => {
            let Answer { items, tasks, urls, .. } = answer;
            Ran::Done(Gave { items, tasks, urls })
        }
        Verdict::Failed => Ran::Failed(said_so(&answer)),
        Verdict::Skip => Ran::Skipped,
    }
}
