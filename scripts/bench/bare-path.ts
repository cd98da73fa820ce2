/**
 * The bare path of a mail, to hold Postern's cost against: a call with JSON, a message, an RSA signature, a commit that calls
 * share, SMTP over a connection that is kept, and a second commit. No check, no limit, no retry, no record. It runs in a process
 * of its own.
 */
import { fork } from 'node:child_process';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import sqlite3 from 'sqlite3';
import type { Stage } from '#lab/load/stage.ts';

export interface BarePath {
  url: string;
  pid: number;
}

interface Options {
  directory: string;
  sink: { host: string; port: number };
}

export async function startBarePath(stage: Stage, sink: Options['sink']): Promise<BarePath> {
  const options: Options = { directory: stage.directory, sink };
  const child = fork(import.meta.filename, [JSON.stringify(options)]);
  const started = once(child, 'message').then(([port]) => ({
    url: `http://127.0.0.1:${port}`,
    pid: child.pid!,
  }));
  return stage.start(started, async () => void child.kill('SIGKILL'));
}

// Everything below runs in that process.

interface Mail {
  id: number;
  to: string;
  message: string;
  accepted(): void;
}

const maxConnections = 20;

async function serve({ directory, sink }: Options): Promise<void> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const store = await openStore(join(directory, 'bare.sqlite'));
  const courier = new Courier(sink, (mail) => store.delivered(mail));
  let lastId = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { to, subject, text, html } = JSON.parse(Buffer.concat(chunks).toString());
      lastId += 1;
      const mail: Mail = {
        id: lastId,
        to,
        message: signed(privateKey, messageOf({ to, subject, text, html })),
        accepted() {
          const body = '{"success":true}';
          response
            .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
            .end(body);
          courier.add(mail);
        },
      };
      store.accept(mail);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send!((server.address() as AddressInfo).port);
}

function messageOf({ to, subject, text, html }: Record<string, string>): string {
  const part = (type: string, content: string) =>
    `--b\r\nContent-Type: text/${type}; charset=utf-8\r\n\r\n${content.replaceAll(/\r?\n/g, '\r\n')}\r\n`;
  return (
    `From: Shop <shop@sender.invalid>\r\nTo: ${to}\r\nSubject: ${subject}\r\nDate: ${new Date().toUTCString()}\r\n` +
    'MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n' +
    `${part('plain', text!)}${part('html', html!)}--b--\r\n`
  );
}

function signed(key: KeyObject, message: string): string {
  const signature = sign('sha256', Buffer.from(message), key).toString('base64');
  return `DKIM-Signature: v=1; a=rsa-sha256; d=sender.invalid; b=${signature}\r\n${message}`;
}

/** One transaction at a time; the next one takes all that has come meanwhile. */
async function openStore(file: string) {
  const db = new sqlite3.Database(file);
  const exec = (sql: string) => new Promise<void>((done) => db.exec(sql, () => done()));
  await exec('pragma journal_mode = wal; pragma synchronous = full');
  await exec('create table mails (id integer primary key, recipient text, message blob, state text)');
  const insert = db.prepare(
    "insert into mails select value ->> 'id', value ->> 'to', value ->> 'message', 'queued' from json_each(?)",
  );
  const update = db.prepare(
    "update mails set state = 'delivered' where id in (select value from json_each(?))",
  );
  // A statement of the driver costs more than the row that it writes.
  const run = (statement: sqlite3.Statement, rows: unknown[]) =>
    new Promise<void>((done, fail) => {
      if (rows.length === 0) return done();
      statement.run(JSON.stringify(rows), (error: Error | null) => (error ? fail(error) : done()));
    });
  const accepting: Mail[] = [];
  const delivered: Mail[] = [];
  let isBusy = false;
  const commit = async () => {
    if (isBusy) return;
    isBusy = true;
    while (accepting.length + delivered.length > 0) {
      const [fresh, done] = [accepting.splice(0), delivered.splice(0)];
      await exec('begin immediate');
      await run(insert, fresh);
      await run(
        update,
        done.map(({ id }) => id),
      );
      await exec('commit');
      for (const mail of fresh) mail.accepted();
    }
    isBusy = false;
  };
  return {
    accept(mail: Mail) {
      accepting.push(mail);
      setImmediate(commit);
    },
    delivered(mail: Mail) {
      delivered.push(mail);
      setImmediate(commit);
    },
  };
}

/** Kept connections with pipelining. */
class Courier {
  readonly #waiting: Mail[] = [];
  readonly #idle: (() => void)[] = [];
  readonly #sink: Options['sink'];
  readonly #onDelivered: (mail: Mail) => void;
  #connections = 0;

  constructor(sink: Options['sink'], onDelivered: (mail: Mail) => void) {
    this.#sink = sink;
    this.#onDelivered = onDelivered;
  }

  add(mail: Mail): void {
    this.#waiting.push(mail);
    const next = this.#idle.pop();
    if (next) next();
    else if (this.#connections < maxConnections) this.#connect();
  }

  #connect(): void {
    this.#connections += 1;
    const socket = connect({ ...this.#sink, noDelay: true });
    let mail: Mail | undefined;
    let text = '';
    let replies = 0;
    const next = () => {
      mail = this.#waiting.shift();
      if (!mail) return void this.#idle.push(next);
      replies = 0;
      socket.write(`MAIL FROM:<b@postern.invalid>\r\nRCPT TO:<${mail.to}>\r\nDATA\r\n`);
    };
    const onReply = () => {
      replies += 1;
      if (!mail) return replies === 1 ? void socket.write('EHLO postern.invalid\r\n') : next();
      if (replies === 3) socket.write(`${mail.message.replaceAll('\r\n.', '\r\n..')}.\r\n`);
      if (replies < 4) return;
      this.#onDelivered(mail);
      next();
    };
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n')) {
        const line = text.slice(0, end);
        text = text.slice(end + 2);
        if (line[3] !== '-') onReply();
      }
    });
  }
}

if (import.meta.main) await serve(JSON.parse(process.argv[2]!));
