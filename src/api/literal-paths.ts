/**
 * A path that a route names word for word is that route's, whatever the method: `PATCH /email/send` is a wrong method, and not
 * an email with the id `send`, although `PATCH /email/:id` matches it.
 */

interface Pattern {
  /** Null stands for a parameter. */
  segments: (string | null)[];
  methods: string[];
}

/**
 * `routes`: methods and paths, with parameters as `:name` or `{name}`. Returns the methods that the path of a request has, if it
 * does not have that of the request, but a route with a parameter would take it.
 */
export function literalPaths(
  routes: readonly string[],
): (request: { path: string; method: string }) => string[] | null {
  const patterns = patternsOf(routes);
  const guarded = patterns.filter((one) => patterns.some((other) => other !== one && isWider(other, one)));
  return ({ path, method }) => {
    const segments = segmentsOf(path);
    const found = guarded.find((one) => matches(one.segments, segments));
    return found === undefined || found.methods.includes(method) ? null : found.methods;
  };
}

function patternsOf(routes: readonly string[]): Pattern[] {
  const patterns = new Map<string, Pattern>();
  for (const route of routes) {
    const [method, path] = route.split(' ') as [string, string];
    const segments = segmentsOf(path).map((segment) => (/[:{(*]/.test(segment) ? null : segment));
    const pattern = patterns.get(segments.join('/')) ?? { segments, methods: [] };
    pattern.methods.push(...(method === 'GET' ? ['HEAD', 'GET'] : [method]));
    patterns.set(segments.join('/'), pattern);
  }
  return [...patterns.values()];
}

/** As the router compares paths: in any letter case, and with or without a slash at the end. */
const segmentsOf = (path: string) => path.toLowerCase().replace(/\/$/, '').split('/');

function isWider(wide: Pattern, { segments }: Pattern): boolean {
  return (
    wide.segments.length === segments.length &&
    wide.segments.every((segment, at) => segment === null || segment === segments[at])
  );
}

function matches(pattern: (string | null)[], segments: string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((segment, at) => segment === null || segment === segments[at])
  );
}
