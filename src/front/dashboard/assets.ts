/**
 * Styles, scripts and images. Each URL contains a hash of the content, so that browsers fetch each version once. They are
 * read when the first page is shown and stay in memory.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';

export interface Assets {
  /** The URL of a file. Throws if the file does not exist: a mistake in a view. */
  url(name: string): string;
  /** Returns false if the request is not for an asset. */
  serve(context: Context): Promise<boolean>;
}

interface Asset {
  name: string;
  type: string;
  body: Buffer;
  gzipped?: Buffer;
}

const prefix = '/dashboard/assets/';

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Files of dependencies. */
const packaged = () => ({
  'htmx.js': import.meta.resolve('htmx.org/dist/htmx.min.js'),
  // Its only entry point imports eight files, and the bundle beside it is all of them.
  'relative-time.js': new URL('bundle.js', import.meta.resolve('@github/relative-time-element')).href,
});

const zip = promisify(gzip);

export function createAssets(): Assets {
  let loaded: { urls: Map<string, string>; byUrl: Map<string, Asset> } | undefined;
  const all = () => {
    loaded ??= load();
    return loaded;
  };
  return {
    url(name) {
      const url = all().urls.get(name);
      if (url === undefined) throw new Error(`there is no asset ${name}`);
      return url;
    },
    async serve(context) {
      if (!context.path.startsWith(prefix) || !['GET', 'HEAD'].includes(context.method)) return false;
      const asset = all().byUrl.get(context.path);
      if (!asset) return false;
      context.set('Cache-Control', 'public, max-age=31536000, immutable');
      context.vary('Accept-Encoding');
      context.set('Content-Type', asset.type);
      const acceptsGzip = context.acceptsEncodings('gzip', 'identity') === 'gzip';
      if (acceptsGzip) {
        asset.gzipped ??= await zip(asset.body);
        context.set('Content-Encoding', 'gzip');
      }
      context.body = acceptsGzip ? asset.gzipped : asset.body;
      return true;
    },
  };
}

function load() {
  const own = join(import.meta.dirname, 'assets');
  const files: [name: string, body: Buffer][] = [
    ['style.css', styles(join(own, 'styles'))],
    ...named(
      own,
      readdirSync(own).filter((name) => extname(name) !== ''),
    ),
    ...Object.entries(packaged()).map(([name, url]): [string, Buffer] => [name, readFileSync(new URL(url))]),
  ];
  const urls = new Map<string, string>();
  const byUrl = new Map<string, Asset>();
  for (const [name, body] of files) {
    const hash = createHash('sha256').update(body).digest('base64url').slice(0, 16);
    const url = `${prefix}${hash}/${basename(name)}`;
    urls.set(name, url);
    byUrl.set(url, { name, type: types[extname(name)]!, body });
  }
  return { urls, byUrl };
}

function named(folder: string, names: string[]): [string, Buffer][] {
  return names.map((name) => [name, readFileSync(join(folder, name))]);
}

/** Concatenates the styles into one file: base.css first, the others in any order. */
function styles(folder: string): Buffer {
  const names = readdirSync(folder).filter((name) => name !== 'base.css');
  return Buffer.concat(named(folder, ['base.css', ...names.sort()]).map(([, body]) => body));
}
