//! Numbers that scripts and their callers know by the same names.

/// Makes a module of constants, with their text for scripts.
macro_rules! codes {
    ($(#[$doc:meta])* $codes:ident { $($code:ident = $number:literal)* }) => {
        $(#[$doc])*
        pub(crate) mod $codes {
            $(pub(crate) const $code: i64 = $number;)*
            /// Their definitions in Lua.
            pub(crate) const LUA: &str =
                concat!($("local ", stringify!($code), " = ", stringify!($number), "\n"),*);
        }
    };
}

codes! {
    /// Results of admitting a URL.
    taken { KNOWN = 0 NEW = 1 LEFT_OUT = 2 }
}
codes! {
    /// Replies to a claim, where it gives no number of attempts.
    reply { DROP = -1 SEND_AGAIN = -2 SNOOZE = -3 FULL = -5 NO_ROOM = -6 NEWER = -7 }
}
codes! {
    /// Senders of messages: strangers, and programs of trawl, of URLs or of requests.
    sender { STRANGER = 0 OUR_URL = 1 OUR_REQUEST = 2 }
}
codes! {
    /// Replies to a start.
    start { LOST = 0 GO = 1 POISON = 2 LIMIT = 3 AWAITED = 4 }
}
codes! {
    /// Replies to the end of a lease.
    closing { STALE = 0 CLOSED = 1 FINISHED = 2 DISCOVERED = 3 }
}
codes! {
    /// The reply to parking a URL, where it gives no number of attempts.
    parked { NOT_HELD = -1 }
}
codes! {
    /// Whether a URL was seen.
    seen { NEVER = 0 ENDED = 1 PENDING_NOW = 2 }
}
codes! {
    /// Replies to a request for a slot, and an instant that is not there.
    slot { AT_ONCE = 0 RESERVED = 1 LATER = 2 TOO_LATE = 3 BLOCKED = 4 NONE = -1 ASIDE = -2 }
}
codes! {
    /// The ends of a request, in place of how long it may go on.
    ended { LEFT = -1 WELCOME = -2 }
}
