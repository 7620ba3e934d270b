//! The proxy for programs: each run has a secret of its own, valid while it lasts.

use std::any::Any;
use std::fmt;
use std::io;

use trawl_common::spider::ProxyUse;
use trawl_common::task::TaskView;

/// The variable that names the proxy.
const OFFERED: &str = "TRAWL_PROXY";

/// The variables that HTTP clients obey. Node's own client does so only with [`NODE_OBEYS`].
const OBEYED: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
const NODE_OBEYS: (&str, &str) = ("NODE_USE_ENV_PROXY", "1");

/// Admits the runs of one program to a proxy.
pub trait ProxyAccess: fmt::Debug + Send + Sync {
    /// Admits one run: the run for a task, or that of a program that stays alive if `task` is `None`.
    ///
    /// # Errors
    /// If there is no proxy because the system gives it no port.
    fn admit(&self, task: Option<&TaskView>) -> io::Result<Admission>;
}

/// Permission for a run to use a proxy, until it is dropped.
pub struct Admission {
    /// The URL of the proxy, with the name and the secret of the run.
    pub url: String,
    /// Ends the permission when dropped.
    pub held: Box<dyn Any + Send + Sync>,
}

impl Admission {
    /// Returns the environment variables that tell the run about the proxy.
    pub(crate) fn variables(&self, to_be: ProxyUse) -> Vec<(&'static str, &str)> {
        let mut variables = vec![(OFFERED, &*self.url)];
        if to_be == ProxyUse::All {
            variables.extend(OBEYED.map(|name| (name, &*self.url)));
            variables.push(NODE_OBEYS);
        }
        variables
    }
}
