/**
 * Opens a connection to a host: its addresses race (RFC 8305), IPv6 and IPv4 in turn, each family in random order, and
 * the first address that connects wins.
 *
 * An address that failed recently, or lost to one that started later, is tried last and gets no head start, but it is
 * always tried. Private and special addresses are checked again at this last moment, whatever the look-up said. Knows
 * nothing of SMTP. Rejects with one sentence that names each address and its error (a NoSource if we had no address
 * to connect from), or with the signal's reason; no socket stays open then. Timeouts use the real clock.
 */
import { isIPv6, type Socket } from 'node:net';
import type { Clock } from '#platform/base/clock.ts';
import { defaultPool, NoSource } from '#platform/values/ip-pool.ts';
import { isForbidden } from '#platform/vendor/mx-connect.ts';
import { createFailedAddresses, type FailedAddresses } from './failed-addresses.ts';
import type { Exchanger } from './route.ts';
import { interleaved, shuffled } from './shuffle.ts';
import { createSources, type Source, type Sources, type Wanted } from './source-addresses.ts';
import { AllFailed, race } from './staggered-race.ts';
import { dial, failureText } from './tcp-dial.ts';

export interface OpenedSocket {
  /** Has one listener, for errors (tcp-dial.ts). */
  socket: Socket;
  address: string;
  /** Our own address; null: the system chose it. */
  source: string | null;
  /** Our name in EHLO. */
  localName: string;
}

export type Connect = (host: Exchanger, wanted: Wanted, stopped: AbortSignal) => Promise<OpenedSocket>;

export interface ConnectParts {
  port: number;
  /** The timeout for each address. */
  timeoutMs: number;
  allowPrivate: boolean;
  /** Our own addresses; if there are none, the system chooses. */
  sources: Source[];
  /** Our name in EHLO, unless the source address has its own. */
  hostname: string;
  clock: Clock;
  random: () => number;
  onError(what: string, error: unknown): void;
}

/** RFC 8305 section 8: the recommended Connection Attempt Delay. */
const headStartMs = 250;

interface Candidate {
  address: string;
  headStart: boolean;
}

export function createConnect(parts: ConnectParts): Connect {
  const { port, timeoutMs, random } = parts;
  const failures = createFailedAddresses(parts.clock);
  const sources = createSources(parts);

  return async (host, wanted, stopped) => {
    const refused = refusals(host.addresses, wanted, sources, parts.allowPrivate);
    const allowed = host.addresses.filter((address) => !refused.has(address));
    const candidates = inOrder(allowed, failures, random);
    if (candidates.length === 0) throw unanswered(host.name, [...refused.values()]);
    const runners = candidates.map(({ address, headStart }) => ({
      headStart,
      run: (over: AbortSignal) => open(address, wanted, over),
    }));
    const discard = ({ socket }: OpenedSocket) => void socket.destroy();
    try {
      const opened = await race(runners, { headStartMs, stopped, discard });
      noteWinner(candidates, opened.address, failures);
      return opened;
    } catch (error) {
      if (!(error instanceof AllFailed)) throw error;
      const failed = error.errors.map((one, at) => ({
        text: `${candidates[at]!.address} ${failureText(one)}`,
        isOurs: one instanceof NoSource,
      }));
      throw unanswered(host.name, [...failed, ...refused.values()]);
    }
  };

  /** Uses our source addresses in turn; if one cannot be bound, the next one is used. */
  async function open(address: string, wanted: Wanted, over: AbortSignal): Promise<OpenedSocket> {
    let unbound: Error | null = null;
    for (const origin of sources.turns(address, wanted)) {
      try {
        const socket = await dial({ address, port, from: origin.address, timeoutMs }, over);
        sources.worked(origin);
        return { socket, address, source: origin.address ?? null, localName: origin.localName };
      } catch (error) {
        if (over.aborted || error instanceof NoSource) throw error;
        if (origin.address === undefined || (error as NodeJS.ErrnoException).syscall !== 'bind') {
          failures.failed(address);
          throw error;
        }
        unbound = error as Error;
        sources.unusable(origin, unbound);
      }
    }
    const text = `cannot be reached: no source address of the pool ${wanted.pool} can be used`;
    throw new NoSource(text, { cause: unbound });
  }
}

/** Why an address was not reached, and whether the reason is that we have no address to connect from. */
interface Failure {
  text: string;
  isOurs: boolean;
}

/** The addresses that must not be tried, each with the reason. */
function refusals(addresses: string[], wanted: Wanted, sources: Sources, allowPrivate: boolean) {
  const refused = new Map<string, Failure>();
  for (const address of addresses) {
    if (isForbidden(address, allowPrivate)) {
      const text = `${address} is a private or special address, which is not allowed here`;
      refused.set(address, { text, isOurs: false });
    } else if (!sources.canReach(address, wanted)) {
      const ofPool = wanted.pool === defaultPool ? '' : ` of the pool ${wanted.pool}`;
      const text = `${address} is of a family that POSTERN_MTA_SOURCES has no address${ofPool} for`;
      refused.set(address, { text, isOurs: true });
    }
  }
  return refused;
}

/** The addresses that failed recently come last. */
function inOrder(addresses: string[], failures: FailedAddresses, random: () => number): Candidate[] {
  const isDead = (address: string) => failures.isDead(address);
  const good = alternating(
    addresses.filter((address) => !isDead(address)),
    random,
  );
  const dead = alternating(addresses.filter(isDead), random);
  return [
    ...good.map((address) => ({ address, headStart: true })),
    ...dead.map((address) => ({ address, headStart: false })),
  ];
}

function alternating(addresses: string[], random: () => number): string[] {
  const mixed = shuffled(addresses, random);
  return interleaved(
    mixed.filter((address) => isIPv6(address)),
    mixed.filter((address) => !isIPv6(address)),
  );
}

/** Addresses that started before the winner and had a head start delayed this mail: the next mail tries them last. */
function noteWinner(candidates: Candidate[], winner: string, failures: FailedAddresses): void {
  const at = candidates.findIndex(({ address }) => address === winner);
  for (const { address, headStart } of candidates.slice(0, at)) if (headStart) failures.failed(address);
  failures.worked(winner);
}

function unanswered(name: string, failures: Failure[]): Error {
  const isOurs = failures.length > 0 && failures.every((one) => one.isOurs);
  const reasons = failures.map(({ text }) => text).join('; ');
  return isOurs
    ? new NoSource(`${name} was not called: ${reasons}`)
    : new Error(`${name} does not answer: ${reasons}`);
}
