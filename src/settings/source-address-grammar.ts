/**
 * The written form of our own addresses: `ADDRESS[=EHLO-NAME][@POOL]`. Neither an address nor a name has an @ in it.
 * A pool's name is a word for people, as it stands in commands: a label of letters, digits and hyphens.
 */
import { isIP } from 'node:net';
import { defaultPool } from '../mail/ip-pool.ts';
import { asHostName, type Grammar, Refused, refuse, wordsOf } from './grammar.ts';

/** An address of ours that connections come from; `name` is what it says in EHLO, null where that is not given. */
interface Source {
  address: string;
  name: string | null;
  /** The set of addresses that it is one of. */
  pool: string;
}

const poolPattern = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;

export const poolName: Pick<Grammar<string>, 'read'> = {
  read(text) {
    const name = text.toLowerCase();
    if (poolPattern.test(name)) return name;
    const give = 'up to 40 letters, digits and hyphens, such as transactional or bulk-2';
    return refuse(text, 'the name of a pool of source addresses', give);
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

export const sourceAddresses: Grammar<Source[]> = {
  read(text) {
    const sources = wordsOf(text).map(source);
    const twice = sources.find(({ address }, at) => sources.findIndex((one) => one.address === address) < at);
    if (twice) throw new Refused(`${twice.address} is there twice; give each address once, in one pool`);
    return sources;
  },
  print: (sources) => sources.map(printed).join(' '),
  list: true,
};

function printed({ address, name, pool }: Source): string {
  return address + (name === null ? '' : `=${name}`) + (pool === defaultPool ? '' : `@${pool}`);
}
