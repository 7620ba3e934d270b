//! Tasks run by a program.

use async_trait::async_trait;
use trawl_common::fleet_log::LogWriter;
use trawl_common::handler::{Answer, LogLine, Verdict};
use trawl_common::names::CrawlRef;
use trawl_common::task::TaskView;
use trawl_handlers::{Ended, ItemsFile};

use super::{Gave, Ran, TaskRunner};
use crate::programs::{log, said_so};
use crate::spiders::Loaded;

/// Runs tasks with the programs that their spiders' files name.
pub(crate) struct Programs;

#[async_trait]
impl TaskRunner for Programs {
    fn runs(&self, spider: &Loaded) -> bool {
        spider.program.is_some()
    }

    async fn run(&self, spider: &Loaded, task: TaskView, writer: &LogWriter) -> Ran {
        let Some(program) = &spider.program else {
            return Ran::NotRun("the spider has no [handler]".to_owned());
        };
        let crawl = CrawlRef { id: task.crawl.clone(), spider: task.spider.clone() };
        let name = format!("task:{}", task.id);
        match program.task(task).await {
            Ended::Answered(mut answer, file) => {
                let logs = std::mem::take(&mut answer.logs);
                let ran = ran(answer, file, &logs);
                log(writer, &crawl, &name, logs);
                ran
            }
            Ended::Failed { failure, logs } => {
                log(writer, &crawl, &name, logs);
                Ran::Failed(failure)
            }
            Ended::NotRun(why) => Ran::NotRun(why),
        }
    }
}

fn ran(answer: Answer, file: Option<ItemsFile>, logs: &[LogLine]) -> Ran {
    match answer.verdict {
        Verdict::Done => {
            let Answer { items, tasks, urls, .. } = answer;
            Ran::Done(Gave { items, file, tasks, urls })
        }
        Verdict::Failed => Ran::Failed(said_so(logs)),
        Verdict::Skip => Ran::Skipped,
    }
}
