/**
 * Pebble, Let's Encrypt's ACME server for tests, from Debian. It asks our own DNS of the tests, checks challenges at the given
 * ports without its usual pauses, and rejects some nonces as it always does. Its authority is new with each start.
 */
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { selfSigned } from '#operate/certificates/self-signed.ts';
import { freePort, listens } from '../load/ports.ts';
import { serve } from './serve.ts';

export interface PebbleOptions {
  directory: string;
  /** `host:port`. */
  dns: string;
  httpPort: number;
  tlsPort: number;
  validitySeconds?: number;
}

export type Pebble = Awaited<ReturnType<typeof startPebble>>;

export async function startPebble({ directory, dns, httpPort, tlsPort, validitySeconds }: PebbleOptions) {
  const { cert, key } = selfSigned('localhost', Date.now());
  const files = ['pebble-cert.pem', 'pebble-key.pem', 'pebble.json'].map((name) => join(directory, name));
  const [certificate, privateKey, config] = files as [string, string, string];
  const [port, managementPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
  const settings = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate,
    privateKey,
    httpPort,
    tlsPort,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
    ...(validitySeconds !== undefined && { certificateValidityPeriod: validitySeconds }),
  };
  await writeFile(certificate, cert);
  await writeFile(privateKey, key);
  await writeFile(config, JSON.stringify({ pebble: settings }));
  const start = () =>
    serve(['env', 'PEBBLE_VA_NOSLEEP=1', 'pebble', '-strict', '-config', config, '-dnsserver', dns], () =>
      listens('127.0.0.1', port),
    );
  let server = await start();
  return {
    settings: {
      POSTERN_ACME: 'admin@postern.invalid',
      POSTERN_ACME_DIRECTORY: `https://localhost:${port}/dir`,
      POSTERN_ACME_CA: certificate,
    },
    /** The certificate that clients trust. */
    root: () => get(`https://localhost:${managementPort}/roots/0`, cert),
    log: () => server.log(),
    stop: () => server.stop(),
    async start() {
      server = await start();
    },
  };
}

function get(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { ca }, (response) => resolve(text(response)))
      .on('error', reject)
      .end();
  });
}
