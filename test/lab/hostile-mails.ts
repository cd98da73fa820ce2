/**
 * Messages that are cheap to submit and can be dear to read: full of each element of the walk (hostile-walk.ts), in each field
 * that is read, in bodies of each kind and in the frame of a multipart.
 */
import { crc32 } from 'node:zlib';
import { kindsOf } from './hostile-walk.ts';
import { connectSmtp, plain, type SmtpClient } from './mx/smtp-client.ts';

export interface HostileMail {
  what: string;
  raw: string;
}

const own = {
  From: 'app@sender.invalid',
  To: 'ann@there.invalid',
  Subject: 'Hi',
  'MIME-Version': '1.0',
};

const fields = [
  ...[
    'From',
    'To',
    'Cc',
    'Bcc',
    'Reply-To',
    'Sender',
    'Subject',
    'Date',
    'Message-ID',
    'References',
    'Received',
  ],
  ...[
    'Content-Type',
    'Content-Transfer-Encoding',
    'Content-Disposition',
    'List-Unsubscribe',
    'DKIM-Signature',
  ],
  ...['X-A', 'X-Postern-Tag-a', 'X-Postern-Scheduled-At', 'X-Postern-Expires-After', 'TLS-Required'],
];

const bodies: Record<string, string[]> = {
  text: ['Content-Type: text/plain'],
  HTML: ['Content-Type: text/html'],
  'quoted-printable': ['Content-Type: text/html', 'Content-Transfer-Encoding: quoted-printable'],
  base64: ['Content-Type: text/html', 'Content-Transfer-Encoding: base64'],
  '8bit': ['Content-Type: text/plain', 'Content-Transfer-Encoding: 8bit'],
  'a message in it': ['Content-Type: message/rfc822'],
  'a part': ['Content-Type: multipart/mixed; boundary="b"', '', '--b', 'Content-Type: text/html', ''],
  'the header of a part': ['Content-Type: multipart/mixed; boundary="b"', '', '--b'],
};

/** `oneOf`: one of so many is made; always the same ones. */
export function* hostileMails(bytes: number, oneOf: number): Generator<HostileMail> {
  for (const one of allMails(bytes)) if (crc32(one.what) % oneOf === 0) yield { ...one, raw: one.raw() };
}

function* allMails(bytes: number): Generator<{ what: string; raw(): string }> {
  const size = { bytes: { value: bytes, near: bytes } };
  for (const hostile of kindsOf(size)) {
    const { kind } = hostile;
    const text = () => hostile.text.toString('latin1');
    const oneLine = () => text().replace(/[\r\n]+/g, ' ');
    for (const name of fields) {
      yield { what: `${kind} as ${name}`, raw: () => withField(name, oneLine()) };
      yield {
        what: `${kind} as ${name}, folded`,
        raw: () => withField(name, lines(oneLine()).join('\r\n ')),
      };
      yield { what: `${kind} as ${name}, and no body`, raw: () => withField(name, oneLine()).trimEnd() };
    }
    for (const [body, head] of Object.entries(bodies)) {
      const whole = (inside: string) => [header(own), ...head, '', inside, ''].join('\r\n');
      yield { what: `${kind} as ${body}`, raw: () => whole(lines(text()).join('\r\n')) };
      yield { what: `${kind} as ${body} in one line`, raw: () => whole(text()) };
    }
  }
  const all: Record<string, string> = {
    fields: 'X-A: b\r\n',
    'fields for tags': 'X-Postern-Tag-a: b\r\n',
    'fields To': 'To: a@b.invalid\r\n',
    'lines that are no field': 'X-A\r\n',
    folds: 'X-A: b\r\n c\r\n',
  };
  for (const [what, piece] of Object.entries(all))
    yield { what, raw: () => `${piece.repeat(bytes / piece.length)}${header(own)}\r\n\r\nHi\r\n` };
  const multipart = `${header(own)}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`;
  for (const piece of ['--b\r\n\r\n', '--bb\r\n', '--b\r\nX-A: b\r\n', '\r\n--', '--b--\r\n', '--b \t'])
    yield {
      what: `parts ${JSON.stringify(piece)}`,
      raw: () => multipart + piece.repeat(bytes / piece.length),
    };
  yield { what: 'nested multiparts', raw: () => header(own) + nested(bytes / 60) };
  // Ten searches of the whole message, for what nearly is at each position.
  const long = (level: number) => `${level}${'a'.repeat(800)}`;
  const filling = () => `\r\n\r\n${`${'a'.repeat(900)}\r\n`.repeat(bytes / 902)}`;
  yield { what: 'long boundaries', raw: () => header(own) + nested(9, long) + filling() };
}

function header(of: Record<string, string>): string {
  return Object.entries(of)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\r\n');
}

function withField(name: string, value: string): string {
  return `${header({ ...own, [name]: value })}\r\n\r\nHi\r\n`;
}

function nested(levels: number, boundary = (level: number) => `b${level}`): string {
  return Array.from({ length: levels }, (_, n) => {
    return `\r\nContent-Type: multipart/mixed; boundary=${boundary(n)}\r\n\r\n--${boundary(n)}`;
  }).join('');
}

/** No longer than RFC 5322 section 2.1.1 recommends. */
function lines(text: string): string[] {
  return text.match(/.{1,76}/gs) ?? [];
}

/** Submits one after the other, over as few connections as the server allows. */
export function createSubmitter(port: number, key: string) {
  let talk: SmtpClient | undefined;
  const connected = async () => {
    if (talk && !talk.isOver) return talk;
    talk = await connectSmtp(port, { tls: true });
    await talk.says('EHLO client.invalid\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, '235');
    return talk;
  };
  return {
    /** The reply to the message. */
    async submit({ raw }: HostileMail): Promise<string> {
      const client = await connected();
      // RFC 2920: in one write.
      client.write('MAIL FROM:<app@sender.invalid>\r\nRCPT TO:<ann@there.invalid>\r\nDATA\r\n');
      await client.reply('250');
      await client.reply('250');
      await client.reply('354');
      const stuffed = raw.replace(/^\./gm, '..');
      const reply = await client.says(Buffer.from(`${stuffed}\r\n.\r\n`, 'latin1'), '');
      // The server closes then.
      if (/^[45]21/.test(reply)) await client.over();
      return reply;
    },
    close: () => talk?.close(),
  };
}
