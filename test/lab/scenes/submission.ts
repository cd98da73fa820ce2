/**
 * A world with a submission port for a whole file, for starting one is dear; tenants of their own keep the tests in it
 * apart. And clients of it.
 */
import { createHash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { createTransport } from 'nodemailer';
import { newKey } from '#accounts/api-keys.ts';
import { insertKey } from '#accounts/rows/keys.ts';
import { contextOfFile } from '../context-of-file.ts';
import type { DatabaseKind } from '../database/databases.ts';
import { freePort } from '../load/ports.ts';
import type { MxMessage } from '../mx/mx-script.ts';
import { connectSmtp, plain, type SmtpClient } from '../mx/smtp-client.ts';
import { until } from '../until.ts';
import { createTenant, startWorld, type World, type WorldOptions } from './world.ts';

export interface SubmissionWorld extends World {
  /** By STARTTLS, and with TLS from the start. */
  ports: { starttls: number; implicit: number };
}

export async function startSubmission(
  t: ExecutionContext,
  options: WorldOptions = {},
): Promise<SubmissionWorld> {
  const ports = { starttls: await freePort('127.0.0.1'), implicit: await freePort('127.0.0.1') };
  const world = await startWorld(t, {
    ...options,
    settings: {
      POSTERN_SUBMISSION_PORT: String(ports.starttls),
      POSTERN_SUBMISSION_TLS_PORT: String(ports.implicit),
      ...options.settings,
    },
  });
  return Object.assign(world, { ports });
}

/** One world for each of the databases, from the file's first test to its last. */
export function submissionWorlds(
  databases: readonly DatabaseKind[],
  options: WorldOptions = {},
): Record<DatabaseKind, SubmissionWorld> {
  const worlds = {} as Record<DatabaseKind, SubmissionWorld>;
  const context = contextOfFile();
  test.before(async () => {
    for (const database of databases) {
      worlds[database] = await startSubmission(context, { ...options, database });
    }
  });
  return worlds;
}

export interface Tenant {
  world: SubmissionWorld;
  orgId: string;
  key: string;
}

/** An organization of its own, with the domain sender.invalid. */
export async function tenantOf(
  world: SubmissionWorld,
  options: WorldOptions['tenant'] = {},
): Promise<Tenant> {
  const key = await createTenant(world.db, world.config, world.dns, options);
  const hash = createHash('sha256').update(key).digest('hex');
  const { org_id: orgId } = await world.db('api_keys').where({ hash }).first();
  return { world, orgId, key };
}

/** The same organization by another key. */
export async function withKey(tenant: Tenant, scopes: string[]): Promise<Tenant> {
  const { key, hash, hint } = newKey();
  await insertKey(tenant.world.db, { orgId: tenant.orgId, label: 'test', hash, hint, scopes }, Date.now());
  return { ...tenant, key };
}

/** The email as its own organization is told of it, once it is delivered to all that it goes to. */
export function delivered({ world, key }: Tenant, emailId: string) {
  return until(async () => {
    const init = { headers: { authorization: `Bearer ${key}` } };
    const { body } = await world.call('GET', `/api/public/email/${emailId}`, init);
    const isOpen = body.recipients.some(({ status }: { status: string }) =>
      /queued|sending|deferred/.test(status),
    );
    return !isOpen && body;
  });
}

/** What the exchanger has got for this address. */
export function messageTo({ mx }: SubmissionWorld, address: string): Promise<MxMessage> {
  return until(() => mx[0]!.messages.find(({ to }) => to.includes(address)), { what: `mail to ${address}` });
}

/** nodemailer's own client, as an application has it. */
export function transportOf(
  { world: { ports }, key }: Tenant,
  { method = 'PLAIN', implicit = false }: { method?: string; implicit?: boolean } = {},
) {
  return createTransport({
    host: '127.0.0.1',
    port: implicit ? ports.implicit : ports.starttls,
    secure: implicit,
    requireTLS: !implicit,
    authMethod: method,
    auth: { user: 'anybody', pass: key },
    tls: { rejectUnauthorized: false },
  });
}

/** A client that says what it likes, over TLS and logged in. */
export async function loggedIn({ world, key }: Tenant): Promise<SmtpClient> {
  const talk = await connectSmtp(world.ports.implicit, { tls: true });
  await talk.says('EHLO client.invalid\r\n', '250');
  await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, '235 2.7.0');
  return talk;
}

/** One transaction up to the message's reply; the message's lines without their ends. */
export async function submit(
  talk: SmtpClient,
  to: string[],
  lines: string[],
  expected = '250',
): Promise<string> {
  await talk.says('MAIL FROM:<anyone@elsewhere.invalid>\r\n', '250');
  for (const one of to) await talk.says(`RCPT TO:<${one}>\r\n`, '250');
  await talk.says('DATA\r\n', '354');
  const stuffed = lines.map((line) => `${line.replace(/^\./, '..')}\r\n`).join('');
  return talk.says(`${stuffed}.\r\n`, expected);
}

/** The email that a reply tells of. */
export function emailIdOf(reply: string): string {
  return /Accepted as ([0-9a-f-]{36})/.exec(reply)![1]!;
}
