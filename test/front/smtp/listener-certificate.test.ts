/** The certificate of the operator's files, and the self-signed one. */
import { copyFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startListener } from '#lab/mx/listener.ts';
import { openCertificate } from '#operate/certificates/listener-certificate.ts';
import { selfSigned } from '#operate/certificates/self-signed.ts';

/** The name of the certificate that is shown on a port with TLS from the start. */
function nameShown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

test('certificate files are taken up when they change; a bad one leaves the old in place, and is told once', async (t) => {
  const directory = await temporaryDirectory(t);
  const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const put = (name: string) => {
    const { cert, key } = selfSigned(name, Date.now());
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  put('one.invalid');
  const clock = manualClock();
  const errors: unknown[] = [];
  const certificate = openCertificate({
    certFile,
    keyFile,
    dataDir: directory,
    hostname: 'x.invalid',
    clock,
    onError: (_, error) => errors.push(error),
  });
  const { port } = await startListener(t, { certificate, implicitTls: true });
  t.is(await nameShown(port), 'one.invalid');
  put('two.invalid');
  await clock.advance('10s');
  t.is(await nameShown(port), 'two.invalid');
  writeFileSync(keyFile, 'nonsense');
  await clock.advance('30s');
  t.is(await nameShown(port), 'two.invalid');
  t.is(errors.length, 1);
  t.regex((errors[0] as Error).message, /certificate and its key in PEM: .*; correct POSTERN_TLS_CERT/);
  put('three.invalid');
  await clock.advance('10s');
  t.is(await nameShown(port), 'three.invalid');
  certificate.stop();
  t.deepEqual(clock.pending, []);
});

test('a key in the certificate’s file will do', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'both.pem');
  copyFileSync(new URL('../../fixtures/mx.pem', import.meta.url), file);
  const parts = { dataDir: directory, hostname: 'x.invalid', clock: manualClock(), onError: t.fail };
  const certificate = openCertificate({ certFile: file, keyFile: null, ...parts });
  t.regex(certificate.current().key, /PRIVATE KEY/);
});

test('with a file that is missing at start, a self-signed certificate serves until the file is there', async (t) => {
  const directory = await temporaryDirectory(t);
  const certFile = join(directory, 'both.pem');
  const clock = manualClock();
  const errors: string[] = [];
  const certificate = openCertificate({
    certFile,
    keyFile: null,
    dataDir: directory,
    hostname: 'x.invalid',
    clock,
    onError: (what, error) => errors.push(`${what}: ${(error as Error).message}`),
  });
  const { port } = await startListener(t, { certificate, implicitTls: true });
  t.is(await nameShown(port), 'x.invalid');
  await clock.advance('1m');
  t.is(errors.length, 1);
  t.regex(
    errors[0]!,
    /a self-signed one is used until it can: .*both\.pem does not contain a certificate.*ENOENT.*correct POSTERN_TLS_CERT/,
  );
  const { cert, key } = selfSigned('one.invalid', Date.now());
  writeFileSync(certFile, `${cert}${key}`);
  await clock.advance('10s');
  t.is(await nameShown(port), 'one.invalid');
});

test('where there is no file one is made, for its owner alone, and stays the same', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const open = (hostname: string) =>
    openCertificate({
      certFile: null,
      keyFile: null,
      dataDir,
      hostname,
      clock: manualClock(Date.now()),
      onError: () => {},
    }).current();
  const first = open('mail.example.org');
  t.is(statSync(join(dataDir, 'tls.json')).mode & 0o777, 0o600);
  t.deepEqual(open('mail.example.org'), first);
  t.notDeepEqual(open('other.example.org'), first);
});
