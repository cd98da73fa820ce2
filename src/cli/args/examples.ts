/**
 * Examples for `--help`, the man pages and docs/commands.md: a command line, and what it does. The help of a command shows
 * those that begin with it. A test holds each of them to the commands and options that exist, and every command to one.
 */
import { wrap } from '#cli/render/width.ts';

export interface Example {
  line: string;
  description: string;
}

const lines: [line: string, description: string][] = [
  ['send ann@example.org --from hello@example.com --watch', 'send a test and follow it to its end'],
  [
    'send ann@example.org --from hello@example.com --subject Invoice --html @invoice.html --attach invoice.pdf',
    'send HTML from a file, with an attachment',
  ],
  ['email list --to example.org --status bounced --since 2d', 'what bounced at a domain in two days'],
  ['email why ann@example.org', 'explain the newest email to an address'],
  ['email show 9eda6307a7e9', 'all attempts and transcripts, by the end of an id'],
  ['email source 9eda6307a7e9 > mail.eml', 'the bytes that were sent'],
  ["email cancel 9eda6307a7e9 --reason 'wrong price'", 'cancel what was not sent yet'],
  ['email reschedule 9eda6307a7e9 2026-12-24T18:00:00+01:00', 'send a scheduled email at another time'],
  ['pause list', 'mail that the rules hold, or warn of'],
  ['pause show 9eda6307a7e9', 'why: the mails and the replies'],
  ['pause release 9eda6307a7e9', 'send it again'],
  ['queue summary', 'what waits, where, and why'],
  ['queue list --destination mx.slow.example', 'the mail that waits for a destination'],
  ["queue retry --domain example.org --reason 'they are back'", 'retry deferred mail now'],
  ["queue hold --org Acme --reason 'wrong template'", 'stop the mail of an organization'],
  ["queue release --org Acme --reason 'corrected'", 'let it go'],
  ["queue cancel --org Acme --status held --reason 'wrong template'", 'cancel what is held'],
  [
    "queue suspend partner.example --for 2h --reason 'they are migrating'",
    'send nothing there for two hours',
  ],
  ["queue resume partner.example --reason 'they have migrated'", 'end that early'],
  ['queue slow partner.example --per-minute 30 --for 2h', 'at most 30 mails a minute for two hours'],
  ["queue rule gmial.example bounce --reason 'mistyped'", 'bounce all mail to a domain'],
  ['queue rules', 'what is suspended, slowed, held or bounced'],
  ['queue trace partner.example --last 3', 'the SMTP transcripts of a destination'],
  ['logs -f --domain example.org', 'follow the mail to a domain'],
  ['logs --id 4XqN0CF3WA', "everything about a mail, by the queue id in a host's reply"],
  ['logs --since 2h --until 1h --status bounced', 'what bounced between two and one hours ago'],
  ['status', 'what is wrong, and what to do next'],
  ['top', 'watch rates and destinations live'],
  ['certificate list', 'the certificates by ACME, and why one is missing'],
  ['certificate retry mail.example.org', 'ask for one again, once its DNS is right'],
  ['returned list --kind complaint', 'the latest complaints'],
  ['returned source 01a1fde43a44', 'a returned mail as it came'],
  ['suppression show ann@example.org', 'whether an address is suppressed, and why'],
  ['suppression add ann@example.org', 'send an address no more mail'],
  ['suppression remove ann@example.org', 'send an address mail again'],
  ['suppression list --org Acme', 'the suppressed addresses'],
  ['suppression export --org Acme > list.csv', 'the list as CSV'],
  ['suppression import list.csv --org Acme', 'add the addresses of a file'],
  ['init', 'set this server up; it asks for what it needs'],
  [
    'init --hostname mail.example.org --domain example.com --email ann@example.org --to ann@gmail.com',
    'the same without questions, and with a first mail',
  ],
  ['init --dry-run', 'what is there, and what would be done'],
  ['dev', 'a server on this machine that sends no mail, with an inbox'],
  ['org create --name Acme --quota 10000', 'an organization with 10,000 credits a month'],
  ['org list', 'all organizations'],
  ['org show Acme', 'its quota and limits'],
  ["org rename Acme 'Acme Ltd'", 'another name'],
  ['org limits Acme --per-second 10 --emails-per-day unlimited', 'raise its limits'],
  ['org tls Acme encrypted', 'send its mail only over TLS'],
  ['org two-factor Acme on', 'require two-factor authentication of its users'],
  ['org pool Acme bulk', 'send its mail from an IP pool'],
  ["org pause Acme --reason 'unpaid bills'", 'stop it at once'],
  ["org resume Acme --reason 'paid'", 'let it send again'],
  ['org remove Acme --dry-run', 'what deleting it would delete'],
  ['org auto-pause Acme hold', 'hold what spoils the reputation, and not only warn of it'],
  ['key create --label app --scope email:send --scope email:read', 'a key for an application'],
  [
    'key create --label suite --scope email:send --test',
    'a key whose mail goes to the inbox and nowhere else',
  ],
  ['key list', 'the keys of the only organization'],
  ['key rotate 9eda6307a7e9', 'a new key; the old one ends tomorrow'],
  ['key rotate 9eda6307a7e9 --now', 'the old one has leaked'],
  ['key revoke 9eda6307a7e9', 'end a key at once'],
  [
    "stream create newsletter --kind subscribed --title 'Our newsletter'",
    'mail that people can unsubscribe from',
  ],
  ['stream set newsletter --emails-per-day 20000', 'its limit'],
  ['stream list', 'the streams of the only organization'],
  ['stream remove newsletter', 'remove one'],
  ['domain add example.com', 'register a domain and print its DNS records'],
  ['domain add example.com --publish cloudflare', 'register a domain and publish its records'],
  ['domain publish example.com --dry-run', 'what would be published'],
  ['domain publish example.com', 'publish its records at its DNS provider'],
  ['domain verify example.com', 'check the published records'],
  ['domain verify example.com --wait', 'check them until they are there'],
  ['domain show example.com', 'its records and keys'],
  ['domain show example.com --zone', 'its records as text for a zone file'],
  ['domain list', 'all domains and their states'],
  ['domain tracking example.com --opens off --clicks on', 'count clicks, not opens'],
  ['domain tls example.com verified', 'demand TLS with a valid certificate'],
  ['domain receive in.example.com on', 'receive mail for a domain'],
  ['domain rotate example.com', 'a new DKIM key'],
  ['domain ed25519 example.com on', 'a second signature'],
  ['domain reports example.com', 'what receivers report about it'],
  ['domain remove example.com', 'delete a domain'],
  ['credits show Acme', 'quota, wallet and ledger'],
  ['credits grant Acme 500', 'add to the wallet'],
  ['credits quota Acme 20000', 'change the monthly quota'],
  ['user create --email ann@example.com --org Acme --role developer', 'let a person sign in'],
  ['user list', 'all people'],
  ['user reset ann@example.com', 'a link to set a new password'],
  ['user disable ann@example.com', 'lock a person out at once'],
  ['user enable ann@example.com', 'let them in again'],
  ['webhook add https://app.example.com/hook --event email.bounced', 'post bounces to an application'],
  ['webhook list', 'all endpoints and their states'],
  ['webhook show 9eda6307a7e9', 'one endpoint and what waits for it'],
  ['webhook test 9eda6307a7e9', 'post a test event now'],
  ['webhook attempts 9eda6307a7e9', 'the latest posts and their responses'],
  ['webhook replay 9eda6307a7e9 --failed', 'post again what failed'],
  ['webhook enable 9eda6307a7e9', 'post again to a disabled endpoint'],
  ['webhook rotate 9eda6307a7e9', 'a new secret'],
  ['webhook remove 9eda6307a7e9', 'delete an endpoint'],
  ["route add 'orders+*@in.example.com' --action webhook", 'post mail for some addresses'],
  ["route add in.example.com --action reject --reply '550 5.7.1 No replies here'", 'refuse the rest'],
  ['route change 9eda6307a7e9 --priority 50', 'it is asked earlier'],
  ['route list', 'all routes in their order'],
  ['route show 9eda6307a7e9', 'one route'],
  ['route check orders+17@in.example.com', 'which route would take an address'],
  ['route remove 9eda6307a7e9', 'delete a route'],
  ['received list --to orders@ --since 1d', 'what came in for some addresses'],
  ['received show 9eda6307a7e9', 'one mail with its verdicts'],
  ['received raw 9eda6307a7e9 > mail.eml', 'the mail as it came'],
  ['received attachment 9eda6307a7e9 0 > order.pdf', 'its first file'],
  ['received why orders@in.example.com', 'what becomes of mail for an address'],
  ['listen --forward http://localhost:3000/webhooks', 'post new events to your own machine'],
  ['use Acme', 'the organization of the commands from now on'],
  ['open', 'a link that signs you in to the dashboard'],
  ['bugreport postern-report.json', 'what a person needs who helps you'],
  ['doctor', 'check ports, names, blocklists and disk'],
  ['doctor example.com --fix', 'publish the DNS records that are missing'],
  ['config', 'every setting with its source'],
  ['completion bash > /etc/bash_completion.d/postern', 'complete commands and names in bash'],
  ['man --write /usr/local/share/man/man1', 'install the manual pages'],
  ['secret show', 'the secrets by fingerprint'],
  ['secret rotate', 'a new secret'],
  ['secret reseal', 'encrypt all keys with the current secret'],
  ['secret retire', 'delete the old secrets'],
  ['backup /var/backups/postern.db', 'back up while the server runs'],
  ['restore /var/backups/postern.db', 'restore while it does not'],
  ['move --to postgres://postern@db.example/postern', 'move to PostgreSQL'],
  ['upgrade postern_1.1.0_amd64.deb', 'to a newer release, with a way back'],
  ['leftovers --remove', 'remove what upgrades and restores have kept'],
  ['migrate', 'upgrade the schema'],
];

export const examples: Example[] = lines.map(([line, description]) => ({ line, description }));

/** Enough to see how it is used. */
const maxShown = 4;

/** `path`: the words of a command, without the program; none: the program itself. */
export function examplesOf(path: string): Example[] {
  if (path === '')
    return ['queue summary', 'email why', 'logs -f', 'send'].flatMap((one) => examplesOf(one)[0] ?? []);
  return examples.filter(({ line }) => line === path || line.startsWith(`${path} `)).slice(0, maxShown);
}

/** A long line is continued on the next, so that it can be pasted. */
export function examplesText(path: string, columns = 80): string {
  const shown = examplesOf(path).map(({ line, description }) => {
    const words = `postern ${line}`.match(/'[^']*'|\S+/g)!;
    return `  # ${description}\n  ${wrap(words, columns - 6).join(' \\\n    ')}`;
  });
  return shown.length === 0 ? '' : `\nExamples:\n${shown.join('\n')}\n`;
}
