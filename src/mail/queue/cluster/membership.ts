/**
 * Decides which nodes send, and so which part of each destination's limits belongs to this node.
 *
 * About once a second each node publishes that it is alive and which nodes it counts, then reads the same from the
 * others. Its part shrinks as soon as it counts another node. It grows only when all nodes that it counts have published
 * that they count the same ones, so a node that is new or was silent has nothing until the others have given up their
 * part. A node that has published nothing for ten seconds is no longer counted; it has itself stopped starting mail three
 * seconds earlier. Silence is measured by the reader's clock, so the parts never add up to more than the limit, whatever
 * a node's clock says.
 */
import { createHash } from 'node:crypto';
import { type Share, whole } from '#mail/queue/share.ts';
import { rankOf, shareOfLimit } from './share-of-limit.ts';

/** The state that a node publishes about itself. */
export interface Heartbeat {
  node: string;
  /** A hash of the nodes that it counts. */
  members: string;
  /** Time by the node's own clock; different for each heartbeat. */
  at: number;
}

const goneMs = 10_000;
/** After this long without a heartbeat, the other nodes may be about to stop counting this one. */
const trustedMs = 7_000;
/** A heartbeat that is this old by its own node's clock is ignored at once; clocks do not differ by that much. */
const longGoneMs = 60_000;

interface SeenNode {
  at: number;
  /** When this node first read that heartbeat. */
  changedAt: number;
  /** It has published again since this node started, or came back after a silence. */
  isFresh: boolean;
}

export class NodeMembership {
  readonly #self: string;
  readonly #min: number;
  #seen = new Map<string, SeenNode>();
  /** The nodes that this node counts now, and those that it counted when all last agreed. */
  #current: string[];
  #agreed: string[] = [];
  #publishedAt = Number.NEGATIVE_INFINITY;
  #since = Number.NEGATIVE_INFINITY;
  /** No other node was alive while this one was able to publish, so none can have taken over its share. */
  #isAlone = false;
  #changes = 0;

  /**
   * `min`: what this node has at every destination once the others count it, even if its part is smaller. It is 1 for a
   * node whose mail no other node can send (IP pools): if there are more such nodes than connections, the parts add up
   * to more than the limit, because otherwise that mail would never leave.
   */
  constructor(self: string, min = 0) {
    this.#self = self;
    this.#min = min;
    this.#current = [self];
  }

  /** To be published with the next heartbeat. */
  get members(): string {
    return hashOf(this.#current);
  }

  get others(): string[] {
    return this.#current.filter((node) => node !== this.#self);
  }

  /**
   * The oldest of the last heartbeats of the others, each by its node's own clock: whatever they had published by then could be
   * read after them. Infinite without others.
   */
  get heardAt(): number {
    return Math.min(...this.others.map((node) => this.#seen.get(node)!.at));
  }

  /** `heartbeats` were read after this node's own heartbeat of `begunAt` was committed. True if the shares have changed. */
  update(heartbeats: Heartbeat[], begunAt: number, now: number): boolean {
    const isBack = begunAt - this.#publishedAt >= trustedMs;
    this.#publishedAt = begunAt;
    this.#noteHeartbeats(heartbeats, isBack, now);
    const live = heartbeats.filter((heartbeat) => this.#isLive(heartbeat, now));
    const before = { current: this.members, agreed: hashOf(this.#agreed) };
    this.#current = [this.#self, ...live.map(({ node }) => node)].sort();
    if (isBack) this.#agreed = [];
    this.#isAlone = live.length === 0 && now - begunAt < trustedMs;
    const { members } = this;
    const isAgreed = live.every((one) => one.members === members && this.#seen.get(one.node)!.isFresh);
    if (isAgreed) this.#agreed = this.#current;
    if (before.current === members && before.agreed === hashOf(this.#agreed)) return false;
    this.#changes += 1;
    if (isAgreed && live.length > 0) this.#since = now;
    return true;
  }

  /** The share at one destination. It follows later changes, and is computed once after each. */
  share(name: string): Share {
    let asOf = -1;
    let share = whole;
    const latest = () => {
      if (asOf !== this.#changes) share = this.#shareNow(name);
      asOf = this.#changes;
      return share;
    };
    return {
      of: (total, turn) => latest().of(total, turn),
      isTrusted: (now) => latest().isTrusted(now),
      get since() {
        return latest().since;
      },
    };
  }

  #noteHeartbeats(heartbeats: Heartbeat[], isBack: boolean, now: number): void {
    const before = this.#seen;
    this.#seen = new Map();
    for (const { node, at } of heartbeats) {
      const known = before.get(node);
      const isFresh = known !== undefined && !isBack && (known.isFresh || known.at !== at);
      this.#seen.set(node, { at, changedAt: known?.at === at ? known.changedAt : now, isFresh });
    }
  }

  #isLive({ node, at }: Heartbeat, now: number): boolean {
    return now - this.#seen.get(node)!.changedAt < goneMs && at > now - longGoneMs;
  }

  #shareNow(name: string): Share {
    const partAmong = (nodes: string[]) => {
      if (!nodes.includes(this.#self)) return () => 0;
      const rank = rankOf(this.#self, nodes, name);
      return (total: number, turn: number) => shareOfLimit(total, nodes.length, (rank + turn) % nodes.length);
    };
    const [agreed, current] = [partAmong(this.#agreed), partAmong(this.#current)];
    const min = this.#agreed.includes(this.#self) ? this.#min : 0;
    return {
      of: (total, turn = 0) =>
        Math.max(Math.min(agreed(total, turn), current(total, turn)), Math.min(min, total)),
      isTrusted: (now) => this.#isAlone || now - this.#publishedAt < trustedMs,
      since: this.#since,
    };
  }
}

/** Short, whatever their number. */
function hashOf(nodes: string[]): string {
  return createHash('sha256').update(nodes.join(' ')).digest('hex').slice(0, 16);
}
