/** One mail from an actor to port 25 of the service, on a connection of its own. */
import { type Network, VirtualSocket } from '../machine/network.ts';
import { type Machine, scheduler } from '../machine/scheduler.ts';

export interface Submission {
  from: string;
  to: string;
  message: string;
}

/** The reply that decided; null: there was none. `isInDoubt`: the whole message was sent, and nothing came back. */
type Done = (reply: string | null, isInDoubt: boolean) => void;

const timeoutMs = 60_000;

export function submitMail(
  network: Network,
  [machine, target]: [machine: Machine, target: string],
  { from, to, message }: Submission,
  done: Done,
): void {
  scheduler.as(machine, () => {
    const socket = new VirtualSocket(network);
    socket.connecting = true;
    const end = `${message}\r\n.`;
    const steps = [`EHLO ${machine.name}`, `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, 'DATA', end, 'QUIT'];
    let received = '';
    let isOver = false;
    const finish = (reply: string | null) => {
      if (isOver) return;
      isOver = true;
      timer.run = null;
      socket.destroy();
      done(reply, reply === null && !steps.includes(end));
    };
    const timer = scheduler.after(timeoutMs, () => finish(null));
    socket.on('error', () => finish(null));
    socket.on('close', () => finish(null));
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1');
      const reply = /^(\d{3})(?: .*)?\r\n$/m.exec(received)?.[0]?.trim();
      if (!reply) return;
      received = '';
      const step = steps.shift()!;
      if (!/^[23]/.test(reply) || step === 'QUIT') finish(reply);
      else socket.write(`${step}\r\n`);
    });
    network.connect(socket, target, 25);
  });
}
