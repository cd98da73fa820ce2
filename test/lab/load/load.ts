/**
 * Sends mails to Postern over its HTTP API, with concurrent calls over persistent connections, and records the time of each
 * response. The client is plain node:http, because its cost is taken from the machine that is being measured.
 */
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Sent {
  to: string;
  /** Milliseconds since the epoch, with fractions: the time of the call, and of its 200. */
  calledAt: number;
  answeredAt: number;
}

export interface Load {
  url: string;
  key: string;
  to: string[];
  /** Concurrent calls. */
  parallel?: number;
  /** Interval between the starts of calls, if the concurrent calls can keep up. */
  intervalMs?: number;
  interrupted: AbortSignal;
}

/** Rejects if any call is not answered 200. */
export async function sendAll({ to, parallel = 16, intervalMs = 0, ...rest }: Load): Promise<Sent[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: parallel });
  const waiting = [...to.entries()].reverse();
  const begun = performance.now();
  const sent: Sent[] = [];
  const work = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      rest.interrupted.throwIfAborted();
      const early = begun + next[0] * intervalMs - performance.now();
      if (early > 0) await sleep(early);
      sent.push(await sendOne(next[1], agent, rest));
    }
  };
  try {
    await Promise.all(Array.from({ length: parallel }, work));
  } finally {
    agent.destroy();
  }
  return sent;
}

const now = () => performance.timeOrigin + performance.now();

async function sendOne(to: string, agent: http.Agent, target: Target): Promise<Sent> {
  const calledAt = now();
  const { status, body } = await call(to, agent, target);
  if (status === 200) return { to, calledAt, answeredAt: now() };
  throw new Error(`the send to ${to} was answered ${status}: ${body}`);
}

interface Target {
  url: string;
  key: string;
  /** Lines of the mail's text. */
  lines?: number;
  /** Gives each mail an idempotency key: its recipient. */
  isKeyed?: boolean;
}

interface Answer {
  status: number;
  body: string;
  isReplay: boolean;
}

function call(to: string, agent: http.Agent, target: Target): Promise<Answer> {
  const { url, key, lines = 40, isKeyed = false } = target;
  const text = `Hello,\n\nyour order has been sent.\n\n${'All of this is an ordinary line of a mail.\n'.repeat(lines)}`;
  const body = JSON.stringify({ from: 'Shop <shop@sender.invalid>', to, subject: 'Your order', text });
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(isKeyed && { 'idempotency-key': to }),
    };
    const request = http.request(
      `${url}/api/public/email/send`,
      { method: 'POST', agent, headers },
      (answer) => {
        let body = '';
        answer.on('data', (chunk) => (body += chunk));
        answer.on('error', reject);
        const isReplay = answer.headers['idempotent-replayed'] === 'true';
        answer.on('end', () => resolve({ status: answer.statusCode!, body, isReplay }));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Recipients by the status of the response; 0 if there was none. */
export type Answers = Map<number, string[]>;

/** Wait before the next call after a refusal. */
const pauseMs = 50;

/** Calls `onAnswer` for each response. */
type ContinuousLoad = Target & {
  name: string;
  parallel: number;
  stopped: AbortSignal;
  onAnswer?(status: number, body: string): void;
};

/** Sends at full speed, each mail to a recipient of its own at there.invalid, until `stopped`. */
export async function sendUntilStopped(target: ContinuousLoad, answers: Answers): Promise<void> {
  const { name, parallel, stopped } = target;
  const agent = new http.Agent({ keepAlive: true });
  const work = async (sender: number) => {
    for (let number = 0; !stopped.aborted; number++) {
      const to = `${name}s${sender}n${number}@there.invalid`;
      const status = await call(to, agent, target).then(
        (answer) => {
          target.onAnswer?.(answer.status, answer.body);
          return answer.status;
        },
        () => 0,
      );
      if (!answers.has(status)) answers.set(status, []);
      answers.get(status)!.push(to);
      if (status !== 200) await sleep(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: parallel }, (_, sender) => work(sender)));
  agent.destroy();
}

/** Repeats calls that `pour` made with keys; returns the recipients whose answers were replays. Each call must be answered 200. */
export async function repeat(target: Target, to: string[]): Promise<Set<string>> {
  const agent = new http.Agent({ keepAlive: true });
  const replays = new Set<string>();
  try {
    for (const one of to) {
      const { status, body, isReplay } = await call(one, agent, { ...target, isKeyed: true });
      if (status !== 200) throw new Error(`the repeated send to ${one} was answered ${status}: ${body}`);
      if (isReplay) replays.add(one);
    }
  } finally {
    agent.destroy();
  }
  return replays;
}

/** `count` recipients of a domain, unique among everything that a script sends. */
export function recipients(domain: string, count: number, label: string): string[] {
  return Array.from({ length: count }, (_, number) => `${label}-${number}@${domain}`);
}
