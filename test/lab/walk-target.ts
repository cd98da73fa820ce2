/** What the walk (hostile-walk.ts) needs to know of a running server, and what came of its trials. */
import { ask } from './ask.ts';
import type { Browser } from './browser/browser.ts';
import { formsOf } from './dashboard-forms.ts';
import { type Target, type Trial, trialsOf, type WalkedRoute } from './hostile-walk.ts';

interface Walked extends Pick<Target, 'url' | 'key' | 'bytes' | 'oneOf'> {
  orgId: string;
  /** Signed in as the operator. */
  browser: Browser;
}

export async function targetOf({ orgId, browser, ...rest }: Walked): Promise<Target> {
  const id = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
  const domain = 'sender.invalid';
  const values = { org: orgId, id, name: domain, domain, stream: 'outbound' };
  const forms = await formsOf(browser, values);
  await browser.get('/dashboard/account');
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  return { ...rest, values, signedIn: { cookie, csrf: browser.csrf() }, forms };
}

const maxAnswer = 100_000;
/** Numbers in /metrics get longer. */
const grown = 1_000;

export interface Tally {
  routes: number;
  bodies: number;
  trials: number;
  largest: { bytes: number; what: string };
  /** How many answers had which status. */
  statuses: Record<number, number>;
  faults: string[];
}

export function newTally(): Tally {
  return { routes: 0, bodies: 0, trials: 0, largest: { bytes: 0, what: '' }, statuses: {}, faults: [] };
}

/** `around` is called with each trial, and makes it. */
export async function walkRoute(
  route: WalkedRoute,
  target: Target,
  tally: Tally,
  around: (trial: Trial, make: () => Promise<void>) => Promise<unknown>,
): Promise<void> {
  tally.routes += 1;
  tally.bodies += route.bodies.length;
  // A document of our own can be larger, whatever is asked.
  const plain = isDocument(route) ? (await ask(target.url + route.path)).bytes + grown : 0;
  for (const trial of trialsOf(route, target)) {
    await around(trial, async () => {
      const { status, bytes, text } = await ask(trial.url, trial.question);
      const isFault = status === 0 || status >= 500;
      record(tally, trial.what, { status, bytes: bytes > plain ? bytes : 0, text, isFault });
    });
  }
}

interface Answer {
  status: number;
  bytes: number;
  text: string;
  isFault: boolean;
}

/** `reply` is that to a whole message. Besides those of 55x, 521 refuses one: its lines end otherwise than with CRLF. */
export function recordReply(tally: Tally, what: string, reply: string): void {
  const status = Number(reply.slice(0, 3));
  const isFault = ![250, 521].includes(status) && Math.floor(status / 10) !== 55;
  record(tally, what, { status, bytes: reply.length, text: reply, isFault });
}

function record(tally: Tally, what: string, { status, bytes, text, isFault }: Answer): void {
  tally.trials += 1;
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1;
  if (isFault) tally.faults.push(`${what}: ${status || 'no answer'} ${text.slice(0, 200)}`);
  if (bytes > maxAnswer) tally.faults.push(`${what}: an answer of ${bytes} bytes`);
  if (bytes > tally.largest.bytes) tally.largest = { bytes, what };
}

/** For everybody: neither a key nor a parameter of the path. */
const isDocument = ({ method, path, service }: WalkedRoute) =>
  method === 'GET' && ['pages', 'api', 'operations'].includes(service) && !/[:{]/.test(path);

export function inWords({ routes, bodies, trials, largest, statuses }: Tally): string {
  return `${routes} routes, ${bodies} bodies, ${trials} trials; largest answer ${largest.bytes} bytes: ${largest.what}; statuses ${JSON.stringify(statuses)}`;
}
