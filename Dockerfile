# The image that runs Postern. Debian 12's own Docker (20.10) and buildah (1.28) can build it: no step needs BuildKit, or an
# option that a newer builder brought.

# To build the same image again, fix both bases: --build-arg NODE_IMAGE=node@sha256:… --build-arg BASE_IMAGE=debian@sha256:…
ARG NODE_IMAGE=node:24-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

# The production dependencies, installed as an unprivileged user. This larger image has Node's headers and the compiler that
# SQLite's driver needs if no prebuilt one can be downloaded.
FROM $NODE_IMAGE AS install
USER node
WORKDIR /home/node
COPY --chown=node:node package.json package-lock.json .npmrc ./
COPY --chown=node:node scripts/sqlite-driver scripts/lean-modules scripts/
RUN npm ci --omit=dev && scripts/lean-modules .

# The image itself: Debian and Node's program, without npm. The user that it runs as can write to the data directory only. The
# number is that of Caddy's user in config/compose.yaml.
FROM $BASE_IMAGE
RUN useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin postern
# SQLite uses temporary files for large sorts, and Node caches compiled code (40 MB less memory from the second start on).
# With a read-only root, the volume is the only place for both.
ENV NODE_ENV=production \
    PATH=/postern/scripts:$PATH \
    TMPDIR=/data \
    NODE_COMPILE_CACHE=/data/cache \
    POSTERN_DATA_DIR=/data \
    POSTERN_HTTP_HOST=0.0.0.0 \
    POSTERN_HTTP_PORT=8080 \
    POSTERN_LOG_FORMAT=json
WORKDIR /postern
COPY --from=install /usr/local/bin/node /usr/local/bin/
COPY --from=install /home/node/node_modules node_modules
COPY package.json README.md LICENSE ./
COPY config config
COPY scripts/healthy scripts/node.sh scripts/notify-socket.pl scripts/start scripts/postern scripts/
COPY src src
RUN install -d -o postern -g postern -m 0700 /data
USER postern
VOLUME /data
# HTTP behind a proxy; HTTP and HTTPS with certificates of its own; returned mail; submission.
EXPOSE 8080 80 443 25 465 587
# `npm run release` adds the version and the commit.
LABEL org.opencontainers.image.title="Postern" \
    org.opencontainers.image.description="Self-hosted transactional mail: an HTTP API and its own MTA" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.base.name="debian:bookworm-slim"
# A stop takes at most five seconds; engines wait ten. No init process is needed: the program handles its
# signals itself and starts no child processes.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/postern/scripts/healthy"]
CMD ["/postern/scripts/start"]
