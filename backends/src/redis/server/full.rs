//! A Redis that has used all of its `maxmemory`: it refuses every command that might take more.
//!
//! Commands that admit URLs are refused then, and wait. Commands that bring URLs to their end are let through,
//! because that frees memory: scripts by the flag `allow-oom` (`scripts.rs`), single commands by [`anyway`]. They
//! add little, bounded by the existing data: a holder in the record of a URL that a worker holds, an outbox entry
//! until it is confirmed, the schedule of a host that has URLs.

use std::sync::LazyLock;

use redis::{Arg, Cmd, FromRedisValue, RedisResult, Script};

use crate::redis::{Link, has_code};

static ANYWAY: LazyLock<Script> = LazyLock::new(|| {
    Script::new("#!lua flags=allow-oom\nreturn redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))\n")
});

/// Sends a command whose first argument is its only key, in such a way that even a full server accepts it.
pub(crate) async fn anyway<T: FromRedisValue>(link: &Link, command: &Cmd) -> RedisResult<T> {
    match command.query_async(&mut link.clone()).await {
        Err(error) if has_code(&error, "OOM") => through_script(link, command).await,
        answered => answered,
    }
}

async fn through_script<T: FromRedisValue>(link: &Link, command: &Cmd) -> RedisResult<T> {
    let mut words = command.args_iter().filter_map(|arg| match arg {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    let mut call = ANYWAY.prepare_invoke();
    call.arg(words.next());
    call.key(words.next());
    words.for_each(|word| {
        call.arg(word);
    });
    call.invoke_async(&mut link.clone()).await
}
