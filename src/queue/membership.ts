/**
 * Which nodes send, and so which part of each destination's limits is this one's.
 *
 * About once a second each node publishes that it lives and whom it counts, then reads the same of the others. Its part
 * shrinks as soon as it counts one more, and grows only when all that it counts have published that they count the same:
 * who is new, or was silent, has nothing until the others have made room. One that has not published for ten seconds is
 * counted no longer; it has itself begun nothing for the last three of them. Silence is measured by the clock of who
 * listens, so the sum of all parts is within the whole whatever a node's clock says.
 */
import { createHash } from 'node:crypto';
import { part, rankOf } from './share.ts';

/** What a node publishes of itself. */
export interface Heartbeat {
  node: string;
  /** Whom it counts (`members` of its roster). */
  members: string;
  /** Another one each time. */
  at: number;
}

/** What of a destination's limits is this node's. */
export interface Share {
  /** The part of a whole; `turn` moves the order of the nodes along. */
  of(total: number, turn?: number): number;
  /** Whether it may be used now: others may have taken it over from a node that cannot be heard. */
  isTrusted(now: number): boolean;
  /** Since when it has been as large as it is. */
  readonly since: number;
}

/** Of the only node. */
export const whole: Share = { of: (total) => total, isTrusted: () => true, since: Number.NEGATIVE_INFINITY };

export interface Membership {
  /** To be published with the next beat. */
  readonly members: string;
  readonly others: readonly string[];
  /** What was read after this node's own beat of `begunAt` had been committed. True where the parts have changed. */
  update(heartbeats: Heartbeat[], begunAt: number, now: number): boolean;
  share(name: string): Share;
}

const goneMs = 10_000;
/** By then others may be about to count this node no longer. */
const trustedMs = 7_000;
/** So long ago by their own clock: not even worth the wait. Clocks do not differ by that much. */
const longGoneMs = 60_000;

interface SeenNode {
  at: number;
  /** When this node first read it. */
  changedAt: number;
  /** It has published again since this node came, or came back. */
  isNew: boolean;
}

/**
 * `least`: what it has everywhere once the others count it, though its part may be nothing. 1 for a node with mail that no
 * other can send (pools of source addresses): where there are more such nodes than connections, the sum goes over the
 * whole by as many, for else that mail would never leave.
 */
export function createMembership(self: string, min = 0): Membership {
  const seen = new Map<string, SeenNode>();
  /** Whom this node counts, and whom it did when all agreed last. */
  let current = [self];
  let agreed: string[] = [];
  let publishedAt = Number.NEGATIVE_INFINITY;
  let since = Number.NEGATIVE_INFINITY;
  /** Nobody else is there, as it found out while others could hear it: nobody has taken anything over. */
  let isAlone = false;
  let changes = 0;

  function noteHeartbeats(heartbeats: Heartbeat[], isBack: boolean, now: number): void {
    const before = new Map(seen);
    seen.clear();
    for (const { node, at } of heartbeats) {
      const known = before.get(node);
      const isNew = known !== undefined && !isBack && (known.isNew || known.at !== at);
      seen.set(node, { at, changedAt: known?.at === at ? known.changedAt : now, isNew });
    }
  }

  function isLive({ node, at }: Heartbeat, now: number): boolean {
    return now - seen.get(node)!.changedAt < goneMs && at > now - longGoneMs;
  }

  function shareNow(name: string): Share {
    const partIn = (nodes: string[]) => {
      if (!nodes.includes(self)) return () => 0;
      const rank = rankOf(self, nodes, name);
      return (total: number, turn: number) => part(total, nodes.length, (rank + turn) % nodes.length);
    };
    const [before, after] = [partIn(agreed), partIn(current)];
    const floor = agreed.includes(self) ? min : 0;
    return {
      of: (total, turn = 0) =>
        Math.max(Math.min(before(total, turn), after(total, turn)), Math.min(floor, total)),
      isTrusted: (now) => isAlone || now - publishedAt < trustedMs,
      since,
    };
  }

  return {
    get members() {
      return hashOf(current);
    },
    get others() {
      return current.filter((node) => node !== self);
    },
    update(heartbeats, begunAt, now) {
      const isBack = begunAt - publishedAt >= trustedMs;
      publishedAt = begunAt;
      noteHeartbeats(heartbeats, isBack, now);
      const live = heartbeats.filter((heartbeat) => isLive(heartbeat, now));
      const [previous, previousAgreed] = [current, agreed];
      current = [self, ...live.map(({ node }) => node)].sort();
      if (isBack) agreed = [];
      isAlone = live.length === 0 && now - begunAt < trustedMs;
      const members = hashOf(current);
      const isAgreed = live.every(
        (heartbeat) => heartbeat.members === members && seen.get(heartbeat.node)!.isNew,
      );
      if (isAgreed) agreed = current;
      if (hashOf(previous) === members && hashOf(previousAgreed) === hashOf(agreed)) return false;
      changes += 1;
      if (isAgreed && live.length > 0) since = now;
      return true;
    },
    share(name) {
      let asOf = -1;
      let share = whole;
      const newest = () => {
        if (asOf !== changes) share = shareNow(name);
        asOf = changes;
        return share;
      };
      return {
        of: (total, turn) => newest().of(total, turn),
        isTrusted: (now) => newest().isTrusted(now),
        get since() {
          return newest().since;
        },
      };
    },
  };
}

/** Short, however many they are. */
function hashOf(nodes: string[]): string {
  return createHash('sha256').update(nodes.join(' ')).digest('hex').slice(0, 16);
}
