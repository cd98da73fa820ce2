/** The webhook endpoint of one organization, as the faults want it to be. */
import type { Book } from '../book.ts';
import type { Network, VirtualSocket } from '../machine/network.ts';
import { type Machine, newMachine, scheduler } from '../machine/scheduler.ts';

export const endpointModes = [
  'answers',
  'fails',
  'hangs',
  'redirects',
  'answers for ever',
  'hangs up',
  'is slow',
] as const;
export type EndpointMode = (typeof endpointModes)[number];

export class Endpoint {
  mode: EndpointMode = 'answers';
  readonly machine: Machine;
  readonly #name: string;
  readonly #book: Book;

  constructor(network: Network, name: string, address: string, book: Book) {
    this.#name = name;
    this.#book = book;
    this.machine = newMachine(name);
    network.attach(this.machine, address);
    network.listen(this.machine, 80, { accept: (socket) => this.#serve(socket), allowHalfOpen: false });
  }

  #serve(socket: VirtualSocket): void {
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = received.slice(0, end);
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (received.length < end + 4 + length) return;
      const body = received.slice(end + 4, end + 4 + length);
      received = received.slice(end + 4 + length);
      this.#answer(socket, head, body);
    });
  }

  #answer(socket: VirtualSocket, head: string, body: string): void {
    const { mode } = this;
    const isTaken = mode === 'answers' || mode === 'is slow' || mode === 'answers for ever';
    this.#note(head, body, isTaken);
    if (mode === 'hangs') return;
    if (mode === 'hangs up') return void socket.destroy();
    if (mode === 'answers for ever') {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      return void this.#drip(socket);
    }
    const lines = {
      fails: '500 Oops',
      redirects: '302 Found\r\nlocation: http://169.254.169.254/',
    } as Record<string, string>;
    const answer = `HTTP/1.1 ${lines[mode] ?? '200 OK'}\r\ncontent-length: 0\r\n\r\n`;
    scheduler.after(
      mode === 'is slow' ? 9_000 : 1,
      () => void (socket.destroyed || socket.write(answer)),
      this.machine,
    );
  }

  #drip(socket: VirtualSocket): void {
    if (socket.destroyed) return;
    socket.write('1\r\nx\r\n');
    scheduler.after(500, () => this.#drip(socket), this.machine);
  }

  #note(head: string, body: string, isTaken: boolean): void {
    const eventId = /^webhook-id: (\S+)/im.exec(head)?.[1] ?? '';
    const { type, data } = JSON.parse(body);
    const { emailId = '', recipient = '' } = data ?? {};
    this.#book.posts.push({
      endpoint: this.#name,
      eventId,
      emailId,
      type,
      recipient,
      at: scheduler.time,
      isTaken,
    });
    const mail = this.#book.byEmailId.get(emailId);
    if (mail)
      this.#book.tell(
        mail.number,
        `${this.#name} gets ${type} of ${recipient}${isTaken ? '' : ', and does not take it'}`,
      );
  }
}
