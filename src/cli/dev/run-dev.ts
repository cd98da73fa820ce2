/**
 * Runs a development server until it is stopped: the whole service in this process, on loopback, with all mail as test mail
 * (platform/values/test-route.ts), a DNS server of its own, and the organization of dev-tenant.ts.
 */

import { once } from 'node:events';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { openLog } from '#cli/maillog/log-file.ts';
import { readEvents, settledPosition } from '#mail/record/rows/read-events.ts';
import { listAttemptsAfter } from '#mail/webhooks/rows/webhook-attempts.ts';
import { newId } from '#platform/base/id.ts';
import type { Log } from '#platform/base/log.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { devDirectory } from '#platform/settings/installation.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';
import { testDomain } from '#platform/values/test-route.ts';
import { start } from '#server/start.ts';
import { openDirectory, writeSettings } from './dev-directory.ts';
import { startDevDns } from './dev-dns.ts';
import { type DevTenant, prepareTenant, publishedRecords } from './dev-tenant.ts';
import { printEvent, printLogLines, printPost, printStart } from './dev-view.ts';

export interface DevOptions {
  directory: string;
  fresh?: boolean;
  port?: number;
  domain: string;
}

const host = '127.0.0.1';
const defaultPorts = { http: 8080, smtp: 2525 };
const pollMs = 200;
const pageSize = 100;

export async function runDev(context: CommandContext, options: DevOptions): Promise<void> {
  const stopped = context.abortOn('SIGINT', 'SIGTERM');
  await openDirectory(options.directory, options.fresh === true);
  let open: { db: Db; config: Config } | null = null;
  const dns = await startDevDns(async () => (open ? publishedRecords(open.db, open.config) : []));
  try {
    const settings = await settingsOf(options, dns.address);
    const config = loadConfig(settings);
    const server = await start(config, { log: warningsTo(context), allIsTest: true });
    const db = await openDatabase(config);
    try {
      open = { db, config };
      writeSettings(options.directory, settings);
      const position = await settledPosition(db);
      const tenant = await prepareTenant(db, { config, domain: options.domain, now: context.now() });
      const emails = `${server.url}/dashboard/o/${tenant.orgId}/emails`;
      printStart(context.out, describe(options, config, server.url, tenant));
      await followMail(context, db, { position, emails, config, stopped });
    } finally {
      await server.stop();
      open = null;
      await db.destroy();
    }
  } finally {
    dns.close();
  }
}

/** Nothing of the environment: a development server is never the server of a real installation. */
async function settingsOf({ directory, port }: DevOptions, dnsServer: string) {
  return {
    POSTERN_DATA_DIR: directory,
    POSTERN_HOSTNAME: `mail.${testDomain}`,
    POSTERN_HTTP_HOST: host,
    POSTERN_HTTP_PORT: String(await portFor(port ?? null, defaultPorts.http)),
    POSTERN_SMTP_HOST: host,
    POSTERN_SUBMISSION_PORT: String(await portFor(port === 0 ? 0 : null, defaultPorts.smtp)),
    POSTERN_SUBMISSION_ALLOW_CLEAR: 'true',
    POSTERN_DNS_SERVERS: dnsServer,
    POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
    POSTERN_ATTACHMENT_ALLOW_PRIVATE: 'true',
    POSTERN_KEEP_MESSAGES: '30d',
  };
}

/** The wanted port, or the usual one, or if another program has that, any free one. */
async function portFor(wanted: number | null, usual: number): Promise<number> {
  if (wanted !== null && wanted !== 0) {
    if (await isFree(wanted)) return wanted;
    throw new Failure(`port ${wanted} is in use; choose another with --port, or leave it out`);
  }
  return wanted === null && (await isFree(usual)) ? usual : freePort();
}

const isFree = (port: number) =>
  bound(port).then(
    () => true,
    () => false,
  );

const freePort = () => bound(0);

/** Binds a port for a moment. */
async function bound(port: number): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const { port: actual } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return actual;
}

/** The mail is printed from its events, so the log says only what goes wrong. */
function warningsTo({ out }: CommandContext): Log {
  const write = (line: string) => {
    const { msg, err } = JSON.parse(line);
    out.warn([msg, err?.message].filter(Boolean).join(': '));
  };
  return Object.assign(pino({ level: 'warn', base: null }, { write }), { writeLines: null });
}

function describe({ domain, directory }: DevOptions, config: Config, url: string, tenant: DevTenant) {
  return {
    url,
    signIn: `${url}${tenant.signInPath}?to=/dashboard/o/${tenant.orgId}/inbox`,
    inbox: `${url}/dashboard/o/${tenant.orgId}/inbox`,
    key: tenant.key,
    smtp: { host, port: config.submissionPort!, user: 'postern' },
    domain,
    directory,
    commands: commandsFor(directory),
  };
}

/** In the directory of the data, or the one above the usual one, commands find the server by themselves. */
function commandsFor(directory: string): string[] {
  const postern = join(import.meta.dirname, '../../../scripts/postern');
  const where = basename(directory) === devDirectory ? dirname(directory) : directory;
  const commands = ['logs -f', 'email why ann@example.org', 'listen', 'webhook add http://localhost:3000/'];
  return [`cd ${shellWord(where)}`, ...commands.map((one) => `${shellWord(postern)} ${one}`)];
}

interface Following {
  /** The position of the last event that is not printed. */
  position: number;
  /** The URL that the pages of mails are below. */
  emails: string;
  config: Config;
  stopped: AbortSignal;
}

/** Events, posts to webhooks, and what only the mail log has: refused sends and ignored members. */
async function followMail({ out }: CommandContext, db: Db, { position, emails, config, stopped }: Following) {
  const log = await openLog(mailLogFile(config.dataDir));
  let after = position;
  let lastPost = newId();
  try {
    while (!stopped.aborted) {
      for await (const lines of log.added()) printLogLines(out, lines);
      const page = await readEvents(db, { orgId: null, after, limit: pageSize });
      for (const event of page.events) printEvent(out, event, emails);
      after = page.position;
      const posts = await listAttemptsAfter(db, lastPost, pageSize);
      for (const post of posts) printPost(out, post);
      lastPost = posts.at(-1)?.id ?? lastPost;
      if (!page.isMore) await sleep(pollMs, undefined, { signal: stopped }).catch(() => {});
    }
  } finally {
    await log.close();
  }
}
