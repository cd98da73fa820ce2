/** The private parts of smtp-server are still what src/platform/vendor/smtp-server.ts expects. */
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import test from 'ava';
import type { SMTPServer } from 'smtp-server';
import { checkPart, checkVersion } from '#lab/vendor.ts';

const file = 'src/platform/vendor/smtp-server.ts';
const load = () => import('#platform/vendor/smtp-server.ts');

test('smtp-server is pinned to the version that was read', (t) => checkVersion(t, 'smtp-server', file));

test('smtp-server/lib/smtp-stream passes bytes, commands and the end of a message on', async (t) => {
  await checkPart(t, 'SMTPStream of smtp-server/lib/smtp-stream', file, async () => {
    const { CommandParser } = await load();
    const events: string[] = [];
    class Parser extends CommandParser {
      protected override receive(chunk: Buffer, done: (error?: Error | null) => void): void {
        events.push(`${this.isInMessage ? 'message' : 'command'} after "${this.unfinishedLine}"`);
        this.parse(chunk, done);
      }

      protected override contentOf(chunk: Buffer) {
        const used = chunk.indexOf('\n.\r\n') + '\n.\r\n'.length;
        return { content: chunk.subarray(0, used - '.\r\n'.length), used, isEnd: true };
      }

      protected override onMessageEnd(hasMore: boolean): void {
        events.push(hasMore ? 'end, more' : 'end');
      }
    }
    const parser = new Parser();
    parser.oncommand = (command, next = () => {}) => {
      events.push(String(command));
      if (String(command) === 'DATA') {
        parser
          .startDataMode()
          .on('end', () => parser.continue())
          .on('data', (content: Buffer) => events.push(JSON.stringify(String(content))));
      }
      next();
    };
    const write = (text: string) => new Promise((resolve) => parser.write(text, resolve));
    for (const text of ['NO', 'OP\r\n', 'DATA\r\n', 'x\r\n.\r\nQUIT\r\n']) await write(text);
    const expected =
      'command after "",command after "NO",NOOP,command after "",DATA,message after "",end, more';
    return String(events) === `${expected},"x\\r\\n",command after "",QUIT`;
  });
});

test('smtp-server/lib/smtp-connection asks before commands, logins, paths and messages, and tells of its end', async (t) => {
  await checkPart(t, 'SMTPConnection of smtp-server/lib/smtp-connection', file, async () => {
    const { ClientSession, CommandParser, SessionServer } = await load();
    const events: string[] = [];
    class Parser extends CommandParser {
      protected override receive(chunk: Buffer, done: (error?: Error | null) => void): void {
        this.parse(chunk, done);
      }

      protected override contentOf(content: Buffer) {
        return { content, used: content.length, isEnd: false };
      }

      protected override onMessageEnd(): void {}
    }
    class Session extends ClientSession {
      constructor(server: SMTPServer, socket: Socket) {
        super(server, socket);
        this.useParser(
          () => new Parser(),
          () => {},
        );
      }

      protected override mayLogIn(): boolean {
        return false;
      }

      protected override refuseLogin(): void {
        this.send(538, `login refused ${this.isBusy} ${this.isDeciding} ${this.isInLogin} ${this.isEnding}`);
      }

      protected override admitCommand(): boolean {
        events.push('command');
        return true;
      }

      protected override readPath(isSender: boolean, text: string) {
        events.push(isSender ? `from ${text}` : `to ${text}`);
        return { address: text, parameters: '' };
      }

      protected override admitMessage(): boolean {
        this.send(552, 'no message');
        return false;
      }

      protected override onClosed(): void {
        events.push('closed');
      }
    }
    class Server extends SessionServer<Session> {
      protected override admit(): boolean {
        events.push('admitted');
        return true;
      }

      protected override isProxy(): boolean {
        return false;
      }

      protected override createSession(socket: Socket): Session {
        return new Session(this, socket);
      }
    }
    const server = new Server({
      logger: false,
      disableReverseLookup: true,
      allowInsecureAuth: true,
      authOptional: true,
      hideENHANCEDSTATUSCODES: false,
    });
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    const client = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
    let received = '';
    const answers: [RegExp, string][] = [
      [/^538 /m, 'MAIL FROM:a'],
      [/^250 2.1.0/m, 'RCPT TO:b'],
      [/^250 2.1.5/m, 'DATA'],
      [/^552 /m, 'QUIT'],
      [/^250 /m, 'AUTH PLAIN'],
    ];
    for await (const chunk of client.setEncoding('utf8')) {
      const before = received;
      received += chunk;
      const said = before === '' ? 'EHLO client.invalid' : answers.find(([reply]) => reply.test(chunk))?.[1];
      if (said === 'QUIT') client.end('QUIT\r\n');
      else if (said) client.write(`${said}\r\n`);
    }
    await new Promise<void>((resolve) => server.close(resolve));
    const isOffered = /^250[ -]AUTH/m.test(received);
    const isRefused = /^538 .*login refused true true false false/m.test(received);
    const expected = 'admitted,command,command,command,from a,command,to b,command,command,closed';
    return !isOffered && isRefused && String(events) === expected;
  });
});
