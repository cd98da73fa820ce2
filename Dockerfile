# The image that runs Postern. Debian 12's own Docker (20.10) and buildah (1.28) can build it: no step needs BuildKit, or an
# option that a newer builder brought.

# The production dependencies, installed as an unprivileged user. This larger image has Node's headers and the compiler that
# SQLite's driver needs if no prebuilt one can be downloaded.
FROM node:24-bookworm AS install
USER node
WORKDIR /home/node
COPY --chown=node:node package.json package-lock.json .npmrc ./
COPY --chown=node:node scripts/sqlite-driver scripts/
# The sources and object files of the driver are not needed at run time.
RUN npm ci --omit=dev && rm -rf node_modules/sqlite3/deps node_modules/sqlite3/build/Release/obj*

# The image itself. The user that it runs as can write to the data directory only.
FROM node:24-bookworm-slim
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
COPY --from=install /home/node/node_modules node_modules
COPY package.json README.md LICENSE ./
COPY config config
COPY scripts/node.sh scripts/notify-socket.pl scripts/start scripts/postern scripts/
COPY src src
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080
# A stop takes at most five seconds; engines wait ten. No init process is needed: the program handles its
# signals itself and starts no child processes.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.POSTERN_HTTP_PORT + '/health/ready').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["/postern/scripts/start"]
