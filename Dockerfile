# trawl's image: the program trawl, which is also called producer and worker. Any Docker since 17.05 builds it, BuildKit or not.

# What decides the dependencies, and nothing else: as long as it stays the same, Docker takes the layer
# with the compiled dependencies from its cache. Whatever crates the workspace has are found by themselves.
FROM rust:1.95.0-slim-bookworm AS manifests
WORKDIR /src
COPY . .
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock ! -path '*/src/lib.rs' ! -path '*/src/main.rs' \
      ! -path '*/tests/*.rs' ! -path '*/benches/*.rs' ! -path '*/src/bin/*.rs' -delete \
 && find . -depth -type d -empty -delete \
 && find . \( -name lib.rs -o -path '*/tests/*.rs' -o -path '*/benches/*.rs' \) -exec truncate -s 0 {} + \
 && find . \( -name main.rs -o -path '*/src/bin/*.rs' \) -exec sh -c 'for file; do echo "fn main() { }" >"$file"; done' sh {} +

FROM rust:1.95.0-slim-bookworm AS build
# SQLite, ring, zstd and the allocator are C.
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends gcc libc6-dev make >/dev/null \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY --from=manifests /src .
# Or `release`, which compiles faster and is an eighth slower; or `quick`, which is not optimised at all.
ARG PROFILE=dist
RUN cargo build --profile $PROFILE --locked -p trawl --bins
COPY . .
# For `trawl --version`.
ARG REVISION=
# Files keep the times they had outside, which may lie before the build above. What was compiled takes gigabytes, and no
# later build can use it.
RUN find . -path ./target -prune -o -name '*.rs' -exec touch {} + \
 && TRAWL_COMMIT=$REVISION cargo build --profile $PROFILE --locked -p trawl --bins \
 && install -D -t /out target/$PROFILE/trawl && ln -s trawl /out/producer && ln -s trawl /out/worker \
 && rm -rf target

FROM debian:bookworm-20260824-slim
# For workers that render pages: chromium-headless-shell, some 450 MB with all that it needs.
ARG BROWSER=
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates python3 $BROWSER >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin trawl \
 && install -d -o trawl -g trawl /data /data/items
COPY --from=build /out/ /usr/local/bin/
# What programs of spiders in Python import.
COPY sdk/python/trawl_handler.py /usr/lib/python3/dist-packages/
# Items, state files and a trawl.toml, if there is one, are here.
WORKDIR /data
USER 1000:1000
CMD ["trawl", "--help"]
# Last, as they change with each commit: docker build --build-arg REVISION="$(git rev-parse HEAD)" --build-arg SOURCE=<where it is kept>
ARG VERSION=0.1.0
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title=trawl \
      org.opencontainers.image.description="A distributed scraper worker fleet on RabbitMQ and Redis that loses nothing" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.source=$SOURCE
