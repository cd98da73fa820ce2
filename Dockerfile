# The image that runs Postern. scripts/image-steps.ts goes through these steps without a container engine, and starts what
# comes out as an engine would with a read-only root.

# The production dependencies, installed as a user without rights. The whole image has the compiler that SQLite's driver
# needs where no built one can be had, and Node's headers.
FROM node:24-bookworm AS install
ENV npm_config_nodedir=/usr/local
USER node
WORKDIR /home/node
COPY --chown=node:node package.json package-lock.json .npmrc ./
# What the driver was built from is no part of it.
RUN npm ci --omit=dev && rm -rf node_modules/sqlite3/deps node_modules/sqlite3/build/Release/obj*

# What runs: nothing of it can be written by the user that it runs as, but the data.
FROM node:24-bookworm-slim
# SQLite sorts what is large in files, and Node keeps what it has compiled (40 MB of memory less from the second start on);
# with a read-only root the volume is the only place for them.
ENV NODE_ENV=production \
    PATH=/postern/scripts:$PATH \
    TMPDIR=/data \
    NODE_COMPILE_CACHE=/data/cache \
    POSTERN_DATA_DIR=/data \
    POSTERN_HTTP_HOST=0.0.0.0 \
    POSTERN_HTTP_PORT=8080 \
    POSTERN_LOG_FORMAT=json
WORKDIR /postern
COPY --from=install /home/node/node_modules node_modules
COPY package.json README.md LICENSE ./
COPY config config
COPY scripts/node.sh scripts/start scripts/postern scripts/
COPY src src
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080
# A stop takes ten seconds at most, which is what engines wait. No init is needed: the program takes its signals itself and
# starts no others.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=2s \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.POSTERN_HTTP_PORT + '/health/ready').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["/postern/scripts/start"]
