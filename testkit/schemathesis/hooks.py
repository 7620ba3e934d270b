"""How schemathesis sends what is no JSON: spiders' files, and tars of them."""

import schemathesis


@schemathesis.serializer("application/toml", "application/x-tar", "application/gzip")
def as_it_is(context, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")
