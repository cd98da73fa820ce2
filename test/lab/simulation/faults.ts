/**
 * What can go wrong around the service. A fault begins, says in a sentence what it is, and returns what ends it; null if it is
 * over at once. To add one: add an entry; the plan (plan.ts) draws it, and the invariants judge what comes of it.
 */
import { DatabaseSync } from 'node:sqlite';
import { endpointModes } from './actors/endpoint.ts';
import type { HostMode } from './actors/exchanger.ts';
import { databases } from './machine/database.ts';
import type { NameBehavior } from './machine/names.ts';
import { muchSpace, type PosternProcess } from './machine/postern-process.ts';
import { scheduler, world } from './machine/scheduler.ts';
import type { Random } from './random.ts';
import { postgresAddress, type Scene } from './scene.ts';

export type DatabaseKind = 'sqlite' | 'postgres';

export interface Fault {
  /** Minutes that it lasts; 0: it is over at once. */
  minutes: [min: number, max: number];
  /** How often it is drawn, in relation to others. */
  weight: number;
  /** Only with this database. */
  on?: DatabaseKind;
  /** Returns what is to be told, what ends it, and the recipients' domain that it is about, if it is one. */
  begin(scene: Scene, random: Random): [text: string, end: (() => void) | null, domain?: string];
}

const minute = 60_000;
const boot = (node: PosternProcess, afterMs: number) =>
  void scheduler.after(afterMs, () => node.boot(), world);

/** Within so many milliseconds. */
function killSoon(scene: Scene, node: PosternProcess, random: Random, ms: number): void {
  const kill = () => {
    scene.book.tell(-1, `${node.name} is killed`);
    node.kill();
    boot(node, random.between(500, 40_000));
  };
  scheduler.after(random.next() * ms, kill, world);
}

const processFaults = {
  crash: {
    minutes: [0, 0],
    weight: 2,
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      node.kill();
      const ms = random.between(500, 40_000);
      boot(node, ms);
      return [`${node.name} is killed, and starts again after ${Math.round(ms / 1000)} s`, null];
    },
  },
  'crash at a statement': {
    minutes: [2, 20],
    weight: 2,
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      const number = random.integer(1, 300);
      let left = number;
      databases.onStatement = (machine) => {
        if (machine !== node.machine || --left > 0) return;
        databases.onStatement = null;
        killSoon(scene, node, random, 2);
      };
      const end = () => {
        databases.onStatement = null;
      };
      return [`${node.name} is killed at its statement ${number} from now`, end];
    },
  },
  'crash at the dot': {
    minutes: [2, 30],
    weight: 2,
    begin(scene, random) {
      const hosts = scene.domains.flatMap(({ hosts }) => hosts);
      const disarm = () => {
        for (const host of hosts) host.onTaken = null;
      };
      const onTaken = () => {
        disarm();
        killSoon(scene, random.pick(scene.nodes), random, 40);
      };
      for (const host of hosts) host.onTaken = onTaken;
      return ['the process is killed when a host has taken a mail', disarm];
    },
  },
  'power loss': {
    minutes: [0, 0],
    weight: 2,
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      node.kill(false);
      const ms = random.between(5_000, 300_000);
      boot(node, ms);
      return [`${node.name} loses power, and starts again after ${Math.round(ms / 1000)} s`, null];
    },
  },
  restart: {
    minutes: [0, 0],
    weight: 1,
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      node.stop(() => boot(node, 1_000));
      return [`an operator restarts ${node.name}`, null];
    },
  },
  'clock ahead': {
    minutes: [5, 90],
    weight: 2,
    begin(scene, random) {
      const ms = random.pick([2 * minute, 20 * minute, 5 * 60 * minute, 3 * 24 * 60 * minute]);
      const node = random.pick(scene.nodes);
      scene.setClock(node, ms);
      const end = () => scene.setClock(node, -ms);
      return [`the clock of ${node.name} jumps ahead by ${ms / minute} min`, end];
    },
  },
  'clock behind': {
    minutes: [5, 90],
    weight: 1.5,
    begin(scene, random) {
      const ms = random.pick([2 * minute, 20 * minute, 5 * 60 * minute]);
      const node = random.pick(scene.nodes);
      scene.setClock(node, -ms);
      const end = () => scene.setClock(node, ms);
      return [`the clock of ${node.name} is set back by ${ms / minute} min`, end];
    },
  },
  'another machine takes over': {
    minutes: [5, 60],
    weight: 1.5,
    begin(scene, random) {
      const ms = random.pick([-5 * 60 * minute, -20 * minute, -2 * minute, 20 * minute, 24 * 60 * minute]);
      const node = random.pick(scene.nodes);
      node.kill();
      scene.setClock(node, ms);
      boot(node, random.between(500, 120_000));
      const end = () => {
        node.kill();
        scene.setClock(node, -ms);
        boot(node, random.between(500, 120_000));
      };
      return [`a machine whose clock is ${ms / minute} min ahead takes over, then the first again`, end];
    },
  },
} satisfies Record<string, Fault>;

const databaseFaults = {
  'no way to the database': {
    minutes: [0.05, 10],
    weight: 4,
    on: 'postgres',
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      return [`${node.name} cannot reach PostgreSQL`, scene.links.part(node.address, postgresAddress)];
    },
  },
} satisfies Record<string, Fault>;

const diskFaults = {
  'slow disk': {
    minutes: [1, 20],
    weight: 1,
    on: 'sqlite',
    begin(scene, random) {
      const worst = random.pick([100, 800, 3_000]);
      const slow = { extraMs: (isCommit: boolean) => (isCommit ? worst * random.next() : 2) };
      scene.diskFaults.add(slow);
      const end = () => void scene.diskFaults.delete(slow);
      return [`the disk takes up to ${worst} ms for a commit`, end];
    },
  },
  'failing disk': {
    minutes: [1, 10],
    weight: 2,
    on: 'sqlite',
    begin(scene, random) {
      const code = random.pick(['SQLITE_FULL', 'SQLITE_IOERR'] as const);
      const share = random.pick([0.05, 0.5]);
      const failing = {
        failure: () => (random.chance(share) ? code : null),
      };
      scene.diskFaults.add(failing);
      const end = () => void scene.diskFaults.delete(failing);
      return [`${share * 100} % of the commits fail with ${code}`, end];
    },
  },
  'locked database': {
    minutes: [0.05, 0.6],
    weight: 1,
    on: 'sqlite',
    begin(scene) {
      const other = new DatabaseSync(scene.databaseFile, { timeout: 0 });
      try {
        other.exec('begin immediate');
      } catch {
        other.close();
        return ['another program wants to lock the database, which is locked', null];
      }
      return ['another program locks the database', () => other.close()];
    },
  },
  'little space': {
    minutes: [1, 30],
    weight: 0.5,
    begin(scene, random) {
      const node = random.pick(scene.nodes);
      node.freeBytes = 10_000_000;
      const end = () => {
        node.freeBytes = muchSpace;
      };
      return [`the disk of ${node.name} is nearly full`, end];
    },
  },
} satisfies Record<string, Fault>;

function dnsFault(behavior: NameBehavior, isAll: boolean): Fault {
  return {
    minutes: [3, 45],
    weight: isAll ? 0.7 : 1.5,
    begin(scene, random) {
      const { name } = random.pick(scene.domains);
      const fault = (asked: string) => (isAll || asked.endsWith(name) ? behavior : null);
      scene.names.faults.add(fault);
      const end = () => void scene.names.faults.delete(fault);
      return isAll ? [`DNS ${behavior}: all names`, end] : [`DNS ${behavior}: ${name}`, end, name];
    },
  };
}

function hostFault(mode: HostMode, weight: number): Fault {
  return {
    minutes: [2, 90],
    weight,
    begin(scene, random) {
      const domain = random.pick(scene.domains);
      const hosts = domain.hosts.filter(({ mode: now }) => now === 'sound');
      if (hosts.length === 0) return [`${domain.name} ${mode}, which another fault hides`, null];
      for (const host of hosts) host.mode = mode;
      const end = () => {
        for (const host of hosts) host.mode = 'sound';
      };
      return [`${domain.name} ${mode}`, end, domain.name];
    },
  };
}

const all = (ends: (() => void)[]) => () => {
  for (const end of ends) end();
};

const networkFaults = {
  'port 25 shut': {
    minutes: [2, 60],
    weight: 1,
    begin(scene, random) {
      const how = random.pick(['silent', 'refused', 'unreachable'] as const);
      scene.links.port25 = how;
      const end = () => {
        scene.links.port25 = 'open';
      };
      return [`port 25 is shut: ${how}`, end];
    },
  },
  'host away': {
    minutes: [2, 120],
    weight: 2,
    begin(scene, random) {
      const domain = random.pick(scene.domains);
      const how = random.pick(['silent', 'refused', 'unreachable'] as const);
      const ends = domain.addresses.map((address) => scene.links.change(address, { connecting: how }));
      return [`${domain.name} cannot be reached: ${how}`, all(ends), domain.name];
    },
  },
  'bad link': {
    minutes: [2, 60],
    weight: 2,
    begin(scene, random) {
      const domain = random.pick(scene.domains);
      const change = {
        cuts: random.pick([0, 0.3, 0.9]),
        pieces: random.next(),
        extraMs: random.pick([0, 300, 5_000]),
      };
      const ends = domain.addresses.map((address) => scene.links.change(address, change));
      return [`the way to ${domain.name} is bad: ${JSON.stringify(change)}`, all(ends), domain.name];
    },
  },
  'silent link': {
    minutes: [0.5, 15],
    weight: 1,
    begin(scene, random) {
      const domain = random.pick(scene.domains);
      const ends = domain.addresses.map((address) => scene.links.change(address, { isSilent: true }));
      return [`the connections to ${domain.name} fall silent`, all(ends), domain.name];
    },
  },
  'callers lose answers': {
    minutes: [1, 30],
    weight: 2,
    begin(scene, random) {
      const ends = scene.callers.map((_, number) =>
        scene.links.change(`7.0.0.${number + 1}`, {
          cuts: random.pick([0.2, 0.7]),
          extraMs: random.pick([0, 2_000]),
        }),
      );
      return ['the connections of callers are cut', all(ends)];
    },
  },
  'endpoint fails': {
    minutes: [1, 60],
    weight: 2,
    begin(scene, random) {
      const endpoint = random.pick(scene.endpoints);
      endpoint.mode = random.pick(endpointModes.slice(1));
      const { mode } = endpoint;
      const end = () => {
        endpoint.mode = 'answers';
      };
      return [`the endpoint ${endpoint.machine.name} ${mode}`, end];
    },
  },
  'host moves': {
    minutes: [10, 120],
    weight: 1,
    begin(scene, random) {
      const [from, to] = [random.pick(scene.domains), random.pick(scene.domains)];
      const mx = (domain: typeof from) => ({
        MX: domain.hosts.map((host, at) => ({ exchange: host.name, priority: 10 * (at + 1) })),
      });
      scene.names.set({ [from.name]: mx(to) });
      return [
        `${from.name} moves to the hosts of ${to.name}`,
        () => scene.names.set({ [from.name]: mx(from) }),
      ];
    },
  },
} satisfies Record<string, Fault>;

const dnsFaults = {
  'dns silent': dnsFault('silent', false),
  'dns servfail': dnsFault('servfail', false),
  'dns lies': dnsFault('no-such-name', false),
  'resolver silent': dnsFault('silent', true),
  'resolver servfail': dnsFault('servfail', true),
};

const hostFaults = {
  greylisting: hostFault('greylists', 2),
  throttling: hostFault('throttles', 2),
  tarpit: hostFault('tarpits', 2),
  'no reply to the mail': hostFault('hangs up before the reply', 1),
  'hang up after the dot': hostFault('hangs up after the dot', 2),
  'full host': hostFault('is full', 1),
  'host closed': hostFault('refuses greetings', 1),
  'silent host': hostFault('says nothing', 1),
  'host refuses all': hostFault('refuses all recipients', 0.5),
};

/** Faults of the machine of the service itself. */
export const ownFaults = new Set(Object.keys({ ...processFaults, ...databaseFaults, ...diskFaults }));

export const faults: Record<string, Fault> = {
  ...processFaults,
  ...databaseFaults,
  ...diskFaults,
  ...networkFaults,
  ...dnsFaults,
  ...hostFaults,
};
