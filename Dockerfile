# Builds the native SQLite driver where no prebuilt one can be downloaded; none of its tools go into the image.
FROM node:24-bookworm AS install
WORKDIR /postern
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    POSTERN_DATA_DIR=/data \
    POSTERN_HTTP_HOST=0.0.0.0 \
    POSTERN_LOG_FORMAT=json
WORKDIR /postern
COPY --from=install /postern/node_modules node_modules
COPY package.json README.md LICENSE ./
COPY config config
COPY scripts/node.sh scripts/start scripts/postern scripts/
COPY src src
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=10s CMD ["node", "-e", "fetch('http://127.0.0.1:8080/api/public/openapi.json').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["scripts/start"]
