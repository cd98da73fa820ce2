/** The mails of Acme, for screenshots: names and subjects like those of a real shop, the same in each run. */

import type { Context, Script } from '../mx/mx-script.ts';

const names =
  'ann.lee ben.ortiz carla.rossi david.kim eva.novak farid.haddad grace.okafor henry.wolf ines.costa jonas.berg kira.sato liam.byrne mia.jensen noah.weiss olivia.hart priya.nair quentin.roy rosa.silva sven.dahl tara.flynn uma.rao victor.petrov wendy.zhao yusuf.demir zoe.martin'.split(
    ' ',
  );

/** The recipients' domains, each with its own MX host. Without a script, nothing listens there. */
export const hosts: { name: string; address: string; script: Script | null }[] = [
  ...['northmail.example', 'postbox.example', 'fastpost.example'].map((name, index) => ({
    name,
    address: `127.0.0.${index + 2}`,
    script: { ehlo: ({ session }: Context) => greeting(name, session.tls), rcpt, dot },
  })),
  { name: 'university.example', address: '127.0.0.5', script: { rcpt, dot } },
  { name: 'council.example', address: '127.0.0.6', script: { rcpt, dot } },
  { name: 'old-host.example', address: '127.0.0.7', script: null },
];

const domains = [0, 0, 0, 1, 1, 2, 3, 4].map((index) => hosts[index]!.name);

/** A greeting that contains the client's address, as large hosts send it; the doctor reads it. */
function greeting(name: string, isSecure: boolean): string[] {
  const offers = ['PIPELINING', '8BITMIME', 'ENHANCEDSTATUSCODES', 'SIZE 26214400'];
  const lines = [`mx.${name} at your service, [127.0.0.1]`, ...offers, ...(isSecure ? [] : ['STARTTLS'])];
  return lines.map((line) => `250 ${line}`);
}

function dot({ session, attempt }: Context): string {
  return `250 2.0.0 Ok: queued as 4F${(session.id * 4099 + attempt).toString(36).toUpperCase()}`;
}

/** The story names recipients who do not exist, are over quota, or are deferred. */
function rcpt({ address = '', attempt }: Context) {
  if (address.startsWith('former.')) return '550 5.1.1 No such user here';
  if (address.startsWith('spam.')) return '554 5.7.1 Message refused by policy';
  if (address.startsWith('full.')) return '452 4.2.2 Mailbox full, try again later';
  if (address.startsWith('busy.')) return '451 4.3.2 Too busy, please try again later';
  return address.endsWith('@university.example') && attempt % 3 === 1
    ? '450 4.7.1 Greylisted, please try again in a minute'
    : undefined;
}

interface Kind {
  from: string;
  tags: Record<string, string>;
  subject(n: number): string;
  text: string;
}

const kinds: Kind[] = [
  {
    from: 'Acme Shop <orders@example.com>',
    tags: { kind: 'receipt', team: 'shop' },
    subject: (n) => `Your order #${40_100 + n} is confirmed`,
    text: 'Thank you for your order. We will tell you as soon as it is on its way.',
  },
  {
    from: 'Acme Shop <orders@example.com>',
    tags: { kind: 'shipping', team: 'shop' },
    subject: (n) => `Order #${40_060 + n} has shipped`,
    text: 'Your parcel has left our warehouse and should be with you in two days.',
  },
  {
    from: 'Acme <login@example.com>',
    tags: { kind: 'sign-in' },
    subject: (n) => `${100_000 + ((n * 7919) % 900_000)} is your sign-in code`,
    text: 'Somebody, hopefully you, wants to sign in. The code holds for ten minutes.',
  },
  {
    from: 'Acme Billing <billing@example.com>',
    tags: { kind: 'invoice', team: 'finance' },
    subject: (n) => `Invoice 2026-${String(1000 + n).slice(1)}`,
    text: 'Your invoice is ready. It is paid by the card that we have on file.',
  },
  {
    from: 'Acme <hello@example.com>',
    tags: { kind: 'welcome' },
    subject: () => 'Welcome to Acme',
    text: 'Good to have you here. This is how to begin.',
  },
];

/** The `n`th mail: kinds, people and hosts repeat with different periods. */
export function acmeMail(n: number, to = recipient(n)) {
  const { from, tags, subject, text } = kinds[(n * 3 + (n >> 2)) % kinds.length]!;
  const name = to.split(/[.@]/, 1)[0]!;
  const greeting = `Hello ${name[0]!.toUpperCase()}${name.slice(1)},`;
  return { from, to, tags, subject: subject(n), ...body(greeting, text) };
}

function recipient(n: number): string {
  return `${names[(n * 11) % names.length]}@${domains[(n * 5 + (n >> 3)) % domains.length]}`;
}

function body(greeting: string, text: string) {
  const button = 'background:#2d5bd0;color:#fff;padding:10px 18px;border-radius:6px;text-decoration:none';
  const style = 'font-family:sans-serif;max-width:520px;margin:32px auto;color:#222;line-height:1.5';
  return {
    text: `${greeting}\n\n${text}\n\nhttps://example.com/account\n\nAcme\n`,
    html: `<div style="${style}"><h2>Acme</h2><p>${greeting}</p><p>${text}</p><p style="margin:28px 0"><a href="https://example.com/account" style="${button}">Go to your account</a></p><p style="color:#777;font-size:13px">Acme, 1 Example Street</p></div>`,
  };
}
