/**
 * Two organizations and their people, filled with text that tries to become HTML wherever others may put a text: what tests
 * that walk the dashboard's access table act in. Whoever signs in here does so by a row in the database, at once.
 *
 *   const scene = await startScene(t);
 *   const browser = await scene.browserOf(scene.a.people.owner);
 */
import { randomBytes } from 'node:crypto';
import { serialize } from 'node:v8';
import type { ExecutionContext } from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { makeOrganization } from '#accounts/create-organization.ts';
import { addKeys } from '#accounts/dkim-rotation.ts';
import { newDkimKey } from '#accounts/domains.ts';
import { tokenHash } from '#accounts/people/one-time-links.ts';
import { createPasswords } from '#accounts/people/passwords.ts';
import { type Role, roles } from '#accounts/people/roles.ts';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { setMembership } from '#accounts/rows/memberships.ts';
import { insertSession } from '#accounts/rows/sessions-table.ts';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { changeUser, insertUser } from '#accounts/rows/users.ts';
import { createSeal } from '#accounts/seal.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { insertReceived } from '#mail/received/rows/received-mails.ts';
import { newStandardSecret } from '#mail/webhooks/formats/standard-format.ts';
import { insertWebhook } from '#mail/webhooks/rows/webhooks.ts';
import { wellKnownBlocklists } from '#operate/doctor/checks/blocklists.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { createBrowser, password } from '../browser/browser.ts';
import { type DatabaseKind, oneKind } from '../database/databases.ts';
import { emptySummary, receivedMail } from '../received.ts';
import { until } from '../until.ts';
import { startReceiver } from './webhook-receiver.ts';
import { startWorld } from './world.ts';

const tagName = `"'><pwned-x pwned=1>tag-name`;

/** A text that would become an element, a script and a handler; `of` is found again where it is shown. */
export const markup = (of: string) =>
  `"'><pwned-x pwned=1><script>window.pwned="${of}"</script><img src=x onerror=window.pwned=1>${of}`;

/** For where no angle brackets get in. */
const attribute = (of: string) => `" pwned=1 onfocus=window.pwned=1 autofocus x=" ${of}`;

export interface Org {
  id: string;
  /** Of its addresses: mail from and to it is at `SLUG.invalid`. */
  slug: string;
  key: string;
  people: Record<Role, string>;
  /** What it has, to look at. */
  domain: string;
  emailId: string;
  webhookId: string;
  receivedId: string;
}

export type Scene = Awaited<ReturnType<typeof startScene>>;

const quoted = (text: string) => `"${text.replaceAll('"', '\\"')}"`;

const reply = (code: string, of: string) => `${code} ${markup(of)}`;

const never = 8_640_000_000_000_000;

/** Events that there are none of here. */
const quiet = ['webhook.disabled'];

/** Everything that the doctor asks is asked of loopback. */
const surroundings: Partial<Surroundings> = {
  probes: ['there.invalid'],
  signedName: 'there.invalid',
  timeServers: [],
  blocklists: wellKnownBlocklists.slice(0, 1),
  ownAddresses: () => ['127.0.0.1'],
  openFiles: async () => 65_536,
  timeouts: { dns: 2_000, connect: 2_000, greeting: 2_000, time: 500, database: 5_000, all: 8_000 },
};

/** `everythingAtRest` is for SQLite, on which nothing else is written meanwhile. */
export async function startScene(
  t: ExecutionContext,
  settings: Record<string, string> = {},
  database: DatabaseKind = oneKind,
) {
  const world = await startWorld(t, {
    database,
    settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true', ...settings },
    overrides: { surroundings },
    exchangers: [{ script: { ehlo: () => '250 mx1.invalid' } }],
  });
  const { db, config, clock, dns } = world;
  const seal = createSeal(loadSecrets(config));
  const passwordHash = await createPasswords({ N: 2, r: 1, p: 1 }).hash(password, 'test');
  world.mx[0]!.script = {
    rcpt({ address = '' }) {
      if (address.startsWith('bounce')) return reply('550 5.1.1', 'bounce-reply');
      return address.startsWith('defer') ? reply('451 4.3.0', 'defer-reply') : undefined;
    },
    dot: () => reply('250 2.0.0', 'dot-reply'),
  };
  const receiver = await startReceiver(t, { now: clock.now });
  receiver.answer = (_request, response) => response.writeHead(500).end(markup('webhook-answer'));

  let made = 0;
  const dkim = await newDkimKey();
  const make = {
    user: async (name: string, isOperator = false) => {
      made += 1;
      const id = (await insertUser(
        db,
        { email: `user-${made}@postern.invalid`, name, isOperator },
        clock.now(),
      ))!;
      await changeUser(db, id, { passwordHash });
      return id;
    },
    member: async (orgId: string, role: Role) => {
      const userId = await make.user(markup(`user-${role}`));
      await setMembership(db, { userId, orgId, role }, clock.now());
      return userId;
    },
    key: async (orgId: string) =>
      makeKey(db, { orgId, label: markup('key-label'), scopes: ['full_access'] }, clock.now()),
    domain: async (orgId: string, name = `d${++made}.invalid`) => {
      const kept = { orgId, name, dkimSelector: dkim.selector, dkimPublicKey: dkim.publicKey };
      const domain = { ...kept, dkimPrivateKey: seal.close(dkim.privateKey) };
      const id = (await insertDomain(db, domain, clock.now()))!;
      await setDomainStatus(db, id, 'verified', clock.now());
      dns.set({
        [`${dkim.selector}._domainkey.${name}`]: { TXT: [`v=DKIM1; k=rsa; p=${dkim.publicKey}`] },
        [`bounces.${name}`]: { MX: ['10 elsewhere.invalid'] },
        [`_dmarc.${name}`]: { TXT: [markup('found-dmarc')] },
      });
      return name;
    },
    /** A second key, which waits for its record. */
    ed25519: async (name: string) => {
      const { id } = await db('domains').where({ name }).first('id');
      await addKeys(db, { id }, ['ed25519'], { seal, now: clock.now() });
    },
    suppression: async (orgId: string) => {
      const address = `gone-${++made}@there.invalid`;
      await addSuppression(db, suppressionOf(orgId, address, markup('suppression-reason')), clock.now());
      const row = await db('suppressions').where({ org_id: orgId, address }).first('id');
      return { id: row.id as string, address };
    },
    webhook: async (orgId: string, url = receiver.url, types: string[] = quiet) =>
      insertWebhook(
        db,
        {
          orgId,
          url,
          types,
          format: 'standard',
          secret: seal.close(newStandardSecret()),
          publicKey: null,
        },
        clock.now(),
      ),
    route: async ({ id, domain }: Pick<Org, 'id' | 'domain'>, local: string, reply?: string) =>
      (await addRoute(db, id, { pattern: `${local}@${domain}`, action: 'reject', reply }, clock.now())).id,
    /** A stranger's mail, with a file. */
    received: async (orgId: string, domain: string) => {
      const of = (name: string) => markup(`received-${name}`);
      const part = (type: string, text: string) => `--b\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`;
      const file = `text/plain; name="f.txt"\r\nContent-Disposition: attachment; filename="${attribute('file')}"`;
      const raw = Buffer.from(
        `From: ann@there.invalid\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part('text/html', of('html'))}${part(file, 'file')}--b--\r\n`,
      );
      const summary = { ...emptySummary, preview: of('preview') };
      const mail = receivedMail({
        orgId,
        domain,
        raw,
        summary,
        recipients: [`orders@${domain}`],
        at: clock.now(),
        subject: of('subject'),
        fromHeader: of('from'),
        sender: of('sender'),
        helo: of('helo'),
        messageId: of('message-id'),
      });
      await db.transaction((trx) => insertReceived(trx, [mail]));
      return mail.id;
    },
    /** Sent, and come as far as it comes by itself. */
    email: async (org: Pick<Org, 'slug' | 'key'>, to: string, fields: object = {}) => {
      const { status, body } = await world.call('POST', '/api/public/email/send', {
        headers: { authorization: `Bearer ${org.key}` },
        body: JSON.stringify({
          from: `${quoted(attribute('from-name'))} <app@${org.slug}.invalid>`,
          to,
          text: markup('text'),
          subject: markup(`subject ${++made}`),
          html: `<p>${markup('html')}</p><a href="https://there.invalid/">there</a>`,
          tags: { [tagName]: markup('tag-value') },
          ...fields,
        }),
      });
      if (status !== 200) throw new Error(`the mail was not taken: ${JSON.stringify(body)}`);
      return body.emailId as string;
    },
  };

  async function organization(slug: string): Promise<Org> {
    const { id } = await makeOrganization(db, { name: markup(`org-${slug}`) }, clock.now());
    await db('organizations').where({ id }).update({ requests_per_second: null });
    const { key } = await make.key(id);
    const domain = await make.domain(id, `${slug}.invalid`);
    const people = Object.fromEntries(
      await Promise.all(roles.map(async (role) => [role, await make.member(id, role)])),
    ) as Record<Role, string>;
    await make.suppression(id);
    const webhookId = await make.webhook(id, receiver.url, []);
    // Such a URL is refused by whatever takes one; what is in the table is shown all the same.
    await make.webhook(id, `http://127.0.0.1:9/${markup('webhook-url')}`);
    await make.route({ id, domain }, `/${markup('route-pattern')}/`, `550 ${markup('route-reply')}`);
    const receivedId = await make.received(id, domain);
    const org = { id, slug, key };
    const emailId = await make.email(org, `ann@there.invalid`);
    await make.email(org, `bounce-${slug}@there.invalid`);
    await make.email(org, `defer-${slug}@there.invalid`);
    return { ...org, people, domain, emailId, webhookId, receivedId };
  }

  const a = await organization('acme');
  const b = await organization('other');
  const operator = await make.user(markup('operator-name'), true);
  await until(async () => (await db('webhook_attempts').distinct('webhook_id')).length === 2);
  await clock.advance(2_000);
  await settled();

  /** Until nothing goes on by itself: the clock stands, and no webhook is tried. */
  async function settled(): Promise<void> {
    const isQuiet = async (table: string, condition: string) =>
      (await db(table).whereRaw(condition).limit(1)).length === 0;
    await until(() => isQuiet('deliveries', "status in ('queued', 'sending') or lease_owner is not null"));
    await db('webhooks').where({ status: 'active' }).update({ status: 'disabled' });
    // The runner may have listed an endpoint before it was disabled: then it finds nothing that is due.
    await db('webhook_messages').where({ status: 'queued', lease_owner: null }).update({ due_at: never });
    await until(() => isQuiet('webhook_messages', 'lease_owner is not null'));
  }

  /** A new session, with a token for forms. */
  async function browserOf(userId: string | null) {
    const browser = createBrowser(world);
    if (userId !== null) {
      const token = randomBytes(32).toString('base64url');
      const session = { hash: tokenHash(token), userId, address: '127.0.0.1', agent: markup('user-agent') };
      await insertSession(db, { ...session, expiresAt: clock.now() + 86_400_000 }, clock.now());
      browser.jar.set('postern-session', token);
    }
    await browser.get(userId === null ? '/dashboard/sign-in' : '/dashboard/account');
    const _csrf = browser.csrf();
    return { ...browser, _csrf };
  }

  /** The database by table, without what changes in the background: when sessions were seen, how far events were read. */
  async function everything(): Promise<Map<string, Buffer>> {
    const tables = await db('sqlite_master').where({ type: 'table' }).pluck('name');
    const kept = tables.filter((name: string) => !/^(sqlite_|sessions$|event_readers$|knex)/.test(name));
    const rows = kept.map(async (name: string) => [name, serialize(await db(name).select())] as const);
    return new Map(await Promise.all(rows));
  }

  /** The rows of all tables. A restart ends what maintenance is at; it begins nothing, because the clock stands. */
  async function everythingAtRest(): Promise<Map<string, Buffer>> {
    await settled();
    await world.restart();
    return everything();
  }

  /** Tables that are not what they were. */
  async function changedSince(before: Map<string, Buffer>): Promise<string[]> {
    const now = await everything();
    return [...now.keys()].filter((name) => !before.get(name)?.equals(now.get(name)!));
  }

  return { settled, world, a, b, operator, make, browserOf, everythingAtRest, changedSince };
}
