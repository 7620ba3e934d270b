//! A Redis that has used all of its `maxmemory`: it refuses every command that might take more.
//!
//! What takes in URLs is refused then, and waits. What brings URLs to their end is let through, for that makes room: scripts by
//! the flag `allow-oom` (`scripts.rs`), single commands by [`anyway`]. What these add is bounded by what is there: a holder in the
//! record of a URL that a worker has in hand, an outbox entry until it is confirmed, the schedule of a host that has URLs.

use std::sync::LazyLock;

use redis::{Arg, Cmd, FromRedisValue, RedisResult, Script};

use super::{Link, has_code};

static ANYWAY: LazyLock<Script> = LazyLock::new(|| {
    Script::new("#!lua flags=allow-oom\nreturn redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))\n")
});

/// Sends a command whose first argument is its only key; to a server that is full in such a way that it takes it all the same.
pub(super) async fn anyway<T: FromRedisValue>(link: &Link, command: &Cmd) -> RedisResult<T> {
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
