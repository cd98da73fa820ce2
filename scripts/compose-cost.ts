/**
 * `node scripts/compose-cost.ts`: what it costs to make a message, in microseconds of CPU a mail: Postern's MIME composer,
 * nodemailer's for the same fields, and the DKIM signature. It is the measure behind compose/mime.ts and compose/sign.ts.
 */
import { createPrivateKey } from 'node:crypto';
import Table from 'cli-table3';
import MailComposer from 'nodemailer/lib/mail-composer';
import { newDkimKey } from '../src/accounts/domains.ts';
import { composeMime, type Fields, toBytes } from '../src/compose/mime.ts';
import { signatures } from '../src/compose/sign.ts';

const mails = 1000;
const runs = 5;

function fieldsOf(bytes: number): Fields {
  const line = '<p>All of this is an ordinary line of an ordinary mail, 7 bits, no more.</p>\r\n';
  return {
    from: { name: 'Shop', address: 'shop@sender.invalid', domain: 'sender.invalid' },
    to: ['ann@there.invalid'],
    subject: 'Your order',
    text: 'Hello, your order has been sent.\r\n',
    html: line.repeat(Math.ceil(bytes / line.length)),
    attachments: [],
    headers: {},
    messageId: 'id@postern.invalid',
    date: Date.now(),
  };
}

/** Microseconds of CPU a mail, the least of some runs, after one that warms up. */
async function cost(make: () => unknown): Promise<string> {
  const costs: number[] = [];
  for (let run = 0; run <= runs; run++) {
    const before = process.cpuUsage();
    for (let mail = 0; mail < mails; mail++) await make();
    const { user, system } = process.cpuUsage(before);
    if (run > 0) costs.push((user + system) / mails);
  }
  return Math.min(...costs).toFixed(0);
}

const { selector, privateKey } = await newDkimKey();
const signer = { domain: 'sender.invalid', selector, privateKey: createPrivateKey(privateKey) };
const table = new Table({ head: ['HTML', 'Postern', 'nodemailer', 'signature'] });
for (const bytes of [4096, 40960]) {
  const fields = fieldsOf(bytes);
  const { message } = composeMime(fields);
  const theirs = { ...fields, messageId: `<${fields.messageId}>`, date: new Date(fields.date) };
  table.push([
    `${bytes / 1024} KB`,
    await cost(() => toBytes(composeMime(fields).message)),
    await cost(() => new MailComposer(theirs).compile().build()),
    await cost(() => signatures(message, signer, fields.date)),
  ]);
}
console.log(`Microseconds of CPU a mail\n${table.toString()}`);
