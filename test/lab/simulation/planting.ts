/**
 * Plants a fault of planted-faults.ts: a line of the source is another one while this process runs. The file is not touched; the
 * loader gets the changed text. It must be called before the source is imported.
 */
import { registerHooks } from 'node:module';
import { basename } from 'node:path';
import { plantedFaults } from './planted-faults.ts';

export function plant(name: string): void {
  const planted = plantedFaults[name];
  if (!planted)
    throw new Error(`no planted fault is called ${name}: ${Object.keys(plantedFaults).join(', ')}`);
  let count = 0;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.includes('/src/') || basename(new URL(url).pathname) !== planted.file) return loaded;
      const source = String(loaded.source);
      const parts = source.split(planted.replace);
      if (parts.length !== 2)
        throw new Error(
          `the planted fault ${name} needs this text once in ${planted.file}: ${planted.replace}`,
        );
      count += 1;
      return { ...loaded, source: parts.join(planted.by) };
    },
  });
  process.on('exit', () => {
    if (count === 0) console.error(`the planted fault ${name} was not loaded: no file ${planted.file}`);
  });
}
