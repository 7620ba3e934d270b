//! What trawl is measured against, and with.
