/**
 * Another organization, as a process by itself: it sends a small mail every 50 ms over HTTP, and asks for /health/live all
 * the time. How long the slowest of these took is how long the server's event loop stood still.
 *
 * A send's time counts from the moment when it was due, so a server that stands still for six seconds makes all the
 * sends of those six seconds late, and not only those that were under way.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

interface Sample {
  /** Milliseconds since the epoch: when it was due. */
  at: number;
  ms: number;
  /** Of the answer; 0: none came. */
  status: number;
}

export interface Observation {
  sends: Sample[];
  probes: Sample[];
}

export interface Bystander {
  /** What was due in between; waits a while for sends that are not answered yet. */
  observed(from: number, to: number): Promise<Observation>;
  stop(): Promise<unknown>;
}

interface Settings {
  url: string;
  key: string;
}

export async function startBystander(settings: Settings): Promise<Bystander> {
  const child = fork(import.meta.filename, [JSON.stringify(settings)]);
  await once(child, 'message');
  return {
    async observed(from, to) {
      const answer = once(child, 'message');
      child.send({ from, to });
      return (await answer)[0];
    },
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
    },
  };
}

// From here on: the process.

const sendIntervalMs = 50;
const probeIntervalMs = 20;
const maxInFlight = 8;
/** Sends that are due and not begun; beyond it more would prove nothing more. */
const maxWaiting = 400;
const timeoutMs = 15_000;
/** What is not answered so long after an attack is late enough. */
const graceMs = 5_000;

const agent = new http.Agent({ keepAlive: true, maxSockets: maxInFlight });
const probeAgent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const seen: Observation = { sends: [], probes: [] };
/** When the sends were due that are not answered yet. */
const open = new Set<number>();
/** When the probe was asked that is under way. */
let probing = Date.now();

function call(url: string, options: http.RequestOptions, body?: string): Promise<number> {
  return new Promise((resolve) => {
    const request = http.request(url, options, (response) => {
      response.resume();
      response.on('end', () => done(response.statusCode!));
      response.on('error', () => done(0));
    });
    const overdue = setTimeout(() => done(0), timeoutMs);
    request.on('error', () => done(0));
    request.end(body);
    function done(status: number): void {
      clearTimeout(overdue);
      if (status === 0) request.destroy();
      resolve(status);
    }
  });
}

async function keepProbing(url: string): Promise<void> {
  for (;;) {
    const at = Date.now();
    probing = at;
    const status = await call(`${url}/health/live`, { agent: probeAgent });
    seen.probes.push({ at, ms: Date.now() - at, status });
    await sleep(Math.max(probeIntervalMs - (Date.now() - at), status === 0 ? 100 : 0));
  }
}

function keepSending({ url, key }: Settings): void {
  const waiting: number[] = [];
  let inFlight = 0;
  let count = 0;
  const text = 'Hello,\n\nyour order has been sent.\n'.repeat(10);
  const next = async () => {
    const at = waiting.shift();
    if (at === undefined || inFlight >= maxInFlight) return void (at !== undefined && waiting.unshift(at));
    inFlight += 1;
    const to = `other-${process.pid}-${++count}@there.invalid`;
    const body = JSON.stringify({ from: 'Other <other@sender.invalid>', to, subject: 'Your order', text });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const status = await call(`${url}/api/public/email/send`, { method: 'POST', agent, headers }, body);
    seen.sends.push({ at, ms: Date.now() - at, status });
    open.delete(at);
    inFlight -= 1;
    void next();
  };
  let due = Date.now();
  setInterval(() => {
    // A timer that was late makes up for it.
    for (; due <= Date.now(); due += sendIntervalMs) {
      if (waiting.length >= maxWaiting) continue;
      waiting.push(due);
      open.add(due);
      void next();
    }
  }, sendIntervalMs / 5);
}

async function answer({ from, to }: { from: number; to: number }): Promise<void> {
  const isDue = (at: number) => at >= from && at <= to;
  for (const end = Date.now() + graceMs; Date.now() < end && [...open].some(isDue); ) await sleep(20);
  const unanswered = [...open].filter(isDue).map((at) => ({ at, ms: Date.now() - at, status: 0 }));
  const probes = [...seen.probes, { at: probing, ms: Date.now() - probing, status: 0 }];
  process.send!({
    sends: [...seen.sends.filter(({ at }) => isDue(at)), ...unanswered],
    // One that was asked before may tell of a standstill that began after.
    probes: probes.filter(({ at, ms }) => at + ms >= from && at <= to),
  });
}

if (import.meta.main) {
  const settings: Settings = JSON.parse(process.argv[2]!);
  process.on('message', (window: { from: number; to: number }) => void answer(window));
  process.on('disconnect', () => process.exit());
  // Ctrl-C at the terminal is for the parent, which ends us when it is done.
  process.on('SIGINT', () => {});
  keepSending(settings);
  void keepProbing(settings.url);
  process.send!('ready');
}
