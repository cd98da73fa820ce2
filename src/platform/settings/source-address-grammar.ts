/** The written form of our source addresses: `ADDRESS[=EHLO-NAME][@POOL]`. */
import { isIP } from 'node:net';
import { asHostName } from '#platform/values/host-name.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';
import { type Grammar, listOf, Refused, refuse } from './grammar.ts';

/** `name`: the EHLO name; null if not given. */
interface Source {
  address: string;
  name: string | null;
  pool: string;
}

const poolPattern = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;

export const poolName: Pick<Grammar<string>, 'read'> = {
  read(text) {
    const name = text.toLowerCase();
    if (poolPattern.test(name)) return name;
    const give = 'up to 40 letters, digits and hyphens, such as transactional or bulk-2';
    return refuse(text, 'the name of an IP pool', give);
  },
};

function source(word: string): Source {
  const [, address = '', name, pool] = /^([^=@]*)(?:=([^@]*))?(?:@([^=]*))?$/.exec(word) ?? [];
  const isUsable = isIP(address) !== 0 && address !== '0.0.0.0' && address !== '::';
  const ownName = name === undefined ? null : asHostName(name);
  if (!isUsable || (name !== undefined && !ownName?.includes('.'))) {
    const give =
      'ADDRESS or ADDRESS=EHLO-NAME, either with @POOL behind it, such as 192.0.2.10=mail1.example.org or 2001:db8::10@bulk';
    return refuse(word, 'a source address', give);
  }
  return { address, name: ownName, pool: pool === undefined ? defaultPool : poolName.read(pool) };
}

const sources = listOf(source, printed);

export const sourceAddresses: Grammar<Source[]> = {
  ...sources,
  read(text) {
    const read = sources.read(text);
    const twice = read.find(({ address }, at) => read.findIndex((one) => one.address === address) < at);
    if (twice) throw new Refused(`${twice.address} is given twice; give each address once, in one IP pool`);
    return read;
  },
};

function printed({ address, name, pool }: Source): string {
  return address + (name === null ? '' : `=${name}`) + (pool === defaultPool ? '' : `@${pool}`);
}

/** What becomes of mail over the allowance of a new source address: it waits, is sent all the same, or goes from `pool`. */
export type WarmUpPolicy = 'wait' | 'warn' | 'off' | { pool: string };

export const warmUpPolicy: Grammar<WarmUpPolicy> = {
  read(text) {
    if (text.startsWith('@')) return { pool: poolName.read(text.slice(1)) };
    const word = (['wait', 'warn', 'off'] as const).find((one) => one === text.toLowerCase());
    return word ?? refuse(text, 'a way to warm up', 'wait, warn, off, or @ and an IP pool, such as @default');
  },
  print: (policy) => (typeof policy === 'string' ? policy : `@${policy.pool}`),
};

export const plainAddresses: Grammar<string[]> = listOf((word) =>
  isIP(word) === 0 ? refuse(word, 'an address', 'one such as 192.0.2.10 or 2001:db8::10') : word,
);
