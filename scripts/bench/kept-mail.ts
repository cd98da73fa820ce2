/**
 * Mails of a size for the measurement of the disk, each different, as shops send them: HTML with inline styles and a text part;
 * names, amounts and links with long tokens of their own; sentences of English prose from the pages in docs/. So they compress
 * about as well as real mail does (zstd alone makes 1.4 KB of their 4 KB), and not as well as one line repeated.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const pages = ['operations', 'design', 'deliverability', 'submission'].map((name) =>
  readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'),
);
const sentences = pages
  .join('\n')
  .replaceAll('\n', ' ')
  .split(/(?<=\.) /)
  .map((one) => one.replaceAll(/ +/g, ' '))
  .filter((one) => /^[A-Z][A-Za-z ,'-]{30,160}\.$/.test(one));

/** `bytes`: text and HTML together. */
export function mailOf(number: number, bytes: number): { subject: string; text: string; html: string } {
  const draw = drawsOf(number);
  const prose = (count: number) =>
    Array.from({ length: count }, () => sentences[draw(sentences.length)]!).join(' ');
  const token = (length: number) => {
    const digests = [
      hash('sha512', `${number} ${draw(1e9)}`, 'base64url'),
      hash('sha512', `${draw(1e9)}`, 'base64url'),
    ];
    return digests.join('').slice(0, length);
  };
  const order = 1_000_000 + draw(9_000_000);
  const amount = () => `${draw(200)}.${10 + draw(90)}`;
  const link = (what: string) => `https://shop.sender.invalid/${what}/${order}?token=${token(64)}`;
  const items = Array.from({ length: 2 + draw(2) }, () => ({
    name: prose(1).slice(0, 40),
    amount: amount(),
  }));
  const head = `Hello ${names[draw(names.length)]} ${names[draw(names.length)]},`;
  const [intro, closing] = [prose(2), prose(2)];
  const [track, leave] = [link('orders'), link('leave')];
  const total = amount();
  const text = [
    head,
    intro,
    ...items.map((one) => `${one.name}: ${one.amount} EUR`),
    `Total: ${total} EUR`,
    track,
    closing,
    leave,
  ].join('\r\n\r\n');
  const rows = items.map((one) => row(one.name, one.amount)).join('');
  const start = `${opening}<p style="${paragraph}">${head}</p><p style="${paragraph}">${intro}</p><table width="100%" cellpadding="0" cellspacing="0" role="presentation">${rows}${row('Total', total)}</table><p style="margin:24px 0;text-align:center"><a href="${track}" style="background:#1a73e8;border-radius:4px;color:#ffffff;display:inline-block;padding:12px 24px;text-decoration:none">Track your order</a></p>`;
  const end = `<p style="font-size:12px;color:#888888">You get this mail because you have ordered at our shop. <a href="${leave}" style="color:#888888">Unsubscribe</a></p></td></tr></table></td></tr></table></body></html>\r\n`;
  let filling = '';
  while (text.length + start.length + filling.length + end.length < bytes)
    filling += `<p style="${paragraph}">${prose(1)}</p>\r\n`;
  const surplus = text.length + start.length + filling.length + end.length - bytes;
  return {
    subject: `Your order ${order} has been sent`,
    text,
    html: start + filling.slice(0, Math.max(0, filling.length - surplus)) + end,
  };
}

const paragraph = 'margin:0 0 16px;font-size:16px;line-height:24px;color:#333333';

const opening = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Your order</title></head><body style="margin:0;padding:0;background:#f4f4f7;font-family:Helvetica,Arial,sans-serif"><table width="100%" cellpadding="0" cellspacing="0" role="presentation"><tr><td align="center" style="padding:24px"><table width="600" cellpadding="0" cellspacing="0" role="presentation" style="background:#ffffff;border-radius:8px"><tr><td style="padding:32px">\r\n`;

const row = (name: string, amount: string) =>
  `<tr><td style="padding:8px 0;border-bottom:1px solid #eeeeee">${name}</td><td align="right" style="padding:8px 0;border-bottom:1px solid #eeeeee">${amount} EUR</td></tr>\r\n`;

const names =
  'Anna Ben Clara David Elena Felix Greta Hugo Ines Jonas Karla Leon Mara Nils Olga Paul Rosa Simon Tess Viktor Wanda Yusuf Zoe Meier Lopez Okafor Novak Rossi Kowalski Svensson Dubois'.split(
    ' ',
  );

/** The same draws for the same number, below a bound. */
function drawsOf(number: number): (bound: number) => number {
  let count = 0;
  return (bound) => hash('sha256', `${number} ${count++}`, 'buffer').readUInt32BE() % bound;
}
