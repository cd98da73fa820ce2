/**
 * Opens a connection to a host: its addresses race (RFC 8305), IPv6 and IPv4 in turn, each family in random order,
 * and the first that connects is the host.
 *
 * An address that lately failed, or was outrun by one that set off later, comes last and without a head start; none
 * is given up for that. Private and special addresses are refused unless allowed, once more at this last moment,
 * whoever chose them. Knows nothing of SMTP. Rejects with one sentence that names each address and its trouble (a
 * NoSource where we had nothing to call any of them from), or with the signal's reason; then nothing is left
 * open. Timeouts and head starts run on the real clock.
 */
import { isIPv6, type Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { defaultPool, NoSource } from '../mail/ip-pool.ts';
import { isForbidden } from '../vendor/mx-connect.ts';
import { createFailedAddresses } from './failed-addresses.ts';
import type { Exchanger } from './route.ts';
import { interleaved, shuffled } from './shuffle.ts';
import { createSources, type Source, type Wanted } from './source-addresses.ts';
import { AllFailed, race } from './staggered-race.ts';
import { dial, troubleOf } from './tcp-dial.ts';

export interface Opened {
  /** With one listener, for errors (tcp-dial.ts). */
  socket: Socket;
  address: string;
  /** Our own address; null: the system's choice. */
  source: string | null;
  /** Our name in EHLO. */
  localName: string;
}

export type Connect = (host: Exchanger, wanted: Wanted, stopped: AbortSignal) => Promise<Opened>;

export interface ConnectParts {
  port: number;
  /** For each address. */
  timeoutMs: number;
  allowPrivate: boolean;
  /** Our own addresses; none: the system's choice. */
  sources: Source[];
  /** Our name in EHLO where the source has none of its own. */
  hostname: string;
  clock: Clock;
  random: () => number;
  onError(what: string, error: unknown): void;
}

/** RFC 8305 section 8: the recommended Connection Attempt Delay. */
const headStartMs = 250;

interface ConnectionSource {
  address: string;
  headStart: boolean;
}

export function createConnect(parts: ConnectParts): Connect {
  const { port, timeoutMs, allowPrivate, random } = parts;
  const paths = createFailedAddresses(parts.clock);
  const sources = createSources(parts);

  return async (host, wanted, stopped) => {
    const refused = refusals(host.addresses, wanted.pool);
    const lanes = inOrder(host.addresses.filter((address) => !refused.has(address)));
    if (lanes.length === 0) throw unanswered(host.name, [...refused.values()]);
    const runners = lanes.map(({ address, headStart }) => ({
      headStart,
      run: (over: AbortSignal) => open(address, wanted, over),
    }));
    const discard = ({ socket }: Opened) => void socket.destroy();
    try {
      const opened = await race(runners, { headStartMs, stopped, discard });
      noteWinner(lanes, opened.address);
      return opened;
    } catch (error) {
      if (!(error instanceof AllFailed)) throw error;
      const said = error.errors.map((one, lane) => trouble(`${lanes[lane]!.address} ${troubleOf(one)}`, one));
      throw unanswered(host.name, [...said, ...refused.values()]);
    }
  };

  /** The addresses that are not to be tried, each with why. */
  function refusals(addresses: string[], pool: string): Map<string, Trouble> {
    const refused = new Map<string, Trouble>();
    for (const address of addresses) {
      if (isForbidden(address, allowPrivate)) {
        const text = `${address} is a private or special address, which is not allowed here`;
        refused.set(address, { text, isOurs: false });
      } else if (!sources.canReach(address, pool)) {
        const whose = pool === defaultPool ? '' : ` of the pool ${pool}`;
        const text = `${address} is of a family that POSTERN_MTA_SOURCES has no address${whose} for`;
        refused.set(address, { text, isOurs: true });
      }
    }
    return refused;
  }

  function inOrder(addresses: string[]): ConnectionSource[] {
    const alive = alternating(addresses.filter((address) => !paths.isDead(address)));
    const dead = alternating(addresses.filter((address) => paths.isDead(address)));
    return [
      ...alive.map((address) => ({ address, headStart: true })),
      ...dead.map((address) => ({ address, headStart: false })),
    ];
  }

  function alternating(addresses: string[]): string[] {
    const mixed = shuffled(addresses, random);
    return interleaved(
      mixed.filter((address) => isIPv6(address)),
      mixed.filter((address) => !isIPv6(address)),
    );
  }

  /** Those that set off before the winner failed, or had a head start and lost it: they make the next mail wait. */
  function noteWinner(lanes: ConnectionSource[], winner: string): void {
    const place = lanes.findIndex(({ address }) => address === winner);
    for (const { address, headStart } of lanes.slice(0, place)) if (headStart) paths.failed(address);
    paths.worked(winner);
  }

  /** From the source whose turn it is; one that cannot be bound gives way to the next. */
  async function open(address: string, wanted: Wanted, over: AbortSignal): Promise<Opened> {
    let unbound: Error | null = null;
    for (const origin of sources.turns(address, wanted)) {
      try {
        const socket = await dial({ address, port, from: origin.address, timeoutMs }, over);
        sources.worked(origin);
        return { socket, address, source: origin.address ?? null, localName: origin.localName };
      } catch (error) {
        if (over.aborted || error instanceof NoSource) throw error;
        if (origin.address === undefined || !isOfBinding(error as NodeJS.ErrnoException)) {
          paths.failed(address);
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

function isOfBinding(error: NodeJS.ErrnoException): boolean {
  return error.syscall === 'bind';
}

/** Why an address did not serve, and whether that is for want of something to call it from. */
interface Trouble {
  text: string;
  isOurs: boolean;
}

const trouble = (text: string, error: Error): Trouble => ({ text, isOurs: error instanceof NoSource });

function unanswered(name: string, troubles: Trouble[]): Error {
  const isOurs = troubles.length > 0 && troubles.every((one) => one.isOurs);
  const said = troubles.map(({ text }) => text).join('; ');
  return isOurs
    ? new NoSource(`${name} was not called: ${said}`)
    : new Error(`${name} does not answer: ${said}`);
}
