/**
 * Item 6: what receivers report on a domain is for the organization that has it verified. Another one registers the same
 * name, and one below it, without proof, and looks for the report wherever something is shown.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { invite } from '#accounts/people/people.ts';
import { setDomainStatus } from '#accounts/rows/domains-table.ts';
import { callJson } from '#lab/ask.ts';
import { createBrowser, password } from '#lab/browser/browser.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { until } from '#lab/until.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const owned = 'victim.invalid';
const below = `mail.${owned}`;
/** Registered by nobody but the attacker. */
const unproven = 'unproven.invalid';

const reporterOf = (domain: string) => `reporter-on-${domain}`;

function dmarc(domain: string): string {
  const about = `<org_name>${reporterOf(domain)}</org_name><report_id>1</report_id>`;
  const row = '<row><source_ip>192.0.2.1</source_ip><count>1</count></row>';
  return `<feedback><report_metadata>${about}</report_metadata><policy_published><domain>${domain}</domain></policy_published><record>${row}</record></feedback>`;
}

function tls(domain: string): string {
  const policies = [{ policy: { 'policy-type': 'sts', 'policy-domain': domain } }];
  return JSON.stringify({ 'organization-name': reporterOf(domain), 'report-id': '1', policies });
}

async function report(scene: Scene, type: string, content: string): Promise<void> {
  const talk = await connectSmtp(scene.ports.inbound);
  await talk.says('EHLO mail.example\r\n', '250');
  await talk.says('MAIL FROM:<reports@mail.example>\r\n', '250');
  await talk.says('RCPT TO:<dmarc@postern.invalid>\r\n', '250');
  await talk.says('DATA\r\n', '354');
  const fields = [
    'From: reports@mail.example',
    'Subject: Report',
    'MIME-Version: 1.0',
    `Content-Type: ${type}`,
  ];
  await talk.says(`${fields.join('\r\n')}\r\n\r\n${content}\r\n.\r\n`, '250');
  talk.close();
}

async function register({ url }: Scene, key: string, name: string): Promise<void> {
  const { status, text } = await callJson(`${url}/api/public/domains`, key, 'POST', { name });
  if (status !== 200) throw new Error(`${name} was not registered: ${status} ${text}`);
}

/** A person of the organization, who is no operator. */
async function personOf({ url, db }: Scene, orgId: string) {
  const member = { orgId, role: 'owner' as const };
  const email = `person-${orgId}@postern.invalid`;
  const { link } = await invite(db, { email, name: 'Person', isOperator: false, member }, Date.now());
  const browser = createBrowser({ url: () => url });
  await browser.get(link!.path);
  await browser.submit('', { password });
  return (path: string) => browser.get(`/dashboard/o/${orgId}${path}`);
}

/** What the organization is shown, everywhere that a report could be. */
async function shownTo(scene: Scene, key: string, names: string[]): Promise<string[]> {
  const page = await personOf(scene, await orgIdOf(scene.db, key));
  const shown: string[] = [];
  for (const path of ['', '/domains', ...names.map((name) => `/domains/${name}`)]) {
    const { html, status } = await page(path);
    if (status !== 200) throw new Error(`page ${path} was answered ${status}`);
    if (html.includes('reporter-on-')) shown.push(`dashboard ${path}`);
  }
  const reads = ['/domains', '/events', '/emails', ...names.map((name) => `/domains/${name}`)];
  for (const path of [...reads, ...names.map((name) => `/domains/${name}/reports`)]) {
    const { text } = await callJson(`${scene.url}/api/public${path}`, key, 'GET');
    if (text.includes('reporter-on-')) shown.push(`API ${path}`);
  }
  return shown;
}

const command = join(import.meta.dirname, '../postern');

/** The reports are on days after it. */
const longAgo = 0;

async function reportsByCommand({ dataDir }: Scene, name: string): Promise<unknown[]> {
  const env = { PATH: process.env.PATH, POSTERN_DATA_DIR: dataDir, POSTERN_HOSTNAME: 'postern.invalid' };
  const { stdout } = await promisify(execFile)(command, ['domain', 'reports', name, '--json'], { env });
  return JSON.parse(stdout);
}

async function readOthersReports(scene: Scene): Promise<Verdict> {
  const { db, key: owner } = scene;
  const attacker = await scene.addTenant();
  await register(scene, owner, owned);
  const { id } = await db('domains').where({ name: owned }).first('id');
  await setDomainStatus(db, id, 'verified', longAgo);
  for (const name of [owned, below, unproven]) await register(scene, attacker, name);
  for (const name of [owned, unproven]) {
    await report(scene, 'text/xml', dmarc(name));
    await report(scene, 'application/tlsrpt+json', tls(name));
  }
  const owners = await until(
    async () => {
      const shown = await shownTo(scene, owner, [owned]);
      return shown.length > 0 && shown;
    },
    { timeout: 5_000 },
  ).catch(() => []);
  const others = await shownTo(scene, attacker, [owned, below, unproven]);
  const byCommand = await reportsByCommand(scene, unproven);
  return verdict(
    `its owner sees it at ${owners.length} place, another organization at ${others.length}; the command line shows ${byCommand.length} on an unproven name`,
    [owners.length > 0, 'its owner does not see it either: nothing was measured'],
    [others.length === 0, `shown to another organization: ${others.join(', ')}`],
    [byCommand.length === 0, `\`domain reports\` shows ${byCommand.length} on a name that nobody has proved`],
  );
}

export const domainReports: Attack[] = [
  { item: 6, name: 'reports on a domain that is registered without proof', run: readOthersReports },
];
