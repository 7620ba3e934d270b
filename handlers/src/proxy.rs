//! The proxy that programs are given: each run may use it by a secret of its own, as long as it lasts.

use std::any::Any;
use std::fmt;
use std::io;

use trawl_common::spider::ProxyUse;
use trawl_common::task::TaskView;

/// The variable that names the proxy.
const OFFERED: &str = "TRAWL_PROXY";

/// Those that HTTP clients obey. Node's own does so if the last one says so.
const OBEYED: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
const NODE_OBEYS: (&str, &str) = ("NODE_USE_ENV_PROXY", "1");

/// Lets the runs of one program use a proxy.
pub trait ProxyAccess: fmt::Debug + Send + Sync {
    /// Lets one run use it: the run for a task, or that of a program which lives.
    ///
    /// # Errors
    /// There is no proxy, as the system gives no port.
    fn admit(&self, task: Option<&TaskView>) -> io::Result<Admission>;
}

/// That a run may use a proxy, until this is dropped.
pub struct Admission {
    /// Where the proxy is, with the name and the secret of the run.
    pub url: String,
    /// What ends the admission when it is dropped.
    pub held: Box<dyn Any + Send + Sync>,
}

impl Admission {
    /// What the run's environment says of the proxy.
    pub(crate) fn variables(&self, to_be: ProxyUse) -> Vec<(&'static str, &str)> {
        let mut variables = vec![(OFFERED, &*self.url)];
        if to_be == ProxyUse::All {
            variables.extend(OBEYED.map(|name| (name, &*self.url)));
            variables.push(NODE_OBEYS);
        }
        variables
    }
}
