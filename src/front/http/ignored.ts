/** The header that names what a request has and the API does not know: members of its body, parameters of its query. */
import type { Context } from 'koa';

const ignoredHeader = 'X-Postern-Ignored';

/** More would not help a person to correct the request. */
const maxNamed = 10;
const maxNameLength = 64;

/** Adds names to those that the header has. A comma separates names, and a header holds visible ASCII. */
export function nameIgnored(context: Context, names: string[]): void {
  if (names.length === 0) return;
  const before = String(context.response.get(ignoredHeader) || '');
  const shown = names.slice(0, maxNamed).map((name) => name.replace(/[^!-+\--~]/g, '?'));
  const more = names.length > maxNamed ? ['...'] : [];
  context.set(ignoredHeader, [...(before === '' ? [] : [before]), ...shown, ...more].join(', '));
}

/** Names the parameters that nothing reads, such as `page` where pages have cursors. `nameOf`: as `known` has the name. */
export function nameUnknownParameters(
  context: Context,
  known: ReadonlySet<string>,
  nameOf = (name: string) => name,
): void {
  if (context.querystring === '') return;
  const unknown = Object.keys(context.query).filter((name) => !known.has(nameOf(name)));
  nameIgnored(context, unknown.map(shortened));
}

/** Callers choose the names. */
export function shortened(name: string): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength)}...` : name;
}
